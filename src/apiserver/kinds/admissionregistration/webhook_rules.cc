#include "apiserver/kinds/admissionregistration/webhook_rules.h"

#include "api/text/names.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "base/ascii.h"
#include "base/utf8.h"
#include "policy/cel/expression.h"
#include "policy/webhooks/match_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 2> kFailurePolicies{"Fail", "Ignore"};
constexpr std::array<std::string_view, 2> kMatchPolicies{"Equivalent", "Exact"};
constexpr std::array<std::string_view, 2> kReinvocations{"IfNeeded", "Never"};
constexpr std::array<std::string_view, 2> kSideEffects{"None", "NoneOnDryRun"};
constexpr std::array<std::string_view, 3> kRuleScopes{"*", "Cluster", "Namespaced"};
constexpr std::array<std::string_view, 5> kOperations{"*", "CONNECT", "CREATE", "DELETE", "UPDATE"};
constexpr std::int64_t kSecondsDefault = 10;
constexpr std::int64_t kSecondsMax = 30;
constexpr std::int64_t kHttpsPort = 443;
constexpr std::string_view kAll = "*";

Json* object_member(Json& object, std::string_view key) {
  Json* member = object.find(key);
  return member != nullptr && member->is_object() ? member : nullptr;
}

/// Runs over the webhooks of a configuration.
template <typename Change>
void each_webhook(Json& configuration, Change change) {
  Json::Array* webhooks = elements(configuration, "webhooks");
  if (webhooks == nullptr) return;
  for (Json& webhook : *webhooks) {
    if (webhook.is_object()) change(webhook);
  }
}

bool holds(const CheckedField& list, std::string_view word) {
  return std::ranges::any_of(list.elements(), [&](const Json& one) { return one.string_at({}) == word; });
}

/// Checks that the list is not empty, and that "*" is its only item.
void require_list(const CheckedField& list, std::string_view things) {
  if (list.empty()) return list.required();
  if (list.size() > 1 && holds(list, kAll)) {
    list.invalid(fmt::format("if '*' is present, must not specify other {}", things));
  }
}

void validate_operations(const CheckedField& operations) {
  require_list(operations, "operations");
  operations.each([](const CheckedField& operation) { operation.require_one_of(kOperations); });
}

/// An item that another one of the list covers is an error.
void validate_resources(const CheckedField& resources) {
  if (resources.empty()) return resources.required();
  std::set<std::string_view> whole;  // "pods" for "pods/*"
  std::set<std::string_view> parts;  // "status" for "*/status"
  bool named = false;
  resources.each([&](const CheckedField& field) {
    const std::string_view resource = field.text();
    if (resource.empty()) return field.required();
    const std::size_t slash = resource.find('/');
    if (slash == std::string_view::npos) {
      named = named || resource != kAll;
      return;
    }
    const std::string_view name = resource.substr(0, slash);
    const std::string_view part = resource.substr(slash + 1);
    if (whole.contains(name)) {
      field.invalid(fmt::format("if '{}/*' is present, must not specify {}", name, resource));
    }
    if (parts.contains(part)) {
      field.invalid(fmt::format("if '*/{}' is present, must not specify {}", part, resource));
    }
    if (part == kAll) whole.insert(name);
    if (name == kAll) parts.insert(part);
  });
  if (resources.size() > 1 && holds(resources, "*/*")) {
    resources.invalid("if '*/*' is present, must not specify other resources");
  }
  if (named && holds(resources, kAll)) {
    resources.invalid("if '*' is present, must not specify other resources without subresources");
  }
}

void validate_service_path(const CheckedField& field) {
  constexpr std::size_t kSegmentsMax = 256;
  const std::string_view path = field.text();
  if (path.empty() || path == "/") return;
  if (path == "//") field.invalid("segment[0] may not be empty");
  if (!path.starts_with('/')) field.invalid("must start with a '/'");
  std::string_view rest = path.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  for (std::size_t i = 0; i < kSegmentsMax && !field.full(); ++i) {
    const std::string_view segment = rest.substr(0, rest.find('/'));
    if (segment.empty()) {
      field.invalid(fmt::format("segment[{}] may not be empty", i));
    } else {
      for (const std::string& problem : api::dns1123_subdomain_errors(segment)) {
        field.invalid(fmt::format("segment[{}]: {}", i, problem));
      }
    }
    if (segment.size() == rest.size()) return;
    rest.remove_prefix(segment.size() + 1);
  }
  if (!field.full()) field.invalid(fmt::format("must have at most {} segments", kSegmentsMax));
}

