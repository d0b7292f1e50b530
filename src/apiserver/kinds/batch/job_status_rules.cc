#include "apiserver/kinds/batch/job_status_rules.h"

#include "apiserver/kinds/batch/index_runs.h"
#include "apiserver/kinds/fields/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

bool is_set(const Json& status, std::string_view type) {
  return std::ranges::any_of(elements(status, "conditions"), [type](const Json& condition) {
    return text(condition, "type") == type && text(condition, "status") == "True";
  });
}

void forbid_conditions(std::string_view why, FieldErrors& errors) {
  errors.invalid("status.conditions", Json(), why);
}

void validate_uncounted(const Json& status, FieldErrors& errors) {
  std::set<std::string, std::less<>> seen;
  for (const std::string_view list : {"succeeded", "failed"}) {
    const std::string path = fmt::format("status.uncountedTerminatedPods.{}", list);
    const Json::Array& uids = elements(value_of(status, "uncountedTerminatedPods"), list);
    for (std::size_t i = 0; i < uids.size() && !errors.full(); ++i) {
      const std::string uid(uids[i].string_at({}));
      if (uid.empty()) {
        errors.invalid(api::index_path(path, i), uid, "must not be empty");
      } else if (!seen.insert(uid).second) {
        errors.duplicate(api::index_path(path, i), uid);
      }
    }
  }
}

class JobStatusCheck {
 public:
  JobStatusCheck(const Json& object, const Json& old, FieldErrors& errors)
      : spec_(value_of(object, "spec")),
        status_(value_of(object, "status")),
        before_(value_of(old, "status")),
        errors_(errors) {}

  void run() {
    for (const std::string_view count : {"active", "succeeded", "failed", "ready", "terminating"}) {
      require_non_negative(status_, count, fmt::format("status.{}", count), errors_);
    }
    validate_uncounted(status_, errors_);
    check_conditions();
    check_completion_time();
    if (is_finished()) check_finished();
    check_indexes();
    const bool checks_ready = has(status_, "ready") && (changed("ready") || changed("active"));
    if (checks_ready && count("ready") > count("active")) {
      errors_.invalid("status.ready", count("ready"), "cannot set more ready pods than active");
    }
    check_change();
  }

 private:
  bool changed(std::string_view member) const { return value_of(status_, member) != value_of(before_, member); }

  bool turned(std::string_view type) const { return is_set(status_, type) != is_set(before_, type); }

  bool has_set(std::string_view type) const { return is_set(status_, type); }

  std::int64_t count(std::string_view member) const { return integer(status_, member).value_or(0); }

  bool is_finished() const { return has_set("Complete") || has_set("Failed"); }

  bool finish_changed() const { return is_finished() != (is_set(before_, "Complete") || is_set(before_, "Failed")); }

  void forbid_pair(std::string_view one, std::string_view other) {
    if (!turned(one) && !turned(other)) return;
    if (has_set(one) && has_set(other)) {
      forbid_conditions(fmt::format("cannot set {}=True and {}=True conditions", one, other), errors_);
    }
  }

  void require_interim(std::string_view last, std::string_view interim) {
    if (!turned(last) && !turned(interim)) return;
    if (has_set(last) && !has_set(interim)) {
      forbid_conditions(fmt::format("cannot set {}=True condition without the {}=True condition", last, interim),
                        errors_);
    }
  }

  void check_conditions() {
    forbid_pair("Complete", "Failed");
    forbid_pair("Complete", "FailureTarget");
    forbid_pair("SuccessCriteriaMet", "Failed");
    forbid_pair("SuccessCriteriaMet", "FailureTarget");
    require_interim("Failed", "FailureTarget");
    require_interim("Complete", "SuccessCriteriaMet");
  }

  void check_completion_time() {
    const bool given = has(status_, "completionTime");
    if (turned("Complete") || changed("completionTime")) {
      if (given && !has_set("Complete")) {
        errors_.invalid("status.completionTime", value_of(status_, "completionTime"),
                        "cannot set completionTime when there is no Complete=True condition");
      }
      if (!given && has_set("Complete")) {
        errors_.required("status.completionTime", "completionTime is required for Complete jobs");
      }
    }
    // Both times have the same format, so their texts compare as the times do.
    if ((changed("startTime") || changed("completionTime")) && given && has(status_, "startTime") &&
        text(status_, "completionTime") < text(status_, "startTime")) {
      errors_.invalid("status.completionTime", value_of(status_, "completionTime"),
                      "completionTime cannot be set before startTime");
    }
  }

