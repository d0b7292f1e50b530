// Taints and labels that a node registers with. Thread: any (pure). Source: Kubernetes docs, "Kubelet Configuration
// (v1beta1)", registerWithTaints; "kubelet", --node-labels.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/object/taint.h"
#include "base/error.h"

#include <vector>

namespace spillway::agent {

/// registerWithTaints of an effective configuration. kInvalid: a key, value or effect that cannot be, a time.
Result<std::vector<api::Taint>> taints_of(const api::Json& effective);

/// kInvalid, in upstream's words: labels of the kubernetes.io and k8s.io domains that a node must not give itself, and
/// malformed keys and values.
Outcome check_node_labels(const api::StringMap& labels);

}  // namespace spillway::agent
