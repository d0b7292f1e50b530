#include "policy/admission_policies/admission_policy.h"

#include "api/json/json_values.h"
#include "base/ascii.h"
#include "policy/admission_policies/policy_compiler.h"

#include <array>
#include <utility>

namespace spillway::admission_policies {

namespace {

using api::Json;

const Json& member_of(const Json& object, std::string_view key) {
  static const Json kNothing;
  const Json* found = object.find(key);
  return found == nullptr ? kNothing : *found;
}

const Json::Array& elements_of(const Json& object, std::string_view key) {
  static const Json::Array kNothing;
  const Json::Array* list = member_of(object, key).if_array();
  return list == nullptr ? kNothing : *list;
}

std::string text_of(const Json& object, std::string_view key) {
  return std::string(object.string_at({key}));
}

bool has_text(const Json& object, std::string_view key) {
  return !trimmed(object.string_at({key}), kWhiteSpace).empty();
}

MatchResources match_of(const Json& match) {
  MatchResources made{.rules = {},
                      .excluded = {},
                      .namespaces = webhooks::selector_at(match, "namespaceSelector"),
                      .objects = webhooks::selector_at(match, "objectSelector"),
                      .equivalent = match.string_at({"matchPolicy"}) != "Exact"};
  for (const Json& rule : elements_of(match, "resourceRules")) made.rules.push_back(webhooks::rule_of(rule));
  for (const Json& rule : elements_of(match, "excludeResourceRules")) made.excluded.push_back(webhooks::rule_of(rule));
  return made;
}

Validation validation_of(const Json& validation, const PolicyCompiler& compiler) {
  std::string text = text_of(validation, "expression");
  Result<cel::Expression> holds = compiler.validation(text);
  Validation made{.text = std::move(text),
                  .holds = std::move(holds),
                  .message = text_of(validation, "message"),
                  .reason = text_of(validation, "reason")};
  if (has_text(validation, "messageExpression")) {
    made.message_expression = compiler.message(validation.string_at({"messageExpression"}));
  }
  return made;
}

ParamRef param_ref_of(const Json& ref) {
  ParamRef made{.name = text_of(ref, "name"),
                .ns = text_of(ref, "namespace"),
                .needed = ref.string_at({"parameterNotFoundAction"}) != "Allow"};
  if (member_of(ref, "selector").is_object()) made.selector = webhooks::selector_at(ref, "selector");
  return made;
}

}  // namespace

std::string_view to_string(Action action) {
  static constexpr std::array<std::string_view, 3> kNames{"Deny", "Warn", "Audit"};
  return kNames[static_cast<std::size_t>(action)];
}

AdmissionPolicy policy_of(const Json& object) {
  const Json& spec = member_of(object, "spec");
  AdmissionPolicy made{.name = std::string(object.string_at({"metadata", "name"})),
                       .match = match_of(member_of(spec, "matchConstraints")),
                       .fails_open = spec.string_at({"failurePolicy"}) == "Ignore"};
  if (const Json& kind = member_of(spec, "paramKind"); kind.is_object()) {
    made.param_kind = ParamKind{text_of(kind, "apiVersion"), text_of(kind, "kind")};
  }
  PolicyCompiler compiler(
      {.params = made.param_kind.has_value(), .variables = !elements_of(spec, "variables").empty()});
  made.conditions = webhooks::match_conditions_of(spec, compiler.condition_environment());
  for (const Json& one : elements_of(spec, "variables")) {
    std::string name = text_of(one, "name");
    Result<cel::Expression> expression = compiler.variable(name, one.string_at({"expression"}));
    made.variables.push_back({std::move(name), std::move(expression)});
  }
  for (const Json& one : elements_of(spec, "validations")) made.validations.push_back(validation_of(one, compiler));
  for (const Json& one : elements_of(spec, "auditAnnotations")) {
    made.annotations.push_back(
        {text_of(one, "key"), compiler.annotation(trimmed(one.string_at({"valueExpression"}), kWhiteSpace))});
  }
  return made;
}

PolicyBinding binding_of(const Json& object) {
  const Json& spec = member_of(object, "spec");
  PolicyBinding made{.name = std::string(object.string_at({"metadata", "name"})),
                     .policy = text_of(spec, "policyName")};
  if (const Json& ref = member_of(spec, "paramRef"); ref.is_object()) made.params = param_ref_of(ref);
  if (const Json& match = member_of(spec, "matchResources"); match.is_object()) made.match = match_of(match);
  for (const std::string& word : api::strings_at(spec, {"validationActions"})) {
    for (const Action action : {Action::kDeny, Action::kWarn, Action::kAudit}) {
      if (word == to_string(action)) made.actions.push_back(action);
    }
  }
  return made;
}

const webhooks::ResourceName* matched_name(const MatchResources& match, const webhooks::Subject& subject) {
  if (webhooks::matched_name(match.excluded, match.equivalent, subject) != nullptr) return nullptr;
  return webhooks::matched_name(match.rules, match.equivalent, subject);
}

bool matches_binding(const MatchResources& match, const webhooks::Subject& subject, const webhooks::Selectable& seen) {
  if (!webhooks::selects(match.namespaces, match.objects, seen)) return false;
  if (match.rules.empty()) return webhooks::matched_name(match.excluded, match.equivalent, subject) == nullptr;
  return matched_name(match, subject) != nullptr;
}

}  // namespace spillway::admission_policies