  void check_finished() {
    if ((finish_changed() || changed("active")) && count("active") > 0) {
      errors_.invalid("status.active", count("active"), "active>0 is invalid for finished job");
    }
    if ((finish_changed() || changed("terminating")) && count("terminating") > 0) {
      errors_.invalid("status.terminating", count("terminating"), "terminating>0 is invalid for finished job");
    }
    if ((finish_changed() || changed("startTime")) && !has(status_, "startTime")) {
      errors_.required("status.startTime", "startTime is required for finished job");
    }
    const Json& uncounted = value_of(status_, "uncountedTerminatedPods");
    const bool any = !elements(uncounted, "succeeded").empty() || !elements(uncounted, "failed").empty();
    if ((finish_changed() || changed("uncountedTerminatedPods")) && any) {
      errors_.invalid("status.uncountedTerminatedPods", uncounted,
                      "uncountedTerminatedPods needs to be empty for finished job");
    }
  }

  void check_indexes() {
    const std::int64_t completions = integer(spec_, "completions").value_or(0);
    const std::string_view completed = text(status_, "completedIndexes");
    const auto completed_runs = parse_runs(completed, completions);
    if (changed("completedIndexes")) {
      if (!completed_runs) errors_.invalid("status.completedIndexes", completed, completed_runs.error().message);
      if (!completed.empty() && !(text(spec_, "completionMode") == "Indexed")) {
        errors_.invalid("status.completedIndexes", completed,
                        "cannot set non-empty completedIndexes when non-indexed completion mode");
      }
    }
    if (!has(status_, "failedIndexes")) return;
    const std::string_view failed = text(status_, "failedIndexes");
    if (!has(spec_, "backoffLimitPerIndex")) {
      if (changed("failedIndexes")) {
        errors_.invalid("status.failedIndexes", failed,
                        "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
      }
      return;
    }
    const auto failed_runs = parse_runs(failed, completions);
    if (!failed_runs && changed("failedIndexes")) {
      errors_.invalid("status.failedIndexes", failed, failed_runs.error().message);
    }
    if ((changed("failedIndexes") || changed("completedIndexes")) && completed_runs && failed_runs &&
        overlap(*completed_runs, *failed_runs)) {
      errors_.invalid("status.failedIndexes", failed, "failedIndexes and completedIndexes overlap");
    }
  }

  void check_change() {
    for (const std::string_view type : {"Failed", "Complete", "FailureTarget", "SuccessCriteriaMet"}) {
      if (is_set(before_, type) && !has_set(type)) {
        forbid_conditions(fmt::format("cannot disable the terminal {}=True condition", type), errors_);
      }
    }
    const auto decreases = [this](std::string_view member) {
      return count(member) < integer(before_, member).value_or(0);
    };
    if (decreases("failed")) {
      errors_.invalid("status.failed", count("failed"), "cannot decrease the failed counter");
    }
    const bool scales = (text(spec_, "completionMode") == "Indexed") &&
                        value_of(spec_, "completions") == value_of(spec_, "parallelism");
    if (decreases("succeeded") && !scales) {
      errors_.invalid("status.succeeded", count("succeeded"), "cannot decrease the succeeded counter");
    }
    // ✗ The status is validated against the spec of the same update: a Job that resumes is not suspended any more, and
    // may set a new startTime only together with that condition.
    if (changed("startTime") && has(before_, "startTime") && !is_true(spec_, "suspend") &&
        !is_set(before_, "Suspended")) {
      errors_.invalid("status.startTime", value_of(status_, "startTime"),
                      "field is immutable for unsuspended job once set");
    }
    if (has(before_, "completionTime") && has(status_, "completionTime") && changed("completionTime")) {
      errors_.invalid("status.completionTime", value_of(status_, "completionTime"), kImmutable);
    }
  }

  const Json& spec_;
  const Json& status_;
  const Json& before_;
  FieldErrors& errors_;
};

}  // namespace

void validate_job_status(const Json& object, const Json& old, FieldErrors& errors) {
  JobStatusCheck(object, old, errors).run();
}

}  // namespace spillway::apiserver::kinds
