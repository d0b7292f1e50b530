// ClusterRoles that gather the rules of others (aggregationRule). Thread: any (pure). Source: Kubernetes docs, "Using
// RBAC Authorization", aggregated ClusterRoles; the controller `clusterrole-aggregation` of Kubernetes 1.32.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/object/selector.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// Two rules are the same if these are: members that are absent, null and empty lists do not differ, nor does the order
/// of members; the order in lists does.
std::string rule_identity(const api::Json& rule);

/// The selectors of an aggregationRule. One that is impossible gathers nothing.
std::vector<api::LabelSelector> aggregation_selectors(const api::Json& role);

/// A role that others may aggregate, with the members that matter for it.
struct GatheredRole {
  std::string_view name;
  const api::StringMap* labels;
  std::function<api::DocumentPtr()> document;  // called for roles whose labels match
};

/// The rules that `role` should have: those of the roles that its selectors match, selector after selector, for each in
/// the order of `by_name`, each rule once; never its own. Null: none, or `role` has no aggregationRule. nullopt: they
/// take more than `bytes_max` as text.
std::optional<api::Json> aggregated_rules(const api::Json& role, std::span<const GatheredRole> by_name,
                                          std::size_t bytes_max);

/// Aggregates documents in any order; only ClusterRoles count, however large.
api::Json aggregated_rules(const api::Json& role, std::span<const api::Json> roles);

/// True if two lists of rules are equal; null and absent ones count as empty.
bool are_same_rules(const api::Json* some, const api::Json* others);

}  // namespace spillway::apiserver
