#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/tables.h"

#include <fmt/format.h>

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 2> kUnhealthyPolicies{"AlwaysAllow", "IfHealthyBudget"};

void validate_budget(const api::Json& object, api::FieldErrors& errors) {
  const api::Json& spec = value_of(object, "spec");
  if (has(spec, "minAvailable") && has(spec, "maxUnavailable")) {
    errors.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set");
  }
  validate_int_or_percent(spec, "minAvailable", "spec.minAvailable", AboveFull::kRefused, errors);
  validate_int_or_percent(spec, "maxUnavailable", "spec.maxUnavailable", AboveFull::kRefused, errors);
  require_listed(spec, "unhealthyPodEvictionPolicy", "spec.unhealthyPodEvictionPolicy", kUnhealthyPolicies, errors);
  if (has(spec, "selector")) validate_label_selector(value_of(spec, "selector"), "spec.selector", errors);
}

void validate_budget_status(const api::Json& status, api::FieldErrors& errors) {
  validate_conditions(status, "status.conditions", errors);
  for (const std::string_view count : {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    require_non_negative(status, count, fmt::format("status.{}", count), errors);
  }
}

void validate_budget_update(const api::Json& object, const api::Json&, Endpoint endpoint, api::FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return validate_budget_status(value_of(object, "status"), errors);
  validate_budget(object, errors);
}

constexpr std::array kBudgetColumns{
    kNameColumn, TableColumn{"Min Available", "string", "", 0, "Pods that must stay healthy"},
    TableColumn{"Max Unavailable", "string", "", 0, "Pods that may be missing"},
    TableColumn{"Allowed Disruptions", "integer", "", 0, "Evictions allowed now"}, kAgeColumn};

std::string bound_text(const api::Json* bound) {
  if (bound == nullptr || bound->is_null()) return "N/A";
  if (const std::string* text = bound->if_string()) return *text;
  return api::to_text(*bound);
}

TableRow budget_row(const api::Json& object, WallTime now) {
  return {{object.string_at({"metadata", "name"}), bound_text(object.at({"spec", "minAvailable"})),
           bound_text(object.at({"spec", "maxUnavailable"})), count_at(object, {"status", "disruptionsAllowed"}),
           age_of(object, now)},
          nullptr};
}

Resource pod_disruption_budget_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"pdb"};
  static const KindHooks kHooks{.validate_create = validate_budget,
                                .validate_update = validate_budget_update,
                                .columns = kBudgetColumns,
                                .table_row = budget_row};
  return {.group = "policy",
          .version = "v1",
          .plural = "poddisruptionbudgets",
          .singular = "poddisruptionbudget",
          .kind = "PodDisruptionBudget",
          .verbs = kAllVerbs,
          .storage = below("poddisruptionbudgets"),
          .short_names = kShortNames,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .requires_version = true,
          .metadata = kNoOwnChecks,
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> policy_kinds() {
  return {pod_disruption_budget_kind()};
}

}  // namespace spillway::apiserver::kinds
