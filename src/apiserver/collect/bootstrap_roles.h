// The roles and bindings every cluster has. Thread: any (pure). Source: Kubernetes docs, "Using RBAC Authorization",
// default roles and role bindings; spec "API server contract", 19.5.
#pragma once

#include "api/json/json.h"

#include <vector>

namespace spillway::apiserver {

/// ClusterRole and ClusterRoleBinding documents.
std::vector<api::Json> bootstrap_roles();

}  // namespace spillway::apiserver
