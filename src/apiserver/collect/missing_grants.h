// What a role or binding that every cluster has lacks after an upgrade, or after somebody changed it: put back at the
// start of a server, as upstream does. What it has besides stays. An object with the annotation
// rbac.authorization.kubernetes.io/autoupdate: "false" is left alone.
// Thread: any (pure). Source: Kubernetes docs, "Using RBAC Authorization", auto-reconciliation.
#pragma once

#include "api/json/json.h"

#include <optional>

namespace spillway::apiserver {

/// `current` with the rules and subjects of `wanted` that it lacks; nullopt: it lacks none, or is to be left alone. A
/// rule is there if one rule of `current` covers it. Another roleRef is nothing that can be put right: left alone.
std::optional<api::Json> with_missing_grants(const api::Json& current, const api::Json& wanted);

}  // namespace spillway::apiserver
