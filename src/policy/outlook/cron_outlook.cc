#include "policy/outlook/cron_outlook.h"

#include "policy/workloads/job_pods.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace spillway::outlook {

namespace {

using policy::Fact;
using policy::Verdict;
using workloads::JobPtr;
using workloads::LateStarts;

/// The time at which a Job was due, for the order of a table.
WallTime begun_at(const JobPtr& job) {
  const std::optional<WallTime>& started = job->status.start_time;
  return started ? *started : job->metadata.creation_timestamp.value_or(WallTime());
}

std::string state_of(const api::Job& job) {
  if (workloads::true_condition(job.status, workloads::kJobComplete) != nullptr) return "complete";
  if (workloads::true_condition(job.status, workloads::kJobFailed) != nullptr) return "failed";
  return job.suspend ? "suspended" : "running";
}

class CronOutlook : OutlookMaker {
 public:
  CronOutlook(const CronScene& scene, WallTime now) : scene_(scene), cron_(scene.cron), now_(now) {
    out_.at = now;
    out_.subject = {std::string(api::CronJob::kKind), cron_.metadata.ns, cron_.metadata.name, cron_.metadata.uid};
    workloads::CronView view{cron_, scene.jobs.value_or(std::vector<JobPtr>()), {}};
    if (!scene.jobs) {
      for (const api::ObjectReference& each : cron_.status.active) view.unseen.insert(each.uid);
    }
    plan_ = workloads::plan_cron(view, now);
    if (auto schedule = workloads::schedule_of(cron_)) schedule_ = *std::move(schedule);
    if (schedule_) next_ = schedule_->next(now);
  }

  Outlook explain() {
    say_what_comes();
    say_schedule();
    say_past();
    say_limits();
    if (!scene_.jobs) add(Code::kNotRead, {{"what", "jobs"}});
    name_jobs();
    return std::move(out_);
  }

 private:
  const workloads::JobEvent* find_event(std::string_view reason) const {
    const auto found = std::ranges::find(plan_.events, reason, &workloads::JobEvent::reason);
    return found == plan_.events.end() ? nullptr : &*found;
  }

  // The answer.

  void say_what_comes() {
    if (cron_.metadata.deletion_timestamp) return add(Verdict::kRests, Code::kBeingDeleted, {});
    if (const auto* event = find_event("UnknownTimeZone")) {
      return add(Verdict::kRefuses, Code::kCronUnknownZone, {{"message", event->message}});
    }
    if (cron_.suspend) return say_suspended();
    if (schedule_ && !next_) return add(Verdict::kRests, Code::kCronNever, {{"schedule", cron_.schedule}});
    for (const std::string_view reason : {"UnparseableSchedule", "InvalidSchedule"}) {
      const auto* event = find_event(reason);
      if (event != nullptr) return add(Verdict::kRefuses, Code::kCronUnreadable, {{"message", event->message}});
    }
    if (find_event("JobAlreadyActive") != nullptr) return say_forbidden();
    if (plan_.due) {
      std::vector<Fact> facts{time_fact("due_at", *plan_.due), {"late_seconds", seconds_since(*plan_.due)}};
      return add(Verdict::kActs, Code::kCronDue, std::move(facts));
    }
    if (const auto missed = missed_start()) {
      return add(Verdict::kWaits, Code::kCronMissed,
                 {time_fact("due_at", *missed), {"deadline_seconds", cron_.starting_deadline_seconds.value_or(0)}});
    }
    if (next_) say_next(Verdict::kWaits);
  }

  std::int64_t seconds_since(WallTime then) const {
    return std::max<std::int64_t>(std::chrono::floor<std::chrono::seconds>(now_ - then).count(), 0);
  }

  void say_suspended() {
    std::vector<Fact> facts;
    if (next_) add_instant(facts, "next", *next_, now_);
    add(Verdict::kWaits, Code::kCronSuspended, std::move(facts));
  }

  void say_forbidden() {
    std::vector<Fact> facts;
    if (!plan_.status.active.empty()) facts.push_back({"job", plan_.status.active.front().name});
    if (const auto start = last_start(LateStarts::kForgotten)) facts.push_back(time_fact("due_at", *start));
    add(Verdict::kWaits, Code::kCronForbidden, std::move(facts));
  }

  void say_next(Verdict verdict) {
    std::vector<Fact> facts;
    add_instant(facts, "next", *next_, now_);
    add(verdict, Code::kCronNext, std::move(facts));
    said_next_ = true;
  }

  std::optional<WallTime> last_start(LateStarts late) const {
    if (!schedule_) return std::nullopt;
    const auto due = workloads::due_start(cron_, *schedule_, late, now_);
    return due ? due->latest : std::nullopt;
  }

  /// A start time that was skipped because its Job was not created within startingDeadlineSeconds.
  std::optional<WallTime> missed_start() const {
    if (find_event("MissSchedule") != nullptr) return last_start(LateStarts::kForgotten);
    if (!cron_.starting_deadline_seconds || last_start(LateStarts::kForgotten)) return std::nullopt;
    return last_start(LateStarts::kCount);
  }

