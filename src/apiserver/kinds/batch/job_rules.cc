#include "apiserver/kinds/batch/job_rules.h"

#include "api/object/selector.h"
#include "api/text/names.h"
#include "apiserver/kinds/batch/index_runs.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
constexpr std::array<std::string_view, 3> kJobConditionStatuses{"False", "True", "Unknown"};
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
    require_choice(patterns[i], "status", at, kJobConditionStatuses, errors);
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

void validate_job_pods(const Json& spec, const Json& before, std::string_view path, FieldErrors& errors) {
  const Json& pod_template = value_of(spec, "template");
  validate_pod_template(pod_template, below_path(path, "template"), errors, value_of(before, "template"));
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

api::StringMap labels_of_template(const Json& spec) {
  api::StringMap labels;
  const Json& members = value_of(value_of(value_of(spec, "template"), "metadata"), "labels");
  if (members.if_object() == nullptr) return labels;
  for (const auto& [key, value] : *members.if_object()) labels.emplace(key, value.string_at({}));
  return labels;
}

// Updates.

/// Gives the old containers of a list the resources of the new ones, as far as these have the same names in the same
/// order.
void take_resources(Json& spec, const Json& wanted, std::string_view list) {
  Json::Array* containers = elements(spec, list);
  if (containers == nullptr) return;
  const Json::Array& changed = elements(wanted, list);
  for (std::size_t i = 0; i < std::min(containers->size(), changed.size()); ++i) {
    Json& container = (*containers)[i];
    if (text(container, "name") != text(changed[i], "name")) return;
    container["resources"] = value_of(changed[i], "resources");
  }
}

/// The old template with those members of the new one that a Job without running pods may change.
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
  for (const std::string_view list : {"containers", "initContainers"}) take_resources(spec, wanted, list);
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

bool is_known_suspended(const Json& status) {
  return std::ranges::any_of(elements(status, "conditions"), [](const Json& condition) {
    return text(condition, "type") == "Suspended" && text(condition, "status") == "True";
  });
}

/// A suspended Job that never started, or whose pods the controller has stopped.
bool may_reschedule(const Json& old) {
  const Json& status = value_of(old, "status");
  return is_true(value_of(old, "spec"), "suspend") && (!has(status, "startTime") || is_known_suspended(status));
}

void validate_completions_change(const Json& spec, const Json& before, FieldErrors& errors) {
  const Json& completions = value_of(spec, "completions");
  if (completions == value_of(before, "completions")) return;
  if (!is_indexed_spec(spec)) return errors.invalid("spec.completions", completions, kImmutable);
  if (completions.is_null() || completions == value_of(spec, "parallelism")) return;
  errors.invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism");
}

}  // namespace

void validate_job_template_spec(const Json& spec, const Json& before, std::string_view path, FieldErrors& errors) {
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
  validate_job_pods(spec, before, path, errors);
}

void validate_job_spec(const Json& spec, const Json& before, FieldErrors& errors) {
  validate_job_template_spec(spec, before, "spec", errors);
  const Json& selector = value_of(spec, "selector");
  if (selector.is_null()) {
    errors.required("spec.selector");
  } else {
    validate_label_selector(selector, "spec.selector", errors);
  }
  const auto parsed = api::label_selector_from_json(selector.is_null() ? nullptr : &selector);
  if (parsed && !parsed->matches(labels_of_template(spec))) {
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
  if (pods == old_pods) return;
  if (!may_reschedule(old)) return errors.invalid("spec.template", pods, kImmutable);
  if (pods != with_scheduling_of(old_pods, pods)) {
    errors.invalid("spec.template.spec", value_of(pods, "spec"), kImmutable);
  }
}

}  // namespace spillway::apiserver::kinds
