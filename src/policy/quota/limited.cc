#include "policy/quota/limited.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace spillway::quota {
namespace {

using Names = std::set<std::string_view>;

bool contains_any(std::string_view name, const std::vector<std::string>& texts) {
  return std::ranges::any_of(texts, [name](const std::string& text) { return name.contains(text); });
}

/// The amounts that a quota has to count.
Names limited_amounts(std::span<const LimitedResource> limited, const CountedKind& kind,
                      const api::ResourceList& usage) {
  Names names;
  for (const LimitedResource& each : limited) {
    if (each.group != kind.group || each.plural != kind.plural) continue;
    for (const auto& [name, amount] : usage) {
      if (amount.sign() > 0 && contains_any(name, each.contains)) names.insert(name);
    }
  }
  return names;
}

/// Names of the scopes of any of the quotas that hold for the pod.
Names scopes_of(std::span<const api::ResourceQuota> quotas, const api::Pod& pod) {
  Names names;
  for (const api::ResourceQuota& quota : quotas) {
    for (const std::string& scope : quota.scopes) {
      if (holds({.scope = scope, .op = "Exists", .values = {}}, pod)) names.insert(scope);
    }
    for (const api::QuotaScope& scope : quota.scope_expressions) {
      if (holds(scope, pod)) names.insert(scope.scope);
    }
  }
  return names;
}

std::string text_of(const api::QuotaScope& scope) {
  return fmt::format("{{{} {} [{}]}}", scope.scope, scope.op, fmt::join(scope.values, " "));
}

Outcome require_scopes(std::span<const LimitedResource> limited, std::span<const api::ResourceQuota> quotas,
                       const api::Pod& pod) {
  const Names known = scopes_of(quotas, pod);
  std::vector<std::string> missing;
  for (const LimitedResource& each : limited) {
    for (const api::QuotaScope& scope : each.scopes) {
      if (holds(scope, pod) && !known.contains(scope.scope)) missing.push_back(text_of(scope));
    }
  }
  if (missing.empty()) return {};
  return make_error(ErrorCode::kInternalError, "insufficient quota to match these scopes: [{}]",
                    fmt::join(missing, " "));
}

}  // namespace

Outcome require_covered(std::span<const LimitedResource> limited, std::span<const api::ResourceQuota> quotas,
                        const CountedKind& kind, const api::Pod* pod, const api::ResourceList& usage) {
  if (limited.empty()) return {};
  Names uncovered = limited_amounts(limited, kind, usage);
  for (const api::ResourceQuota& quota : quotas) {
    if (!matches(quota, kind, pod)) continue;
    for (const std::string_view name : concerned(kind, quota.status.hard)) uncovered.erase(name);
  }
  if (!uncovered.empty()) {
    return make_error(ErrorCode::kForbidden, "insufficient quota to consume: {}", fmt::join(uncovered, ","));
  }
  return pod == nullptr ? Outcome{} : require_scopes(limited, quotas, *pod);
}

}  // namespace spillway::quota
