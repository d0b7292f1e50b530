// Deletes Jobs that have finished, ttlSecondsAfterFinished later. Thread: loop. Bounds: one entry per Job with a time
// to live. Source: Kubernetes docs, "Automatic Cleanup for Finished Jobs"; spec "Scheduler and workloads", 14.
#pragma once

#include "api/object/job.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/queue_metrics.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <memory>
#include <string>

namespace spillway::controllers {

class FinishedJobs {
 public:
  FinishedJobs(client::ApiClient& client, const telemetry::Log& log, client::Informer<api::Job>& jobs,
               telemetry::Registry& metrics);
  FinishedJobs(const FinishedJobs&) = delete;
  FinishedJobs& operator=(const FinishedJobs&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Deletes the Jobs that are due; called at the end of every step.
  void run(Now now);

 private:
  void enqueue(const api::Job& job, Now now);
  void arm();
  /// Reads the Job from the server, for its time to live may have been raised a moment ago, and deletes that version.
  void sync(const std::string& key, Now now);
  void on_job(const std::string& key, const std::string& uid, const Result<api::Json>& outcome, Now now);
  void remove(const std::string& key, const api::Job& job);
  void end(const std::string& key, const Result<api::Json>& outcome, Now now);

  client::ApiClient& client_;
  const telemetry::Log& log_;
  client::Informer<api::Job>& jobs_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
