// What a role or binding that every cluster has lacks after an upgrade, or after somebody changed it: put back at the
// start of a server, as upstream does. What it has besides stays. An object with the annotation
// rbac.authorization.kubernetes.io/autoupdate: "false" is left alone.
// Thread: any (pure). Source: Kubernetes docs, "Using RBAC Authorization", auto-reconciliation.
#pragma once

#include "api/json/json.h"

#include <optional>

namespace spillway::apiserver {

/// `current` with the labels, annotations, rules, selectors of aggregated roles and subjects of `wanted` that it lacks;
/// nullopt: it lacks none, or is to be left alone. A rule is there if one rule of `current` covers it; a role that
/// gathers the rules of others is given none. A label or annotation with another value is there. An aggregationRule
/// that is not wanted goes; a binding of another role is put back as it was made, as its roleRef cannot be corrected.
std::optional<api::Json> with_missing_grants(const api::Json& current, const api::Json& wanted);

/// The rules that an administrator has given a role before it gathered those of others, kept by the one that it gathers
/// now: `wanted` with what `gatherer` has besides. `gatherer`: as it stands. `gathered`: all that it is to gather. A
/// rule is there if several of these give what it gives. Unchanged if it gathers already.
api::Json with_rules_of_old(api::Json wanted, const api::Json& gatherer, const api::Json::Array& gathered);

}  // namespace spillway::apiserver
