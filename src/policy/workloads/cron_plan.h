// One sync of a CronJob: the results of its Jobs, the Job that is due, the Jobs to delete, and the time of the next
// sync.
// Thread: any (pure). Bounds: one Job is made in one sync, however many were missed. Source: Kubernetes docs,
// "CronJob"; spec "Scheduler and workloads", 15; vectors workloads/cron_next.
#pragma once

#include "api/json/json.h"
#include "api/object/job.h"
#include "policy/workloads/cron_schedule.h"
#include "policy/workloads/job_plan.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::workloads {

using JobPtr = std::shared_ptr<const api::Job>;

struct CronView {
  const api::CronJob& cron;
  std::vector<JobPtr> jobs;      // Jobs that the CronJob owns
  std::set<std::string> unseen;  // uids of active Jobs that exist and are missing in `jobs`
};

struct CronPlan {
  std::vector<JobEvent> events;                // in order, to be recorded before those of the other steps
  std::vector<api::ObjectReference> replaced;  // deleted first
  std::optional<WallTime> due;                 // a Job is made for that time
  std::vector<JobPtr> outlived;                // more than the history keeps: deleted last
  api::CronJobStatus status;                   // status without the Jobs that this plan replaces, makes and deletes
  bool status_changed = false;
  std::optional<Duration> requeue_after;
};

CronPlan plan_cron(const CronView& view, WallTime now);

enum class MissedStarts { kNone, kFew, kMany };

struct DueStart {
  WallTime earliest;               // start times before this one are ignored
  std::optional<WallTime> latest;  // the last that is due by now
  MissedStarts missed = MissedStarts::kNone;
};

/// The treatment of start times older than startingDeadlineSeconds.
enum class LateStarts { kCount, kForgotten };

/// kInvalid: a schedule that is never due, or more than once a second.
Result<DueStart> due_start(const api::CronJob& cron, const CronSchedule& schedule, LateStarts late, WallTime now);
/// The time until the next sync of the CronJob.
Duration until_next_start(const api::CronJob& cron, const CronSchedule& schedule, WallTime now);

/// Parses the schedule with the zone of the CronJob. kInvalid: an invalid schedule or zone.
Result<CronSchedule> schedule_of(const api::CronJob& cron);

/// "backup-29467327": the minutes since 1970.
std::string cron_job_name(const api::CronJob& cron, WallTime due);
/// The document of a Job, without owner.
api::Json cron_job_document(const api::CronJob& cron, WallTime due);

/// Adds the Job to the active ones, or removes it.
void record_started(api::CronJobStatus& status, const api::ObjectReference& job, WallTime due);
void record_gone(api::CronJobStatus& status, const std::string& uid);

}  // namespace spillway::workloads
