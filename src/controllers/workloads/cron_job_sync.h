// One sync of a CronJob, from the Jobs that it has started to its status. The order of its steps is at the top of
// cron_job_sync.cc. Which Jobs are started and deleted is decided by policy/workloads/cron_plan.h.
// Thread: loop. Bounds: one call under way. Source: Kubernetes docs, "CronJob"; spec "Scheduler and workloads", 15.
#pragma once

#include "api/object/job.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "controllers/shared/step_run.h"
#include "controllers/workloads/cron_job.h"
#include "policy/workloads/cron_plan.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

/// The parts of the controller that all syncs of CronJobs share.
struct CronJobTools {
  Shared shared;
  const OwnedObjects<api::Job>& jobs;
  telemetry::Histogram& skew;                                // seconds from the time of a Job to its creation
  const std::map<std::string, std::string>& key_by_uid;      // the CronJobs in the cache
  std::map<std::string, WrittenCronStatus>& written_by_uid;  // last written status of each CronJob
  client::WorkQueue& queue;
};

enum class CronJobStep : std::uint8_t {
  kActiveJobs,   // read an active Job that the cache does not show: it may exist; back to kActiveJobs
  kPlan,         // decide which Jobs to start and to delete
  kReplacement,  // delete a running Job that a new one replaces; back to kReplacement
  kCreation,     // create the Job that is due
  kNamesake,     // read the Job that has the name of the new one: it may be ours
  kHistory,      // delete a finished Job beyond the limits of the history; back to kHistory
  kStatus,       // write the status if it differs
  kEnd,
};

class CronJobSync final : public StepRun<CronJobSync, CronJobStep> {
 public:
  using CronJobPtr = std::shared_ptr<const api::CronJob>;
  using Step = CronJobStep;

  /// The parts of `tools` must outlive the sync.
  CronJobSync(const CronJobTools& tools, CronJobPtr cron);

 private:
  Next run(Step step, Now now) override;

  Next read_active_job();
  Next on_active_job(const Result<api::Json>& outcome, Now now);
  Next plan(Now now);
  Next replace_job();
  Next create_job();
  Next on_created(const Result<api::Json>& outcome, Now now);
  Next read_namesake();
  Next on_namesake(const Result<api::Json>& outcome, Now now);
  Next cut_history();
  Next write_status();
  Next on_status_written(const Result<api::Json>& outcome, Now now);
  Next end(Now now);

  /// Deletes a Job; the present step follows again.
  Next remove(api::ObjectReference job, Step present);
  Next on_removed(const Result<api::Json>& outcome, Now now);
  Next give_up(const Error& error, Now now);
  void record(client::EventType type, std::string_view reason, const std::string& message, Now now);

  const CronJobTools tools_;
  CronJobPtr cron_;
  std::string key_;
  std::vector<api::ObjectReference> unknown_;  // active, not in the cache, not read so far
  std::set<std::string> unseen_;               // the UIDs of those that exist
  workloads::CronPlan plan_;
  std::size_t replaced_ = 0;       // Jobs of plan_.replaced that have been deleted
  std::size_t outlived_ = 0;       // Jobs of plan_.outlived that have been deleted
  api::ObjectReference removing_;  // the Job that is being deleted
  bool name_is_taken_ = false;     // true if another Job has the name of the new one
};

}  // namespace spillway::controllers
