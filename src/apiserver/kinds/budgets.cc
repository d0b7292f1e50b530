#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
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

}  // namespace

KindHooks pod_disruption_budget_hooks() {
  const TableDefinition table = pod_disruption_budget_table();
  return {.validate_create = validate_budget,
          .validate_update = validate_budget_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
