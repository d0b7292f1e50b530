// ResourceQuotas: how much of a namespace may be there at once.
#include "api/object/resource_quota.h"
#include "api/text/quantity.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/fields/resource_names.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;
using Quota = api::ResourceQuota;

/// A write of an object is a write of every quota that it raises.
constexpr std::size_t kQuotasMax = 64;  // in a namespace

constexpr std::array kQuotaScopes{Quota::kTerminating,   Quota::kNotTerminating, Quota::kBestEffort,
                                  Quota::kNotBestEffort, Quota::kPriorityClass,  Quota::kCrossNamespaceAffinity};
constexpr std::array kConflicts{std::pair(Quota::kBestEffort, Quota::kNotBestEffort),
                                std::pair(Quota::kTerminating, Quota::kNotTerminating)};

constexpr std::array<std::string_view, 6> kOfScopedPods{"cpu",    "limits.cpu",   "limits.memory",
                                                        "memory", "requests.cpu", "requests.memory"};
constexpr std::array<std::string_view, 4> kOtherAmounts{"ephemeral-storage", "limits.ephemeral-storage",
                                                        "requests.ephemeral-storage", "requests.storage"};

template <std::size_t count>
bool is_among(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_standard(std::string_view amount) {
  return is_count_name(amount) || is_among(kOfScopedPods, amount) || is_among(kOtherAmounts, amount);
}

bool is_huge_page(std::string_view amount) {
  return amount.starts_with("hugepages-") || amount.starts_with("requests.hugepages-");
}

void check_amounts(const CheckedField& amounts) {
  amounts.each_key([](std::string_view name, const CheckedField& amount) {
    check_resource_name(name, amount);
    const bool has_domain = name.find('/') != std::string_view::npos;
    if (!has_domain && !is_standard(name) && !is_huge_page(name)) {
      amount.invalid(name, "must be a standard resource for quota");
    }
    const auto quantity = amount.quantity();
    if (!quantity) return;
    if (quantity->sign() < 0) amount.invalid(quantity->to_string(), "must be greater than or equal to 0");
    const bool whole = is_counted_whole(name);
    if (whole && quantity->rounded_up(0) != *quantity) amount.invalid(quantity->to_string(), "must be an integer");
  });
}

/// True if the amount can be limited to the scope: scopes select pods only, and best-effort pods can only be counted.
bool may_scope(std::string_view scope, std::string_view amount) {
  if (!is_standard(amount) || !is_among(kQuotaScopes, scope)) return true;
  return amount == "pods" || (scope != Quota::kBestEffort && is_among(kOfScopedPods, amount));
}

/// Validates one scope against the amounts of the quota; `wrong` is the field at which errors are reported.
void check_scope(std::string_view scope, const CheckedField& hard, const CheckedField& wrong) {
  hard.each_key([&](std::string_view amount, const CheckedField&) {
    if (!may_scope(scope, amount)) wrong.invalid("unsupported scope applied to resource");
  });
}

void check_conflicts(const std::set<std::string_view>& scopes, const CheckedField& wrong) {
  for (const auto& [one, other] : kConflicts) {
    if (scopes.contains(one) && scopes.contains(other)) wrong.invalid("conflicting scopes");
  }
}

void check_scopes(const CheckedField& scopes, const CheckedField& hard) {
  std::set<std::string_view> given;
  for (const Json& each : scopes.elements()) {
    if (scopes.full()) return;
    const std::string_view scope = each.string_at({});
    given.insert(scope);
    if (!is_among(kQuotaScopes, scope)) scopes.invalid("unsupported scope");
    check_scope(scope, hard, scopes);
  }
  check_conflicts(given, scopes);
}

void check_expression(const CheckedField& expression, const CheckedField& shown) {
  const CheckedField given_scope = expression["scopeName"];
  const CheckedField given_op = expression["operator"];
  const CheckedField given_values = expression["values"];
  const std::string_view scope = given_scope.text();
  const std::string_view op = given_op.text();
  // Upstream reports the errors of all expressions at one path.
  const CheckedField at_scope = shown.member("", "scopeName");
  const CheckedField at_op = shown.member("", "operator");
  const CheckedField at_values = shown.member("", "values");
  if (!is_among(kQuotaScopes, scope)) at_scope.invalid(scope, "unsupported scope");
  if (is_among(kQuotaScopes, scope) && scope != Quota::kPriorityClass && op != "Exists") {
    at_op.invalid(op, fmt::format("must be 'Exist' when scope is any of {}, {}, {}, {} and {}", Quota::kTerminating,
                                  Quota::kNotTerminating, Quota::kBestEffort, Quota::kNotBestEffort,
                                  Quota::kCrossNamespaceAffinity));
  }
  if (op == "In" || op == "NotIn") {
    if (given_values.empty()) {
      at_values.required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!given_values.empty()) {
      at_values.invalid(given_values.json(),
                        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
    }
  } else {
    at_op.invalid(op, "not a valid selector operator");
  }
}

void check_selector(const CheckedField& selector, const CheckedField& hard) {
  const CheckedField expressions = selector["matchExpressions"];
  std::set<std::string_view> given;
  expressions.each([&](const CheckedField& each) {
    const CheckedField scope = each["scopeName"];
    given.insert(scope.text());
    check_expression(each, expressions);
    check_scope(scope.text(), hard, expressions);
  });
  check_conflicts(given, expressions);
}

void validate_quota(const Json& quota, api::FieldErrors& errors) {
  const CheckedField spec(quota.find("spec"), "spec", errors);
  const CheckedField hard = spec["hard"];
  const CheckedField scopes = spec["scopes"];
  const CheckedField selector = spec["scopeSelector"];
  check_amounts(hard);
  check_scopes(scopes, hard);
  check_selector(selector, hard);
}

std::set<std::string_view> scopes_of(const Json& quota) {
  std::set<std::string_view> scopes;
  for (const Json& each : elements(value_of(quota, "spec"), "scopes")) scopes.insert(each.string_at({}));
  return scopes;
}

void validate_quota_update(const Json& quota, const Json& old, Endpoint endpoint, api::FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) {
    const CheckedField status(quota.find("status"), "status", errors);
    const CheckedField hard = status["hard"];
    const CheckedField used = status["used"];
    check_amounts(hard);
    return check_amounts(used);
  }
  validate_quota(quota, errors);
  if (scopes_of(quota) == scopes_of(old)) return;
  const CheckedField spec(quota.find("spec"), "spec", errors);
  const CheckedField scopes = spec["scopes"];
  scopes.invalid(kImmutable);
}

api::StatusResult<void> confirm_quota(const Json& quota, const AdmissionContext& context) {
  std::size_t others = 0;
  context.cluster.visit("resourcequotas", quota.string_at({"metadata", "namespace"}),
                        [&others](const Json&) { return ++others < kQuotasMax; });
  if (others < kQuotasMax) return {};
  return api::forbidden_status({"", "resourcequotas"}, quota.string_at({"metadata", "name"}),
                               fmt::format("a namespace has at most {} ResourceQuotas", kQuotasMax));
}

constexpr std::array kQuotaColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                                   TableColumn{"Request", "string", "", 0, "What is used and allowed, limits left out"},
                                   TableColumn{"Limit", "string", "", 0, "What is used and allowed of limits"},
                                   TableColumn{"Age", "string", "", 0, "How long ago it was created"}};

