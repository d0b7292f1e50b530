#include "apiserver/kinds/admissionregistration/policy_rules.h"

#include "api/text/names.h"
#include "apiserver/kinds/admissionregistration/webhook_rules.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/fields.h"
#include "base/ascii.h"
#include "base/utf8.h"
#include "policy/admission_policies/policy_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using admission_policies::PolicyCompiler;
using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 2> kPolicyFailures{"Fail", "Ignore"};
constexpr std::array<std::string_view, 2> kPolicyMatches{"Equivalent", "Exact"};
constexpr std::array<std::string_view, 3> kRefusalReasons{"Forbidden", "Invalid", "RequestEntityTooLarge"};
constexpr std::array<std::string_view, 3> kValidationActions{"Audit", "Deny", "Warn"};
constexpr std::array<std::string_view, 2> kNotFoundActions{"Allow", "Deny"};
constexpr std::size_t kAnnotationsMax = 20;
constexpr std::size_t kAnnotationExpressionMax = 5U << 10U;  // bytes

std::string_view bare(const CheckedField& field) {
  return trimmed(field.text(), kWhiteSpace);
}

void default_match(Json* match) {
  if (match == nullptr || !match->is_object()) return;
  set_default(*match, "matchPolicy", "Equivalent");
  for (const std::string_view selector : {"namespaceSelector", "objectSelector"}) {
    if (!has(*match, selector)) (*match)[selector] = Json::object();
  }
  for (const std::string_view rules : {"resourceRules", "excludeResourceRules"}) {
    Json::Array* list = elements(*match, rules);
    if (list == nullptr) continue;
    for (Json& rule : *list) {
      if (rule.is_object() && !has(rule, "scope")) rule["scope"] = "*";
    }
  }
}

void validate_named_rule(const CheckedField& rule) {
  std::set<std::string_view> seen;
  const CheckedField names = rule["resourceNames"];
  names.each([&](const CheckedField& name) {
    name.require_valid(api::path_segment_errors(name.text()));
    if (!seen.insert(name.text()).second) name.duplicate();
  });
  validate_matched_rule(rule);
}

void validate_match(const CheckedField& match) {
  const CheckedField policy = match["matchPolicy"];
  policy.optional_one_of(kPolicyMatches);
  for (const std::string_view name : {"namespaceSelector", "objectSelector"}) {
    const CheckedField selector = match[name];
    if (selector.present()) validate_label_selector(selector.json(), selector.path(), selector.errors());
  }
  const CheckedField rules = match["resourceRules"];
  rules.each(validate_named_rule);
  const CheckedField excluded = match["excludeResourceRules"];
  excluded.each(validate_named_rule);
}

void validate_param_version(const CheckedField& field) {
  const std::string_view text = field.text();
  if (text.empty()) return field.required();
  if (std::ranges::count(text, '/') > 1) {
    return field.invalid(fmt::format("unexpected GroupVersion string: {}", text));
  }
  const std::size_t slash = text.find('/');
  const std::string_view group = slash == std::string_view::npos ? std::string_view() : text.substr(0, slash);
  const std::string_view version = slash == std::string_view::npos ? text : text.substr(slash + 1);
  if (!group.empty()) {
    if (const auto problems = api::dns1123_subdomain_errors(group); !problems.empty()) {
      field.invalid(Json(group), fmt::format("{}", fmt::join(problems, ",")));
    }
  }
  if (version.empty()) return field.invalid("version must be specified");
  if (const auto problems = api::dns1035_label_errors(version); !problems.empty()) {
    field.invalid(Json(version), fmt::format("{}", fmt::join(problems, ",")));
  }
}

void validate_param_kind(const CheckedField& param) {
  validate_param_version(param["apiVersion"]);
  const CheckedField kind = param["kind"];
  if (kind.text().empty()) return kind.required();
  if (const auto problems = api::dns1035_label_errors(lower_case(kind.text())); !problems.empty()) {
    kind.invalid(fmt::format("may have mixed case, but should otherwise match: {}", fmt::join(problems, ",")));
  }
}

/// Reports an expression that does not compile.
void report(const CheckedField& field, const Result<cel::Expression>& compiled) {
  constexpr std::size_t kExpressionShownMax = 512;  // bytes; leaves room in the answer for the errors
  if (!compiled) field.invalid(Json(shortened(field.text(), kExpressionShownMax)), compiled.error().text());
}

void validate_variable(const CheckedField& variable, PolicyCompiler& compiler) {
  const CheckedField name = variable["name"];
  if (bare(name).empty()) {
    name.required("name is not specified");
  } else if (!admission_policies::is_identifier(name.text())) {
    name.invalid("name is not a valid CEL identifier");
  }
  const CheckedField expression = variable["expression"];
  if (bare(expression).empty()) return expression.required("expression is not specified");
  report(expression, compiler.variable(name.text(), expression.text()));
}

void validate_validation(const CheckedField& validation, const PolicyCompiler& compiler) {
  const CheckedField expression = validation["expression"];
  if (bare(expression).empty()) {
    expression.required("expression is not specified");
  } else {
    report(expression, compiler.validation(expression.text()));
  }
  const CheckedField composed = validation["messageExpression"];
  if (!bare(composed).empty()) {
    report(composed, compiler.message(composed.text()));
  } else if (!composed.text().empty()) {
    composed.invalid("must be non-empty if specified");
  }
  const CheckedField message = validation["message"];
  if (bare(message).find_first_of("\r\n") != std::string_view::npos) {
    message.invalid("message must not contain line breaks");
  } else if (!message.text().empty() && bare(message).empty()) {
    message.invalid("message must be non-empty if specified");
  }
  const CheckedField reason = validation["reason"];
  reason.optional_one_of(kRefusalReasons);
}