void validate_service(const CheckedField& service) {
  service["name"].require_text("service name is required");
  service["namespace"].require_text("service namespace is required");
  const CheckedField port = service["port"];
  const std::vector<std::string> problems = port_number_errors(port.integer().value_or(0));
  if (!problems.empty()) port.invalid("port is not valid: " + problems.front());
  validate_service_path(service["path"]);
}

void validate_review_versions(const CheckedField& versions) {
  if (versions.empty()) return versions.required("must specify one of v1");
  std::set<std::string_view> seen;
  versions.each([&](const CheckedField& version) {
    if (!seen.insert(version.text()).second) return version.invalid("duplicate version");
    version.require_valid(api::dns1035_label_errors(version.text()));
  });
  if (!seen.contains("v1")) versions.invalid("must include at least one of v1");
}

void validate_name(const CheckedField& name) {
  const std::string_view text = name.text();
  if (text.empty()) return name.required();
  if (const std::vector<std::string> problems = api::dns1123_subdomain_errors(text); !problems.empty()) {
    return name.invalid(fmt::format("{}", fmt::join(problems, ",")));
  }
  if (std::ranges::count(text, '.') < 2) {
    name.invalid("should be a domain with at least three segments separated by dots");
  }
}

void validate_condition(const CheckedField& condition, const cel::Environment& environment) {
  constexpr std::size_t kConditionShownMax = 512;  // bytes; leaves room in the answer for the errors
  const CheckedField expression = condition["expression"];
  const std::string_view text = spillway::trimmed(expression.text(), kWhiteSpace);
  if (text.empty()) {
    expression.required();
  } else if (const auto compiled = cel::Expression::compile(text, environment, {cel::TypeKind::kBool}); !compiled) {
    expression.invalid(Json(shortened(text, kConditionShownMax)), compiled.error().text());
  }
  const CheckedField name = condition["name"];
  if (name.text().empty()) return name.required();
  name.require_valid(api::qualified_name_errors(name.text()));
}

void validate_webhook(const CheckedField& webhook) {
  validate_name(webhook["name"]);
  const CheckedField rules = webhook["rules"];
  rules.each(validate_matched_rule);
  webhook["failurePolicy"].optional_one_of(kFailurePolicies);
  webhook["matchPolicy"].optional_one_of(kMatchPolicies);
  const CheckedField effects = webhook["sideEffects"];
  if (!effects.present()) {
    effects.required("must specify one of None, NoneOnDryRun");
  } else {
    effects.require_one_of(kSideEffects);
  }
  const CheckedField timeout = webhook["timeoutSeconds"];
  const std::int64_t limit = timeout.integer().value_or(kSecondsDefault);
  if (limit < 1 || limit > kSecondsMax) timeout.invalid("the timeout value must be between 1 and 30 seconds");
  for (const std::string_view selector : {"namespaceSelector", "objectSelector"}) {
    const CheckedField field = webhook[selector];
    if (field.present()) validate_label_selector(field.json(), field.path(), field.errors());
  }
  webhook["reinvocationPolicy"].optional_one_of(kReinvocations);
  validate_webhook_client(webhook["clientConfig"]);
  validate_match_conditions(webhook["matchConditions"]);
}

}  // namespace

void validate_webhook_client(const CheckedField& client) {
  const CheckedField url = client["url"];
  const CheckedField service = client["service"];
  if (url.present() == service.present()) return client.required("exactly one of url or service is required");
  if (service.present()) return validate_service(service);
  validate_webhook_url(url.text(), url.path(), url.errors());
}

void validate_matched_rule(const CheckedField& rule) {
  validate_operations(rule["operations"]);
  require_list(rule["apiGroups"], "API groups");
  const CheckedField versions = rule["apiVersions"];
  require_list(versions, "API versions");
  versions.each([](const CheckedField& version) {
    if (version.text().empty()) version.required();
  });
  validate_resources(rule["resources"]);
  rule["scope"].optional_one_of(kRuleScopes);
}

