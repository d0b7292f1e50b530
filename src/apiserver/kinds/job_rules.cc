#include "apiserver/kinds/job_rules.h"

#include "api/object/selector.h"
#include "api/text/names.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 2> kCompletionModes{"Indexed", "NonIndexed"};
constexpr std::array<std::string_view, 2> kReplacementPolicies{"Failed", "TerminatingOrFailed"};
constexpr std::array<std::string_view, 1> kOnlyFailed{"Failed"};
constexpr std::array<std::string_view, 4> kFailureActions{"Count", "FailIndex", "FailJob", "Ignore"};
constexpr std::array<std::string_view, 2> kExitCodeOperators{"In", "NotIn"};
constexpr std::array<std::string_view, 3> kConditionStatuses{"False", "True", "Unknown"};
constexpr std::array<std::string_view, 2> kRestartPolicies{"Never", "OnFailure"};

constexpr std::int64_t kIndexedParallelismMax = 100'000;
constexpr std::int64_t kManyCompletions = 100'000;
constexpr std::int64_t kManyCompletionsParallelismMax = 10'000;
constexpr std::size_t kRulesMax = 20;
constexpr std::size_t kExitCodesMax = 255;
constexpr std::size_t kManagedByMax = 63;
constexpr std::size_t kSucceededIndexesMax = 64U << 10U;

std::string below_path(std::string_view path, std::string_view member) {
  return fmt::format("{}.{}", path, member);
}

bool is_indexed_spec(const Json& spec) {
  return text(spec, "completionMode") == "Indexed";
}

void check_at_most(const Json& spec, std::string_view key, std::int64_t most, std::string_view path,
                   std::string_view why, FieldErrors& errors) {
  const auto value = integer(spec, key);
  if (value && *value > most) errors.invalid(below_path(path, key), *value, why);
}

// Indexes as text.

struct IndexText {
  std::string error;  // empty: none
  std::int64_t total = 0;
  std::set<std::int64_t> indexes;
};

std::optional<std::int64_t> number_in(std::string_view part) {
  std::int64_t value = 0;
  const auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (ec != std::errc{} || end != part.data() + part.size() || value < 0) return std::nullopt;
  return value;
}

struct IndexRun {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Result<IndexRun> parse_run(std::string_view part, std::int64_t completions) {
  const auto wrong = [](std::string message) { return Error{ErrorCode::kInvalid, std::move(message), {}}; };
  if (std::ranges::count(part, '-') > 1) {
    return wrong(
        fmt::format("the fragment \"{}\" violates the requirement that an index interval can have at most two "
                    "parts separated by '-'",
                    part));
  }
  const std::size_t dash = part.find('-');
  const std::string_view texts[] = {part.substr(0, dash),
                                    dash == std::string_view::npos ? part : part.substr(dash + 1)};
  std::int64_t ends[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto value = number_in(texts[i]);
    if (!value) return wrong(fmt::format("cannot convert string to integer for index: \"{}\"", texts[i]));
    if (*value >= completions) return wrong(fmt::format("too large index: \"{}\"", texts[i]));
    ends[i] = *value;
  }
  if (dash != std::string_view::npos && ends[0] >= ends[1]) {
    return wrong(fmt::format("non-increasing order, previous: {}, current: {}", ends[0], ends[1]));
  }
  return IndexRun{ends[0], ends[1]};
}

/// "0-2,5": ascending, below `completions`. Nothing is fine.
Result<std::vector<IndexRun>> parse_runs(std::string_view written, std::int64_t completions) {
  std::vector<IndexRun> runs;
  for (std::size_t start = 0; !written.empty() && start <= written.size();) {
    const std::size_t comma = std::min(written.find(',', start), written.size());
    const auto run = parse_run(written.substr(start, comma - start), completions);
    if (!run) return run.error();
    if (!runs.empty() && runs.back().last >= run->first) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("non-increasing order, previous: {}, current: {}", runs.back().last, run->first),
                   {}};
    }
    runs.push_back(*run);
    start = comma + 1;
  }
  return runs;
}

