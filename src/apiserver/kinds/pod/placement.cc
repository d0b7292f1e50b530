// Rules for the placement of a pod: tolerations, spread constraints, gates, node labels.
#include "api/object/taint.h"
#include "api/text/names.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/rules.h"

#include <array>
#include <set>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kTaintEffects{api::kNoExecute, api::kNoSchedule, api::kPreferNoSchedule};
constexpr std::array<std::string_view, 4> kTolerationOperators{"Equal", "Exists", "Lt", "Gt"};  // two are refused
constexpr std::array<std::string_view, 2> kUnsatisfiable{"DoNotSchedule", "ScheduleAnyway"};
constexpr std::array<std::string_view, 2> kInclusionPolicies{"Honor", "Ignore"};

void check_toleration(const CheckedField& toleration) {
  const CheckedField key = toleration["key"];
  const CheckedField op = toleration["operator"];
  const CheckedField effect = toleration["effect"];
  const CheckedField value = toleration["value"];
  if (!key.text().empty()) key.require_valid(api::qualified_name_errors(key.text()));
  if (key.text().empty() && op.text() != "Exists") {
    op.invalid(op.text(), "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
  }
  if (toleration["tolerationSeconds"] && effect.text() != api::kNoExecute) {
    effect.invalid(effect.text(), "effect must be 'NoExecute' when `tolerationSeconds` is set");
  }
  if (op.text() == "Exists") {
    if (!value.text().empty()) op.invalid(toleration.json(), "value must be empty when `operator` is 'Exists'");
  } else if (op.text().empty() || op.text() == "Equal") {
    const std::string problems = api::join_problems(api::label_value_errors(value.text()));
    if (!problems.empty()) op.invalid(value.json(), problems);
  } else {
    op.not_supported(kTolerationOperators);
  }
  if (!effect.text().empty()) effect.require_one_of(kTaintEffects);
}

void check_minimal_domains(const CheckedField& domains, std::string_view when_unsatisfiable) {
  if (!domains) return;
  if (domains.integer().value_or(0) <= 0) domains.invalid("must be greater than zero");
  if (when_unsatisfiable != "DoNotSchedule") {
    domains.invalid("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " +
                    std::string(when_unsatisfiable));
  }
}

/// Pods have one expression in the selector for each of these keys since they were made: one more is the user's, as is
/// one in matchLabels. In templates nothing has been added, so that no key is twice there unless the user wrote it
/// twice. The path lacks the name of the list, as upstream's does.
void check_spread_keys_selected_twice(const CheckedField& constraint) {
  const api::Json& selector = value_of(constraint.json(), "labelSelector");
  std::set<std::string_view> selected;
  const api::Json& labels = value_of(selector, "matchLabels");
  if (labels.if_object() != nullptr) {
    for (const auto& member : *labels.if_object()) selected.insert(member.key);
  }
  const api::Json::Array& keys = elements(constraint.json(), "matchLabelKeys");
  for (const api::Json& expression : elements(selector, "matchExpressions")) {
    const std::string_view name = text(expression, "key");
    if (selected.insert(name).second) continue;
    // The last of equal keys is named.
    for (std::size_t i = keys.size(); i-- > 0;) {
      if (keys[i].string_at({}) != name) continue;
      constraint.errors().invalid(api::index_path(constraint.path(), i), keys[i],
                                  "exists in both matchLabelKeys and labelSelector");
      break;
    }
  }
}

void check_spread_label_keys(const CheckedField& constraint) {
  const CheckedField keys = constraint["matchLabelKeys"];
  if (keys.empty()) return;
  const CheckedField selector = constraint["labelSelector"];
  if (!selector) keys.forbidden("must not be specified when labelSelector is not set");
  keys.each([](const CheckedField& key) { key.require_valid(api::qualified_name_errors(key.text())); });
  if (selector) check_spread_keys_selected_twice(constraint);
}

void check_spread_constraint(const CheckedField& constraint) {
  const CheckedField skew = constraint["maxSkew"];
  if (skew.integer().value_or(0) <= 0) skew.invalid(skew.integer().value_or(0), "must be greater than zero");
  const CheckedField key = constraint["topologyKey"];
  key.require_text("can not be empty");
  const CheckedField unsatisfiable = constraint["whenUnsatisfiable"];
  unsatisfiable.require_one_of(kUnsatisfiable);
  check_minimal_domains(constraint["minDomains"], unsatisfiable.text());
  for (const std::string_view name : {"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
    const CheckedField policy = constraint[name];
    policy.optional_one_of(kInclusionPolicies);
  }
  const CheckedField selector = constraint["labelSelector"];
  check_spread_label_keys(constraint);
  if (selector) validate_label_selector(selector.json(), selector.path(), selector.errors());
}

}  // namespace

void check_tolerations(const CheckedField& tolerations) {
  tolerations.each(check_toleration);
}

void check_spread_constraints(const CheckedField& constraints) {
  constraints.each(check_spread_constraint);
  // The earlier of two of a kind is the one too many.
  std::set<std::pair<std::string_view, std::string_view>> later;
  for (std::size_t i = constraints.size(); i-- > 0 && !constraints.full();) {
    const api::Json& constraint = constraints.elements()[i];
    const std::pair kind(text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
    if (later.insert(kind).second) continue;
    const CheckedField element = constraints.at(i);
    const CheckedField both = element["{topologyKey, whenUnsatisfiable}"];
    both.errors().duplicate(both.path(),
                            std::string("{") + std::string(kind.first) + ", " + std::string(kind.second) + "}");
  }
}

void check_gates(const CheckedField& spec) {
  const CheckedField readiness = spec["readinessGates"];
  readiness.each([](const CheckedField& gate) {
    const CheckedField type = gate["conditionType"];
    type.require_valid(api::qualified_name_errors(type.text()));
  });
  const CheckedField scheduling = spec["schedulingGates"];
  std::set<std::string_view> taken;
  scheduling.each([&taken](const CheckedField& gate) {
    const std::string_view name = text(gate.json(), "name");
    for (const std::string& problem : api::qualified_name_errors(name)) gate.invalid(name, problem);
    if (!taken.insert(name).second) gate.errors().duplicate(gate.path(), name);
  });
}

}  // namespace spillway::apiserver::kinds