void validate_annotation(const CheckedField& annotation, std::string_view policy, const PolicyCompiler& compiler) {
  const CheckedField key = annotation["key"];
  if (policy.empty()) {
    key.invalid("requires metadata.name be non-empty");
  } else {
    const std::string whole = fmt::format("{}/{}", policy, key.text());
    for (const std::string& problem : api::qualified_name_errors(whole)) key.invalid(Json(whole), problem);
  }
  const CheckedField value = annotation["valueExpression"];
  if (bare(value).empty()) return value.required("valueExpression is not specified");
  if (bare(value).size() > kAnnotationExpressionMax) {
    return value.required(fmt::format("must not exceed {} bytes in length", kAnnotationExpressionMax));
  }
  report(value, compiler.annotation(bare(value)));
}

void validate_annotations(const CheckedField& annotations, std::string_view policy, const PolicyCompiler& compiler) {
  if (annotations.size() > kAnnotationsMax) {
    return annotations.invalid(Json(static_cast<std::int64_t>(annotations.size())),
                               fmt::format("must not have more than {} auditAnnotations", kAnnotationsMax));
  }
  std::set<std::string_view> keys;
  annotations.each([&](const CheckedField& annotation) {
    validate_annotation(annotation, policy, compiler);
    const CheckedField key = annotation["key"];
    if (!keys.insert(key.text()).second) key.duplicate();
  });
}

void validate_policy_match(const CheckedField& match) {
  if (!match.present()) return match.required();
  validate_match(match);
  const CheckedField rules = match["resourceRules"];
  if (rules.empty()) rules.required();
}

void validate_param_ref(const CheckedField& ref) {
  const CheckedField name = ref["name"];
  const CheckedField selector = ref["selector"];
  if (!name.text().empty()) {
    name.require_valid(api::path_segment_errors(name.text()));
    if (selector.present()) name.forbidden("name and selector are mutually exclusive");
  }
  if (selector.present()) {
    validate_label_selector(selector.json(), selector.path(), selector.errors());
    if (!name.text().empty()) selector.forbidden("name and selector are mutually exclusive");
  }
  if (name.text().empty() && !selector.present()) ref.required("one of name or selector must be specified");
  const CheckedField missing = ref["parameterNotFoundAction"];
  if (missing.text().empty()) return missing.required();
  missing.require_one_of(kNotFoundActions);
}

void validate_actions(const CheckedField& actions) {
  std::set<std::string_view> seen;
  actions.each([&](const CheckedField& action) {
    action.require_one_of(kValidationActions);
    if (!seen.insert(action.text()).second) action.duplicate();
  });
  if (seen.contains("Deny") && seen.contains("Warn")) {
    actions.invalid(
        "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
        "and headers serves no purpose)");
  }
  if (actions.empty()) actions.required("at least one validation action is required");
}

}  // namespace

void default_policy(Json& policy) {
  Json* spec = policy.find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  set_default(*spec, "failurePolicy", "Fail");
  default_match(spec->find("matchConstraints"));
}

void default_policy_binding(Json& binding) {
  Json* spec = binding.find("spec");
  if (spec != nullptr && spec->is_object()) default_match(spec->find("matchResources"));
}

void validate_policy(const Json& policy, FieldErrors& errors) {
  const CheckedField spec(policy.find("spec"), "spec", errors);
  const CheckedField failure = spec["failurePolicy"];
  failure.optional_one_of(kPolicyFailures);
  const CheckedField param_kind = spec["paramKind"];
  if (param_kind.present()) validate_param_kind(param_kind);
  validate_policy_match(spec["matchConstraints"]);
  PolicyCompiler compiler({.params = param_kind.present(), .variables = !spec["variables"].empty()});
  validate_match_conditions(spec["matchConditions"], compiler.condition_environment());
  const CheckedField variables = spec["variables"];
  variables.each([&](const CheckedField& variable) { validate_variable(variable, compiler); });
  const CheckedField validations = spec["validations"];
  const CheckedField annotations = spec["auditAnnotations"];
  if (validations.empty() && annotations.empty()) {
    constexpr std::string_view kNothing = "validations or auditAnnotations must contain at least one item";
    validations.required(kNothing);
    return annotations.required(kNothing);
  }
  validations.each([&](const CheckedField& validation) { validate_validation(validation, compiler); });
  validate_annotations(annotations, policy.string_at({"metadata", "name"}), compiler);
}

void validate_policy_binding(const Json& binding, FieldErrors& errors) {
  const CheckedField spec(binding.find("spec"), "spec", errors);
  const CheckedField policy = spec["policyName"];
  if (policy.text().empty()) policy.required();
  policy.require_valid(api::dns1123_subdomain_errors(policy.text()));
  const CheckedField params = spec["paramRef"];
  if (params.present()) validate_param_ref(params);
  const CheckedField match = spec["matchResources"];
  if (match.present()) validate_match(match);
  validate_actions(spec["validationActions"]);
}

}  // namespace spillway::apiserver::kinds