std::int64_t total_of(const std::vector<IndexRun>& runs) {
  std::int64_t total = 0;
  for (const IndexRun& run : runs) total += run.last - run.first + 1;
  return total;
}

bool overlap(const std::vector<IndexRun>& a, const std::vector<IndexRun>& b) {
  return std::ranges::any_of(a, [&b](const IndexRun& one) {
    return std::ranges::any_of(
        b, [&one](const IndexRun& other) { return one.first <= other.last && other.first <= one.last; });
  });
}

// Numbers.

void validate_indexed(const Json& spec, std::string_view path, FieldErrors& errors) {
  const auto completions = integer(spec, "completions");
  const auto failed_max = integer(spec, "maxFailedIndexes");
  if (!completions) errors.required(below_path(path, "completions"), "when completion mode is Indexed");
  check_at_most(spec, "parallelism", kIndexedParallelismMax, path,
                "must be less than or equal to 100000 when completion mode is Indexed", errors);
  if (completions) {
    check_at_most(spec, "maxFailedIndexes", *completions, path, "must be less than or equal to completions", errors);
  }
  check_at_most(spec, "maxFailedIndexes", kIndexedParallelismMax, path, "must be less than or equal to 100000", errors);
  if (!completions || *completions <= kManyCompletions || !has(spec, "backoffLimitPerIndex")) return;
  if (!failed_max) {
    errors.required(below_path(path, "maxFailedIndexes"), "must be specified when completions is above 100000");
  }
  constexpr std::string_view kWhy =
      "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index";
  check_at_most(spec, "parallelism", kManyCompletionsParallelismMax, path, kWhy, errors);
  check_at_most(spec, "maxFailedIndexes", kManyCompletionsParallelismMax, path, kWhy, errors);
}

