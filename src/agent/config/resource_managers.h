// Parses the members of a KubeletConfiguration that configure the CPU, memory, device and topology managers and the
// shutdown.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)", "Control CPU Management Policies on
// the Node", "Utilizing the NUMA-aware Memory Manager", "Control Topology Management Policies on a node", "Node
// Shutdowns".
#pragma once

#include "agent/contract/options.h"
#include "api/json/json.h"
#include "base/error.h"

namespace spillway::agent {

/// `effective`: checked, with defaults. kInvalid: an unknown policy, scope or option (the error suggests the nearest
/// name); a malformed list of CPUs or memory. Checks that depend on the machine are not made here.
Result<ManagerOptions> managers_of(const api::Json& effective);

/// kInvalid, in upstream's words: periods that contradict each other.
Result<ShutdownSettings> shutdown_of(const api::Json& effective);

}  // namespace spillway::agent
