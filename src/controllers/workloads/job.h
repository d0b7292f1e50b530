// Runs Jobs: creates and deletes their pods, counts each pod that ends exactly once, and ends the Job. This class
// decides when a Job is synced, and adopts and releases its pods; each sync is planned by policy/workloads/job_plan.h
// and carried out by job_sync.h. Pods whose Job is gone or over lose their finalizer as well (job_orphans.h). Thread:
// loop. Bounds: one sync of a Job at a time; syncs that pods cause are a second apart; retries back off from 1 s to 60
// s. Source: Kubernetes docs, "Jobs"; KEP-2307; spec "Scheduler and workloads", 14.
#pragma once

#include "api/object/job.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "controllers/workloads/expectations.h"
#include "controllers/workloads/job_memory.h"
#include "controllers/workloads/job_metrics.h"
#include "controllers/workloads/job_orphans.h"
#include "telemetry/metrics.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::controllers {

class JobController {
 public:
  JobController(Shared shared, client::Informer<api::Job>& jobs, telemetry::Registry& metrics);
  JobController(const JobController&) = delete;
  JobController& operator=(const JobController&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the Jobs that are due; called at the end of every step.
  void run(Now now);

 private:
  using JobPtr = std::shared_ptr<const api::Job>;

  void on_job(const JobPtr& before, const JobPtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void notify_owners(const PodPtr& before, const PodPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void enqueue_paced(const std::string& uid, Now now);
  void enqueue_orphan(const PodPtr& pod, Now now);
  void arm();
  void sync(const std::string& key, Now now);
  std::vector<PodPtr> claim(const api::Job& job);
  bool is_cache_behind(const api::Job& job, Now now);

  Shared shared_;
  client::Informer<api::Job>& jobs_;
  OwnedPods pods_;
  ExpectationTable expectations_{shared_.pods};
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  JobOrphans orphans_;
  JobMetrics job_metrics_;
  JobMemories memories_;
  std::map<std::string, std::string> key_by_uid_;
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