void validate_numbers(const Json& spec, std::string_view path, FieldErrors& errors) {
  for (const std::string_view number : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                                        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    require_non_negative(spec, number, below_path(path, number), errors);
  }
  if (has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex")) {
    errors.required(below_path(path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  }
}

/// "example.com/controller".
void validate_managed_by(const Json& spec, std::string_view path, FieldErrors& errors) {
  if (!has(spec, "managedBy")) return;
  const std::string_view name = text(spec, "managedBy");
  const std::size_t slash = name.find('/');
  const std::string field = below_path(path, "managedBy");
  if (name.empty()) return errors.required(field);
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == name.size()) {
    errors.invalid(field, name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  } else {
    require_valid(api::dns1123_subdomain_errors(name.substr(0, slash)), name.substr(0, slash), field, errors);
    require_valid(api::path_segment_part_errors(name.substr(slash + 1)), name.substr(slash + 1), field, errors);
  }
  if (name.size() > kManagedByMax) errors.too_long(field, kManagedByMax);
}

// Policies.

std::set<std::string, std::less<>> container_names_of(const Json& spec) {
  std::set<std::string, std::less<>> names;
  const Json& pod = value_of(value_of(spec, "template"), "spec");
  for (const std::string_view list : {"initContainers", "containers"}) {
    for (const Json& container : elements(pod, list)) names.emplace(text(container, "name"));
  }
  return names;
}

/// Absent as well as empty is required; else one of those supported.
void require_choice(const Json& object, std::string_view key, std::string_view path,
                    std::span<const std::string_view> supported, FieldErrors& errors) {
  const std::string field = below_path(path, key);
  if (text(object, key).empty())
    return errors.required(field, fmt::format("valid values: {}", fmt::join(supported, ", ")));
  if (std::ranges::find(supported, text(object, key)) == supported.end()) {
    errors.not_supported(field, value_of(object, key), supported);
  }
}

void validate_exit_codes(const Json& spec, const Json& pattern, std::string_view path, FieldErrors& errors) {
  require_choice(pattern, "operator", path, kExitCodeOperators, errors);
  if (has(pattern, "containerName") && !container_names_of(spec).contains(text(pattern, "containerName"))) {
    errors.invalid(below_path(path, "containerName"), value_of(pattern, "containerName"),
                   "must be one of the container or initContainer names in the pod template");
  }
  const std::string field = below_path(path, "values");
  const Json::Array& values = elements(pattern, "values");
  if (values.empty()) {
    errors.invalid(field, Json::array(), "at least one value is required");
  } else if (values.size() > kExitCodesMax) {
    errors.too_many(field, values.size(), kExitCodesMax);
  }
  bool ordered = true;
  std::set<std::int64_t> seen;
  std::int64_t before = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < values.size() && !errors.full(); ++i) {
    const std::int64_t code = values[i].if_int64().value_or(0);
    if (code == 0 && text(pattern, "operator") == "In") {
      errors.invalid(api::index_path(field, i), code, "must not be 0 for the In operator");
    }
    if (!seen.insert(code).second) errors.duplicate(api::index_path(field, i), code);
    ordered = ordered && before <= code;
    before = code;
  }
  if (!ordered) errors.invalid(field, value_of(pattern, "values"), "must be ordered");
}

void validate_pod_conditions(const Json::Array& patterns, std::string_view path, FieldErrors& errors) {
  if (patterns.size() > kRulesMax) errors.too_many(path, patterns.size(), kRulesMax);
  for (std::size_t i = 0; i < patterns.size() && !errors.full(); ++i) {
    const std::string at = api::index_path(path, i);
    require_valid(api::qualified_name_errors(text(patterns[i], "type")), value_of(patterns[i], "type"),
                  below_path(at, "type"), errors);
    require_choice(patterns[i], "status", at, kConditionStatuses, errors);
  }
}

void validate_failure_rule(const Json& spec, const Json& rule, std::string_view path, FieldErrors& errors) {
  if (text(rule, "action") == "FailIndex") {
    if (!has(spec, "backoffLimitPerIndex")) {
      errors.invalid(below_path(path, "action"), value_of(rule, "action"),
                     "requires the backoffLimitPerIndex to be set");
    }
  } else {
    require_choice(rule, "action", path, kFailureActions, errors);
  }
  const Json::Array& conditions = elements(rule, "onPodConditions");
  if (has(rule, "onExitCodes")) {
    validate_exit_codes(spec, value_of(rule, "onExitCodes"), below_path(path, "onExitCodes"), errors);
  }
  validate_pod_conditions(conditions, below_path(path, "onPodConditions"), errors);
  if (has(rule, "onExitCodes") && !conditions.empty()) {
    errors.invalid(path, rule, "specifying both OnExitCodes and OnPodConditions is not supported");
  }
  if (!has(rule, "onExitCodes") && conditions.empty()) {
    errors.invalid(path, rule, "specifying one of OnExitCodes and OnPodConditions is required");
  }
}

void validate_failure_policy(const Json& spec, std::string_view path, FieldErrors& errors) {
  if (!has(spec, "podFailurePolicy")) return;
  const std::string field = below_path(path, "podFailurePolicy.rules");
  const Json::Array& rules = elements(value_of(spec, "podFailurePolicy"), "rules");
  if (rules.size() > kRulesMax) errors.too_many(field, rules.size(), kRulesMax);
  for (std::size_t i = 0; i < rules.size() && !errors.full(); ++i) {
    validate_failure_rule(spec, rules[i], api::index_path(field, i), errors);
  }
}

void validate_success_rule(const Json& spec, const Json& rule, std::string_view path, FieldErrors& errors) {
  if (!has(rule, "succeededCount") && !has(rule, "succeededIndexes")) {
    errors.required(path, "at least one of succeededCount or succeededIndexes must be specified");
  }
  const std::int64_t completions = integer(spec, "completions").value_or(0);
  std::int64_t total = 0;
  if (has(rule, "succeededIndexes")) {
    const std::string field = below_path(path, "succeededIndexes");
    const std::string_view written = text(rule, "succeededIndexes");
    if (written.size() > kSucceededIndexesMax) return errors.too_long(field, kSucceededIndexesMax);
    const auto runs = parse_runs(written, completions);
    if (!runs) {
      errors.invalid(field, written, fmt::format("error parsing succeededIndexes: {}", runs.error().message));
    } else {
      total = total_of(*runs);
    }
  }
  const auto count = integer(rule, "succeededCount");
  if (!count) return;
  const std::string field = below_path(path, "succeededCount");
  require_non_negative(rule, "succeededCount", field, errors);
  if (*count > completions) {
    errors.invalid(field, *count,
                   fmt::format("must be less than or equal to {} (the number of specified completions)", completions));
  } else if (has(rule, "succeededIndexes") && *count > total) {
    errors.invalid(field, *count,
                   fmt::format("must be less than or equal to {} (the number of indexes in the specified "
                               "succeededIndexes field)",
                               total));
  }
}

void validate_success_policy(const Json& spec, std::string_view path, FieldErrors& errors) {
  if (!has(spec, "successPolicy")) return;
  const std::string field = below_path(path, "successPolicy");
  if (!is_indexed_spec(spec)) {
    return errors.invalid(field, value_of(spec, "successPolicy"), "requires indexed completion mode");
  }
  const std::string rules_field = below_path(field, "rules");
  const Json::Array& rules = elements(value_of(spec, "successPolicy"), "rules");
  if (rules.empty()) {
    errors.required(rules_field, "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kRulesMax) errors.too_many(rules_field, rules.size(), kRulesMax);
  for (std::size_t i = 0; i < rules.size() && !errors.full(); ++i) {
    validate_success_rule(spec, rules[i], api::index_path(rules_field, i), errors);
  }
}

// The template.

void validate_job_pods(const Json& spec, std::string_view path, FieldErrors& errors) {
  const Json& pod_template = value_of(spec, "template");
  validate_pod_template(pod_template, below_path(path, "template"), errors);
  const std::string field = below_path(path, "template.spec.restartPolicy");
  const std::string_view policy = text(value_of(pod_template, "spec"), "restartPolicy");
  if (policy.empty() || policy == "Always") {
    errors.required(field, "valid values: \"OnFailure\", \"Never\"");
  } else if (policy != "OnFailure" && policy != "Never") {
    errors.not_supported(field, policy, kRestartPolicies);
  } else if (has(spec, "podFailurePolicy") && policy != "Never") {
    errors.invalid(field, policy, "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

api::StringMap template_labels(const Json& spec) {
  api::StringMap labels;
  const Json& members = value_of(value_of(value_of(spec, "template"), "metadata"), "labels");
  if (members.if_object() == nullptr) return labels;
  for (const auto& [key, value] : *members.if_object()) labels.emplace(key, value.string_at({}));
  return labels;
}

// Updates.

/// The old template as it would be with what a Job that has not begun may still change of it.
Json with_scheduling_of(Json old, const Json& changed) {
  Json& spec = old.make({"spec"});
  const Json& wanted = value_of(changed, "spec");
  const auto take = [](Json& to, const Json& from, std::string_view key) {
    if (has(from, key)) {
      to[key] = value_of(from, key);
    } else {
      to.erase({key});
    }
  };
  for (const std::string_view member : {"nodeSelector", "tolerations", "schedulingGates"}) take(spec, wanted, member);
  for (const std::string_view member : {"annotations", "labels"}) {
    take(old.make({"metadata"}), value_of(changed, "metadata"), member);
  }
  if (has(wanted, "affinity")) {
    take(spec.make({"affinity"}), value_of(wanted, "affinity"), "nodeAffinity");
  } else if (has(spec, "affinity")) {
    spec["affinity"].erase({"nodeAffinity"});
    if (spec["affinity"].if_object() == nullptr || spec["affinity"].if_object()->empty()) spec.erase({"affinity"});
  }
  return old;
}

bool may_reschedule(const Json& old) {
  return is_true(value_of(old, "spec"), "suspend") && !has(value_of(old, "status"), "startTime");
}

void validate_completions_change(const Json& spec, const Json& before, FieldErrors& errors) {
  const Json& completions = value_of(spec, "completions");
  if (completions == value_of(before, "completions")) return;
  if (!is_indexed_spec(spec)) return errors.invalid("spec.completions", completions, kImmutable);
  if (completions.is_null() || completions == value_of(spec, "parallelism")) return;
  errors.invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism");
}

// The status.

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
    const bool judged = has(status_, "ready") && (changed("ready") || changed("active"));
    if (judged && count("ready") > count("active")) {
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
    // The same form on both sides, so texts compare as times do.
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
      if (!completed.empty() && !is_indexed_spec(spec_)) {
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
    const bool scales = is_indexed_spec(spec_) && value_of(spec_, "completions") == value_of(spec_, "parallelism");
    if (decreases("succeeded") && !scales) {
      errors_.invalid("status.succeeded", count("succeeded"), "cannot decrease the succeeded counter");
    }
    // ✗ The status is judged by the spec that goes with it: a Job that resumes is not suspended any more, and may say
    // when it began anew only with the condition that says so.
    if (changed("startTime") && has(before_, "startTime") && !is_true(spec_, "suspend") &&
        !is_set(before_, "Suspended")) {
      errors_.required("status.startTime", has(status_, "startTime")
                                               ? "startTime cannot be modified for unsuspended job"
                                               : "startTime cannot be removed for unsuspended job");
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

void validate_job_template_spec(const Json& spec, std::string_view path, FieldErrors& errors) {
  validate_numbers(spec, path, errors);
  validate_managed_by(spec, path, errors);
  if (has(spec, "completionMode")) {
    require_listed(spec, "completionMode", below_path(path, "completionMode"), kCompletionModes, errors);
  }
  if (is_indexed_spec(spec)) validate_indexed(spec, path, errors);
  if (text(spec, "completionMode") == "NonIndexed" || !has(spec, "completionMode")) {
    for (const std::string_view member : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (has(spec, member)) {
        errors.invalid(below_path(path, member), value_of(spec, member), "requires indexed completion mode");
      }
    }
  }
  validate_failure_policy(spec, path, errors);
  validate_success_policy(spec, path, errors);
  const bool policy = has(spec, "podFailurePolicy");
  require_listed(spec, "podReplacementPolicy", below_path(path, "podReplacementPolicy"),
                 policy ? std::span<const std::string_view>(kOnlyFailed) : kReplacementPolicies, errors);
  validate_job_pods(spec, path, errors);
}

void validate_job_spec(const Json& spec, FieldErrors& errors) {
  validate_job_template_spec(spec, "spec", errors);
  const Json& selector = value_of(spec, "selector");
  if (selector.is_null()) {
    errors.required("spec.selector");
  } else {
    validate_label_selector(selector, "spec.selector", errors);
  }
  const auto parsed = api::label_selector_from_json(selector.is_null() ? nullptr : &selector);
  if (parsed && !parsed->matches(template_labels(spec))) {
    errors.invalid("spec.template.metadata.labels",
                   value_of(value_of(value_of(spec, "template"), "metadata"), "labels"),
                   "`selector` does not match template `labels`");
  }
}

void validate_job_change(const Json& object, const Json& old, FieldErrors& errors) {
  const Json& spec = value_of(object, "spec");
  const Json& before = value_of(old, "spec");
  validate_completions_change(spec, before, errors);
  for (const std::string_view member :
       {"selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"}) {
    if (value_of(spec, member) != value_of(before, member)) {
      errors.invalid(below_path("spec", member), value_of(spec, member), kImmutable);
    }
  }
  const Json& pods = value_of(spec, "template");
  const Json& old_pods = value_of(before, "template");
  if (pods != (may_reschedule(old) ? with_scheduling_of(old_pods, pods) : old_pods)) {
    errors.invalid("spec.template", pods, kImmutable);
  }
}

void validate_job_status(const Json& object, const Json& old, FieldErrors& errors) {
  JobStatusCheck(object, old, errors).run();
}

}  // namespace spillway::apiserver::kinds