TableRow quota_row(const Json& quota, WallTime now) {
  std::string requests;
  std::string limits;
  const Json* hard = quota.at({"status", "hard"});
  if (hard != nullptr && hard->if_object() != nullptr) {
    std::set<std::string_view> names;
    for (const auto& member : *hard->if_object()) names.insert(member.key);
    for (const std::string_view name : names) {
      std::string& cell = name.starts_with("limits.") ? limits : requests;
      const std::string_view used = quota.string_at({"status", "used", name});
      cell += fmt::format("{}{}: {}/{}", cell.empty() ? "" : ", ", name, used.empty() ? "0" : used,
                          hard->string_at({name}));
    }
  }
  return {
      {std::string(quota.string_at({"metadata", "name"})), std::move(requests), std::move(limits), age_of(quota, now)},
      {}};
}

}  // namespace

Resource resource_quota_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"quota"};
  static const KindHooks kHooks{.validate_create = validate_quota,
                                .confirm_create = confirm_quota,
                                .validate_update = validate_quota_update,
                                .columns = kQuotaColumns,
                                .table_row = quota_row};
  return {.version = "v1",
          .plural = "resourcequotas",
          .singular = "resourcequota",
          .kind = "ResourceQuota",
          .verbs = kAllVerbs,
          .storage = below("resourcequotas"),
          .short_names = kShortNames,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .put_creates = true,
          .metadata = kWholeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
