// Makes the Jobs of CronJobs when they are due, follows them to their end, keeps as many as the history may have.
// policy/workloads/cron_plan.h decides each sync; its steps are executed one after the other: Jobs are deleted, the new
// one is created, the history is trimmed, the status is written. The name of a Job contains its time, so none is made
// twice. Thread: loop. Bounds: one sync of a CronJob at a time; retries back off to 60 s. Source: Kubernetes docs,
// "CronJob"; spec "Scheduler and workloads", 15.
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
#include <set>
#include <string>

namespace spillway::controllers {

class CronJobController {
 public:
  CronJobController(Shared shared, client::Informer<api::CronJob>& cron_jobs, client::Informer<api::Job>& jobs,
                    telemetry::Registry& metrics);
  CronJobController(const CronJobController&) = delete;
  CronJobController& operator=(const CronJobController&) = delete;

  /// Once the caches are filled.
  void start(Now now);
  /// Works off what is due; called at the end of every step.
  void run(Now now);

 private:
  using CronJobPtr = std::shared_ptr<const api::CronJob>;
  struct Look;

  /// A status that was written, and when.
  struct Written {
    std::uint64_t version = 0;
    Instant at;
  };

  using LookPtr = std::shared_ptr<Look>;

  void on_cron_job(const CronJobPtr& before, const CronJobPtr& after, Now now);
  void on_job(const workloads::JobPtr& before, const workloads::JobPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void arm();
  void look(const std::string& key, Now now);
  /// Active Jobs that the cache does not show may be there all the same.
  void ask(const LookPtr& look, Now now);
  void decide(const LookPtr& look, Now now);

  // The steps.
  void replace(const LookPtr& look, Now now);
  void create(const LookPtr& look, Now now);
  void on_created(const LookPtr& look, const Result<api::Json>& outcome, Now now);
  void on_name_taken(const LookPtr& look, Now now);
  void cut_history(const LookPtr& look, Now now);
  void write_status(const LookPtr& look, Now now);
  void end(const LookPtr& look, Now now);
  void give_up(const LookPtr& look, const Error& error, Now now);

  void remove_job(const LookPtr& look, const api::ObjectReference& job,
                  void (CronJobController::*next)(const LookPtr&, Now));
  void tell(const Look& look, client::EventType type, std::string_view reason, std::string_view message, Now now);

  Shared shared_;
  client::Informer<api::CronJob>& cron_jobs_;
  OwnedObjects<api::Job> jobs_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  telemetry::Histogram skew_;  // seconds from the time of a Job to its creation
  std::map<std::string, std::string> key_by_uid_;
  std::map<std::string, Written> written_;  // by uid: what the cache does not show yet
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
