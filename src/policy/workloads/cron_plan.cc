#include "policy/workloads/cron_plan.h"

#include "api/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace spillway::workloads {

namespace {

constexpr Duration kAfterDue = milliseconds(100);
constexpr std::int64_t kManyMissed = 100;  // as upstream: more cause a warning event
constexpr int kOneByOne = 8;
constexpr std::int64_t kDeadlineMax = 100LL * 365 * 24 * 3600;  // seconds; a longer deadline never ends
constexpr hours kRequeueMax(10 * 365 * 24);
constexpr std::string_view kScheduledTimestamp = "batch.kubernetes.io/cronjob-scheduled-timestamp";

bool is_listed(const api::CronJobStatus& status, const std::string& uid) {
  return std::ranges::find(status.active, uid, &api::ObjectReference::uid) != status.active.end();
}

/// "Sun, 11 Jan 2026 00:00:00 +0000".
std::string mail_time(WallTime time) {
  constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto since = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  const std::chrono::sys_days day(std::chrono::floor<std::chrono::days>(since));
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss<std::chrono::seconds> clock(since - day.time_since_epoch());
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} +0000", kDays.at(std::chrono::weekday(day).c_encoding()),
                     static_cast<unsigned>(date.day()), kMonths.at(static_cast<unsigned>(date.month()) - 1),
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

/// The field may be any 64-bit number.
std::optional<std::chrono::seconds> starting_deadline(const api::CronJob& cron) {
  if (!cron.starting_deadline_seconds) return std::nullopt;
  return std::chrono::seconds(std::clamp<std::int64_t>(*cron.starting_deadline_seconds, 0, kDeadlineMax));
}

/// The last due time after `after`. The first few are computed one by one; if there are more, the last one is found by
/// bisection, so that a deadline of years does not cost a step for each minute.
std::optional<WallTime> last_start(const CronSchedule& schedule, WallTime after, WallTime now) {
  std::optional<WallTime> last;
  const auto step_from = [&](WallTime from) {
    const auto next = schedule.next(from);
    if (!next || *next > now) return false;
    last = after = *next;
    return true;
  };
  for (int i = 0; i < kOneByOne; ++i) {
    if (!step_from(after)) return last;
  }
  for (WallTime none_after = now; none_after - after >= seconds(1);) {
    const WallTime middle = after + (none_after - after) / 2;
    if (!step_from(middle)) none_after = middle;
  }
  return last;
}

class CronPlanner {
 public:
  CronPlanner(const CronView& view, WallTime now) : view_(view), cron_(view.cron), now_(now) {
    plan_.status = cron_.status;
  }

  CronPlan plan() {
    for (const JobPtr& job : view_.jobs) observe(*job);
    forget_missing();
    start();
    keep_history();
    return std::move(plan_);
  }

 private:
  void record_event(std::string_view type, std::string_view reason, std::string message) {
    plan_.events.push_back({type, std::string(reason), std::move(message)});
  }

  void observe(const api::Job& job) {
    const bool listed = is_listed(plan_.status, job.metadata.uid);
    if (!listed && !is_finished(job)) {
      record_event("Warning", "UnexpectedJob",
                   fmt::format("Saw a job that the controller did not create or forgot: {}", job.metadata.name));
    } else if (listed && is_finished(job)) {
      const bool complete = true_condition(job.status, kJobComplete) != nullptr;
      record_gone(plan_.status, job.metadata.uid);
      plan_.status_changed = true;
      record_event(
          "Normal", "SawCompletedJob",
          fmt::format("Saw completed job: {}, condition: {}", job.metadata.name, complete ? kJobComplete : kJobFailed));
    }
    const std::optional<WallTime>& end = job.status.completion_time;
    if (true_condition(job.status, kJobComplete) == nullptr || !end) return;
    std::optional<WallTime>& last = plan_.status.last_successful_time;
    if (last && *last >= *end) return;
    last = end;
    plan_.status_changed = true;
  }