void validate_match_conditions(const CheckedField& conditions, const cel::Environment& environment) {
  if (conditions.size() > webhooks::kMatchConditionsMax) {
    return conditions.errors().too_many(conditions.path(), conditions.size(), webhooks::kMatchConditionsMax);
  }
  std::set<std::string_view> names;
  conditions.each([&](const CheckedField& condition) {
    validate_condition(condition, environment);
    const CheckedField name = condition["name"];
    if (!name.text().empty() && !names.insert(name.text()).second) name.duplicate();
  });
}

void default_webhooks(Json& configuration) {
  each_webhook(configuration, [](Json& webhook) {
    set_default(webhook, "failurePolicy", "Fail");
    set_default(webhook, "matchPolicy", "Equivalent");
    for (const std::string_view selector : {"namespaceSelector", "objectSelector"}) {
      if (!has(webhook, selector)) webhook[selector] = Json::object();
    }
    if (!has(webhook, "timeoutSeconds")) webhook["timeoutSeconds"] = kSecondsDefault;
    if (Json::Array* rules = elements(webhook, "rules")) {
      for (Json& rule : *rules) {
        if (rule.is_object() && !has(rule, "scope")) rule["scope"] = kAll;
      }
    }
    Json* client = object_member(webhook, "clientConfig");
    Json* service = client == nullptr ? nullptr : object_member(*client, "service");
    if (service != nullptr && !has(*service, "port")) (*service)["port"] = kHttpsPort;
  });
}

void default_mutating_webhooks(Json& configuration) {
  default_webhooks(configuration);
  each_webhook(configuration, [](Json& webhook) { set_default(webhook, "reinvocationPolicy", "Never"); });
}

void validate_webhook_url(std::string_view url, std::string_view path, FieldErrors& errors) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  constexpr std::string_view kHostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]%";
  const auto malformed = [&](std::string_view why) {
    errors.required(path, fmt::format("url must be a valid URL: {}{}", why, kForm));
  };
  if (std::ranges::any_of(url, [](unsigned char c) { return c <= ' ' || c == 0x7f; })) {
    return malformed("invalid character in URL");
  }
  const std::size_t colon = url.find("://");
  const std::string_view scheme = colon == std::string_view::npos ? std::string_view() : url.substr(0, colon);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : url.substr(colon + 3);
  if (scheme != "https") errors.invalid(path, scheme, fmt::format("'https' is the only allowed URL scheme{}", kForm));
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(authority.size());
  const std::size_t at = authority.rfind('@');
  const std::string_view user = at == std::string_view::npos ? std::string_view() : authority.substr(0, at);
  if (at != std::string_view::npos) authority.remove_prefix(at + 1);
  if (authority.empty()) errors.invalid(path, authority, fmt::format("host must be specified{}", kForm));
  if (authority.find_first_not_of(kHostCharacters) != std::string_view::npos) return malformed("invalid host");
  if (at != std::string_view::npos) errors.invalid(path, user, "user information is not permitted in the URL");
  const std::size_t hash = rest.find('#');
  const std::string_view fragment = hash == std::string_view::npos ? std::string_view() : rest.substr(hash + 1);
  if (!fragment.empty()) errors.invalid(path, fragment, "fragments are not permitted in the URL");
  rest = rest.substr(0, hash);
  const std::size_t mark = rest.find('?');
  if (mark != std::string_view::npos && mark + 1 < rest.size()) {
    errors.invalid(path, rest.substr(mark + 1), "query parameters are not permitted in the URL");
  }
}

void validate_webhooks(const Json& configuration, FieldErrors& errors) {
  const CheckedField webhooks(configuration.find("webhooks"), "webhooks", errors);
  std::set<std::string_view> names;
  webhooks.each([&](const CheckedField& webhook) {
    validate_webhook(webhook);
    validate_review_versions(webhook["admissionReviewVersions"]);
    const CheckedField name = webhook["name"];
    if (!name.text().empty() && !names.insert(name.text()).second) name.duplicate();
  });
}

}  // namespace spillway::apiserver::kinds
