// The objects a pod names: what its node may therefore read, and what a mirror pod may not name. One table, so that the
// two never differ. Thread: any (pure). Source: spec "API server contract", 19.7; Kubernetes docs, "Using Node
// Authorization".
#pragma once

#include "api/json/json.h"

#include <functional>
#include <string_view>

namespace spillway::apiserver {

enum class ReferenceKind {
  kServiceAccount,
  kSecret,
  kConfigMap,
  kPersistentVolumeClaim,
  kServiceAccountToken,  // a projected token; nameless
  kClusterTrustBundle,   // by name or by signer
  kResourceClaim,
};

/// "secrets", "configmaps", …: the resource, as a message names it.
std::string_view plural_of(ReferenceKind kind);

/// Calls `visit` with every reference in the pod's spec, in the order of the table, until it returns false. `name` is
/// empty where the reference has none, or where the template of a claim stands in for it. False: `visit` stopped the
/// walk.
bool visit_references(const api::Json& pod,
                      const std::function<bool(ReferenceKind kind, std::string_view name)>& visit);

/// True if the pod names that object of its namespace.
bool refers_to(const api::Json& pod, ReferenceKind kind, std::string_view name);

}  // namespace spillway::apiserver