  // Further remarks.

  void say_schedule() {
    if (find_event("TooManyMissedTimes") != nullptr) {
      std::vector<Fact> facts;
      const auto& last = cron_.status.last_schedule_time;
      const auto& since = last ? last : cron_.metadata.creation_timestamp;
      if (since) facts.push_back(time_fact("since_at", *since));
      add(Code::kCronManyMissed, std::move(facts));
    }
    if (find_event("UnsupportedSchedule") != nullptr) add(Code::kCronUnsupportedZone, {});
    const bool runs = !cron_.suspend && !cron_.metadata.deletion_timestamp && out_.verdict != Verdict::kRefuses;
    if (next_ && runs && !said_next_) say_next(out_.verdict);
    std::vector<Fact> facts{{"schedule", cron_.schedule}};
    if (cron_.time_zone && !cron_.time_zone->empty()) facts.push_back({"time_zone", *cron_.time_zone});
    facts.push_back({"concurrency_policy", cron_.concurrency_policy.empty() ? "Allow" : cron_.concurrency_policy});
    if (cron_.starting_deadline_seconds) facts.push_back({"deadline_seconds", *cron_.starting_deadline_seconds});
    add(Code::kCronPolicy, std::move(facts));
  }

  void say_past() {
    if (!cron_.status.last_schedule_time) return add(Code::kCronNeverRan, {});
    std::vector<Fact> facts{time_fact("last_at", *cron_.status.last_schedule_time)};
    const std::string name = workloads::cron_job_name(cron_, *cron_.status.last_schedule_time);
    facts.push_back({"job", name});
    if (scene_.jobs) {
      const auto found =
          std::ranges::find_if(*scene_.jobs, [&name](const JobPtr& job) { return job->metadata.name == name; });
      facts.push_back({"state", found == scene_.jobs->end() ? "gone" : state_of(**found)});
    }
    add(Code::kCronLast, std::move(facts));
    if (plan_.status.last_successful_time) {
      add(Code::kCronLastSuccess, {time_fact("success_at", *plan_.status.last_successful_time)});
    }
  }

  void say_limits() {
    std::vector<Fact> facts;
    if (scene_.jobs) {
      const auto kept = [this](std::string_view state) {
        return std::int64_t{
            std::ranges::count_if(*scene_.jobs, [state](const JobPtr& job) { return state_of(*job) == state; })};
      };
      facts = {{"complete", kept("complete")}, {"failed", kept("failed")}};
    }
    const auto add_limit = [&facts](std::string name, const std::optional<std::int32_t>& most) {
      facts.push_back({std::move(name), std::string("any number")});
      if (most) facts.back().value = std::int64_t{*most};
    };
    add_limit("complete_max", cron_.successful_jobs_history_limit);
    add_limit("failed_max", cron_.failed_jobs_history_limit);
    if (!plan_.outlived.empty()) facts.push_back({"leaving", static_cast<std::int64_t>(plan_.outlived.size())});
    add(Code::kCronHistory, std::move(facts));
  }

  /// The latest first.
  void name_jobs() {
    if (!scene_.jobs || scene_.jobs->empty()) return;
    std::vector<JobPtr> jobs = *scene_.jobs;
    std::ranges::sort(jobs, [](const JobPtr& a, const JobPtr& b) {
      return std::pair(begun_at(b), a->metadata.name) < std::pair(begun_at(a), b->metadata.name);
    });
    Part part{.name = "jobs", .rows = {}, .total = static_cast<std::int64_t>(jobs.size())};
    for (const JobPtr& job : jobs) {
      if (part.rows.size() == kRowsMax) break;
      part.rows.push_back(row_of(*job));
    }
    out_.parts.push_back(std::move(part));
  }

  static Row row_of(const api::Job& job) {
    Row row{job.metadata.name, state_of(job), {}};
    if (job.status.start_time) row.facts.push_back(time_fact("started", *job.status.start_time));
    if (job.status.start_time && job.status.completion_time) {
      const auto took = std::chrono::floor<std::chrono::seconds>(*job.status.completion_time - *job.status.start_time);
      row.facts.push_back({"took_seconds", std::int64_t{took.count()}});
    }
    const api::JobCondition* failed = workloads::true_condition(job.status, workloads::kJobFailed);
    if (failed != nullptr) row.facts.push_back({"why", failed->reason});
    return row;
  }

  const CronScene& scene_;
  const api::CronJob& cron_;
  WallTime now_;
  workloads::CronPlan plan_;
  std::optional<workloads::CronSchedule> schedule_;
  std::optional<WallTime> next_;
  bool said_next_ = false;
};

}  // namespace

Outlook explain_cron_job(const CronScene& scene, WallTime now) {
  return CronOutlook(scene, now).explain();
}

}  // namespace spillway::outlook
