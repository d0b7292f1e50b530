// The roles and bindings every cluster has, as objects. Thread: any (pure). Source: role_rows.h; Kubernetes docs,
// "Using RBAC Authorization", default roles and role bindings; spec "API server contract", 19.5.
#pragma once

#include "api/json/json.h"

#include <vector>

namespace spillway::apiserver {

/// ClusterRoles, ClusterRoleBindings, Roles and RoleBindings. A role that gathers the rules of others has them already.
const std::vector<api::Json>& bootstrap_roles();

}  // namespace spillway::apiserver
