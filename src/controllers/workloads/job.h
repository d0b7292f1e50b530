// Runs Jobs: creates and deletes their pods, counts each pod that ends exactly once, and ends the Job. Each sync is
// planned by policy/workloads/job_plan.h. The steps of a sync follow each other: pods are deleted, pods are created,
// the status lists the ended pods, these lose their finalizer, the status counts them. The first step that fails ends
// the sync; the next one begins with the status of that time. Pods whose Job is gone or over lose their finalizer as
// well. Thread: loop. Bounds: one sync of a Job at a time, 500 calls of it under way; syncs that pods cause are a
// second apart; retries back off from 1 s to 60 s. Source: Kubernetes docs, "Jobs"; KEP-2307; spec "Scheduler and
// workloads", 14.
#pragma once

#include "api/object/job.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "controllers/workloads/expectations.h"
#include "controllers/workloads/job_metrics.h"
#include "policy/workloads/job_plan.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class JobController {
 public:
  JobController(Shared shared, client::Informer<api::Job>& jobs, telemetry::Registry& metrics);
  JobController(const JobController&) = delete;
  JobController& operator=(const JobController&) = delete;

  /// Once the caches are filled.
  void start(Now now);
  /// Works off what is due; called at the end of every step.
  void run(Now now);

 private:
  using JobPtr = std::shared_ptr<const api::Job>;
  struct Look;
  using LookPtr = std::shared_ptr<Look>;

  /// State of a Job that its status does not have.
  struct Memory {
    std::set<std::string> released;  // uids of pods without finalizer, which the cache shows with it
    workloads::JobBackoff backoff;
    std::optional<std::uint64_t> written_version;  // the version of a status that the cache does not show yet
    Instant looks_paced_until{};
  };

  void on_job(const JobPtr& before, const JobPtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void note_pod(const PodPtr& before, const PodPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void enqueue_paced(const std::string& uid, Now now);
  void arm();
  void look(const std::string& key, Now now);
  std::vector<PodPtr> claim(const api::Job& job);
  bool is_cache_behind(const api::Job& job, Now now);

  // The steps.
  void leave(const LookPtr& look, Now now);
  void drop(const LookPtr& look, const PodPtr& pod);
  void remove(const LookPtr& look, const PodPtr& pod);
  void come(const LookPtr& look, Now now);
  void create_batch(const LookPtr& look, Now now);
  void on_created(const LookPtr& look, const Result<api::Json>& outcome, Now now);
  void note(const LookPtr& look, Now now);
  void release(const LookPtr& look, Now now);
  void settle(const LookPtr& look, Now now);
  void end(const LookPtr& look, Now now);
  void give_up(const LookPtr& look, const Error& error, Now now);
  void answered(const LookPtr& look, const Result<api::Json>& outcome, Now now);

  void write_status(const LookPtr& look, const api::JobStatus& status, const std::vector<workloads::JobEvent>& events,
                    void (JobController::*next)(const LookPtr&, Now));
  /// Takes the finalizer away; a pod that is gone has none.
  void patch_finalizer(const PodPtr& pod, client::ApiClient::Done done);

  // Pods with a finalizer whose Job no longer counts them.
  void enqueue_orphan(const PodPtr& pod, Now now);
  void free_orphan(const std::string& key, Now now);

  Shared shared_;
  client::Informer<api::Job>& jobs_;
  OwnedPods pods_;
  ExpectationTable expectations_{shared_.pods};
  client::WorkQueue queue_;
  client::WorkQueue orphans_;
  QueueMetrics queue_metrics_;
  QueueMetrics orphan_metrics_;
  JobMetrics job_metrics_;
  std::map<std::string, std::string> key_by_uid_;
  std::map<std::string, Memory> memory_;  // by uid
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
