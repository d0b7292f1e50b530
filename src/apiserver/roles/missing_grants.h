// Restores the default roles and bindings after an upgrade, or after a user's change, at the start of a server, as
// upstream does. Their additional parts stay. An object with the annotation
// rbac.authorization.kubernetes.io/autoupdate: "false" is not changed.
// Thread: any (pure). Source: Kubernetes docs, "Using RBAC Authorization", auto-reconciliation.
#pragma once

#include "api/json/json.h"

#include <optional>

namespace spillway::apiserver {

/// `current` with the labels, annotations, rules, selectors of aggregated roles and subjects of `wanted` that it lacks;
/// nullopt: it lacks none, or must not be changed. A rule counts as present if one rule of `current` covers it; a role
/// that aggregates others gets none. A label or annotation with another value counts as present. An unwanted
/// aggregationRule is removed; a binding of another role is replaced by the wanted one, as its roleRef cannot be
/// corrected.
std::optional<api::Json> with_missing_grants(const api::Json& current, const api::Json& wanted);

/// Keeps the rules that an administrator gave a role before it aggregated others, in the role that it aggregates now:
/// `wanted` with the additional rules of `gatherer`. `gatherer`: the stored role. `gathered`: all roles that it is to
/// aggregate. A rule counts as present if several of these cover it together. Unchanged if `gatherer` aggregates
/// already.
api::Json with_rules_of_old(api::Json wanted, const api::Json& gatherer, const api::Json::Array& gathered);

}  // namespace spillway::apiserver
