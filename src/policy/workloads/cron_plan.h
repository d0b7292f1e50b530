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
  std::vector<JobPtr> jobs;      // Jobs that it owns
  std::set<std::string> unseen;  // uids of active Jobs that are not among these and exist all the same
};

struct CronPlan {
  std::vector<JobEvent> events;                // in this order, before those of what follows
  std::vector<api::ObjectReference> replaced;  // deleted first
  std::optional<WallTime> due;                 // a Job is made for that time
  std::vector<JobPtr> outlived;                // more than the history keeps: deleted last
  api::CronJobStatus status;                   // without what is replaced, made and deleted
  bool status_changed = false;
  std::optional<Duration> look_again;
};

CronPlan plan_cron(const CronView& view, WallTime now);

enum class MissedStarts { kNone, kFew, kMany };

struct DueStart {
  WallTime earliest;               // start times before this one no longer matter
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
/// The Job as it is created, without owner.
api::Json cron_job_document(const api::CronJob& cron, WallTime due);

/// Records that the Job is active, or not any more.
void note_started(api::CronJobStatus& status, const api::ObjectReference& job, WallTime due);
void note_gone(api::CronJobStatus& status, const std::string& uid);

}  // namespace spillway::workloads
