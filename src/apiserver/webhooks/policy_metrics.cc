#include "apiserver/webhooks/policy_metrics.h"

namespace spillway::apiserver {

std::string PolicyMetrics::shown(Names& names, const std::string& name) {
  if (names.contains(name)) return name;
  if (names.size() >= kNamesMax) return "other";
  return *names.insert(name).first;
}

void PolicyMetrics::record(const admission_policies::PolicyResult& result, webhooks::Operation operation) {
  for (const admission_policies::Check& check : result.checks) {
    registry_
        .counter("apiserver_validating_admission_policy_check_total",
                 "Validations of admission policies that did not hold or had no value, by what that led to.",
                 {{"policy", shown(policies_, check.policy)},
                  {"policy_binding", shown(bindings_, check.binding)},
                  {"error_type", to_string(check.fault)},
                  {"enforcement_action", to_string(check.outcome)}})
        .add();
  }
  for (const admission_policies::ConditionCount& count : result.conditions) {
    const std::string name = shown(policies_, count.policy);
    if (count.errors > 0) {
      registry_
          .counter(
              "apiserver_admission_match_condition_evaluation_errors_total",
              "Match conditions that had no value, by the name of what has them, its kind, type and the operation.",
              {{"name", name},
               {"kind", "ValidatingAdmissionPolicy"},
               {"type", "validate"},
               {"operation", to_string(operation)}})
          .add(static_cast<double>(count.errors));
    }
    if (count.excluded) {
      registry_
          .counter("apiserver_admission_match_condition_exclusions_total",
                   "Requests that its match conditions kept from a webhook.",
                   {{"name", name},
                    {"kind", "ValidatingAdmissionPolicy"},
                    {"type", "validate"},
                    {"operation", to_string(operation)}})
          .add();
    }
  }
}

}  // namespace spillway::apiserver