  void forget_missing() {
    const std::vector<api::ObjectReference> active = plan_.status.active;
    for (const api::ObjectReference& each : active) {
      const bool seen =
          std::ranges::any_of(view_.jobs, [&each](const JobPtr& job) { return job->metadata.uid == each.uid; });
      if (seen || view_.unseen.contains(each.uid)) continue;
      record_gone(plan_.status, each.uid);
      plan_.status_changed = true;
      record_event("Normal", "MissingJob", fmt::format("Active job went missing: {}", each.name));
    }
  }

  void start() {
    if (cron_.metadata.deletion_timestamp) return;
    if (cron_.time_zone && !cron_.time_zone->empty() && !api::TimeZone::find(*cron_.time_zone)) {
      return record_event(
          "Warning", "UnknownTimeZone",
          fmt::format("invalid timeZone: \"{}\": unknown time zone {}", *cron_.time_zone, *cron_.time_zone));
    }
    if (cron_.suspend) return;
    const auto schedule = schedule_of(cron_);
    if (!schedule) {
      return record_event("Warning", "UnparseableSchedule",
                          fmt::format("unparseable schedule: \"{}\" : {}", cron_.schedule, schedule.error().message));
    }
    if (cron_.schedule.find("TZ") != std::string::npos) {
      record_event("Warning", "UnsupportedSchedule",
                   fmt::format("CRON_TZ or TZ used in schedule \"{}\" is not officially supported, see "
                               "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                               cron_.schedule));
    }
    const auto due = due_start(cron_, *schedule, LateStarts::kForgotten, now_);
    if (!due) {
      return record_event("Warning", "InvalidSchedule",
                          fmt::format("invalid schedule: {} : {}", cron_.schedule, due.error().message));
    }
    plan_.requeue_after = until_next_start(cron_, *schedule, now_);
    if (!due->latest) return;
    if (due->missed == MissedStarts::kMany) {
      record_event("Warning", "TooManyMissedTimes",
                   "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew");
    }
    begin(*due->latest, *schedule);
  }

  void begin(WallTime due, const CronSchedule& schedule) {
    if (const auto deadline = starting_deadline(cron_); deadline && due + *deadline < now_) {
      return record_event("Warning", "MissSchedule", "Missed scheduled time to start a job: " + mail_time(due));
    }
    const std::string name = cron_job_name(cron_, due);
    const bool begun =
        std::ranges::find(plan_.status.active, name, &api::ObjectReference::name) != plan_.status.active.end();
    if (begun || cron_.status.last_schedule_time == due) return;
    if (cron_.concurrency_policy == "Forbid" && !plan_.status.active.empty()) {
      return record_event("Normal", "JobAlreadyActive",
                          "Not starting job because prior execution is running and concurrency policy is Forbid");
    }
    if (cron_.concurrency_policy == "Replace") plan_.replaced = plan_.status.active;
    plan_.due = due;
    // The status is then that of the started Job.
    api::CronJob started = cron_;
    started.status.last_schedule_time = due;
    plan_.requeue_after = until_next_start(started, schedule, now_);
  }

  void keep_history() {
    for (const auto& [type, limit] : {std::pair(kJobComplete, cron_.successful_jobs_history_limit),
                                      std::pair(kJobFailed, cron_.failed_jobs_history_limit)}) {
      std::vector<JobPtr> ended;
      std::ranges::copy_if(view_.jobs, std::back_inserter(ended),
                           [type](const JobPtr& job) { return true_condition(job->status, type) != nullptr; });
      const std::size_t kept = static_cast<std::size_t>(std::max(limit.value_or(0), 0));
      if (!limit || ended.size() <= kept) continue;
      std::ranges::sort(ended, {}, [](const JobPtr& job) {
        return std::pair(job->status.start_time.value_or(WallTime::max()), job->metadata.name);
      });
      plan_.outlived.insert(plan_.outlived.end(), ended.begin(), ended.end() - static_cast<std::ptrdiff_t>(kept));
    }
  }

  const CronView& view_;
  const api::CronJob& cron_;
  WallTime now_;
  CronPlan plan_;
};

}  // namespace

CronPlan plan_cron(const CronView& view, WallTime now) {
  return CronPlanner(view, now).plan();
}

Result<CronSchedule> schedule_of(const api::CronJob& cron) {
  if (!cron.time_zone || cron.schedule.find("TZ") != std::string::npos) return CronSchedule::parse(cron.schedule);
  const auto zone = cron.time_zone->empty() ? api::TimeZone() : api::TimeZone::find(*cron.time_zone);
  if (!zone) return make_error(ErrorCode::kInvalid, "unknown time zone {}", *cron.time_zone);
  return CronSchedule::parse(cron.schedule, *zone);
}

Result<DueStart> due_start(const api::CronJob& cron, const CronSchedule& schedule, LateStarts late, WallTime now) {
  DueStart out;
  out.earliest = cron.metadata.creation_timestamp.value_or(WallTime());
  if (cron.status.last_schedule_time) out.earliest = *cron.status.last_schedule_time;
  if (const auto deadline = starting_deadline(cron); deadline && late == LateStarts::kForgotten) {
    out.earliest = std::max(out.earliest, now - *deadline);
  }
  const auto first = schedule.next(out.earliest);
  if (first && now < *first) return out;
  const auto second = first ? schedule.next(*first) : std::nullopt;
  const std::int64_t apart = second ? std::chrono::round<std::chrono::seconds>(*second - *first).count() : 0;
  if (second && now < *second) {
    out.latest = first;
    return out;
  }
  if (apart < 1) {
    return make_error(ErrorCode::kInvalid, "time difference between two schedules is less than 1 second");
  }
  const std::int64_t missed = std::chrono::duration_cast<std::chrono::seconds>(now - *first).count() / apart + 1;
  out.missed = missed > kManyMissed ? MissedStarts::kMany : MissedStarts::kFew;
  // ✗ An estimate by the first interval: it may be off where the schedule is uneven.
  out.latest = last_start(schedule, *first + seconds((missed - 2) * apart), now);
  return out;
}

Duration until_next_start(const api::CronJob& cron, const CronSchedule& schedule, WallTime now) {
  const auto due = due_start(cron, schedule, LateStarts::kCount, now);
  WallTime from = now;
  if (due && due->latest) {
    from = *due->latest;
  } else if (due && due->missed == MissedStarts::kNone) {
    from = due->earliest;
  }
  const auto next = schedule.next(from);
  return next ? Duration(std::min<WallTime>(*next, now + kRequeueMax) - now) + kAfterDue : Duration(hours(24));
}

std::string cron_job_name(const api::CronJob& cron, WallTime due) {
  return fmt::format("{}-{}", cron.metadata.name,
                     std::chrono::floor<std::chrono::minutes>(due.time_since_epoch()).count());
}

api::Json cron_job_document(const api::CronJob& cron, WallTime due) {
  const auto zone = api::TimeZone::find(cron.time_zone.value_or("UTC"));
  api::Json labels = api::Json::object();
  api::Json annotations = api::Json::object();
  for (const auto& [key, value] : cron.job_labels) labels[key] = value;
  for (const auto& [key, value] : cron.job_annotations) annotations[key] = value;
  annotations[kScheduledTimestamp] = api::format_time_in(due, zone.value_or(api::TimeZone()));
  return api::Json::object({{"apiVersion", api::Job::kApiVersion},
                            {"kind", api::Job::kKind},
                            {"metadata", api::Json::object({{"name", cron_job_name(cron, due)},
                                                            {"namespace", cron.metadata.ns},
                                                            {"labels", std::move(labels)},
                                                            {"annotations", std::move(annotations)}})},
                            {"spec", cron.job_spec}});
}

void record_started(api::CronJobStatus& status, const api::ObjectReference& job, WallTime due) {
  status.active.push_back(job);
  status.last_schedule_time = due;
}

void record_gone(api::CronJobStatus& status, const std::string& uid) {
  std::erase_if(status.active, [&uid](const api::ObjectReference& each) { return each.uid == uid; });
}

}  // namespace spillway::workloads
