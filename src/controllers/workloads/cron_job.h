// Creates the Jobs of CronJobs when they are due, follows them to their end, and keeps as many as the history may have.
// This class decides when a CronJob is synced; one sync is cron_job_sync.h. The name of a Job is that of its time, so
// none is created twice.
// Thread: loop. Bounds: one sync of a CronJob at a time; retries back off to 60 s. Source: Kubernetes docs, "CronJob";
// spec "Scheduler and workloads", 15.
#pragma once

#include "api/object/job.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "policy/workloads/cron_plan.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace spillway::controllers {

/// A status of a CronJob that was written, and that the cache may not show yet.
struct WrittenCronStatus {
  std::uint64_t version = 0;  // resourceVersion of the written status, as a number
  Instant at;
};

class CronJobController {
 public:
  CronJobController(Shared shared, client::Informer<api::CronJob>& cron_jobs, client::Informer<api::Job>& jobs,
                    telemetry::Registry& metrics);
  CronJobController(const CronJobController&) = delete;
  CronJobController& operator=(const CronJobController&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the CronJobs that are due; called at the end of every step.
  void run(Now now);

 private:
  using CronJobPtr = std::shared_ptr<const api::CronJob>;

  void on_cron_job(const CronJobPtr& before, const CronJobPtr& after, Now now);
  void on_job(const workloads::JobPtr& before, const workloads::JobPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void arm();
  void sync(const std::string& key, Now now);

  Shared shared_;
  client::Informer<api::CronJob>& cron_jobs_;
  OwnedObjects<api::Job> jobs_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  telemetry::Histogram skew_;  // seconds from the time of a Job to its creation
  std::map<std::string, std::string> key_by_uid_;
  std::map<std::string, WrittenCronStatus> written_;  // by uid
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
