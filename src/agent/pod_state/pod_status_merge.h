// One status from two: what the API server has of a pod and what the agent wants it to have.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle", conditions; KEP-3329; spec "Node agent", 15.2, 15.4;
// vectors node-agent/pod_status_merge.
#pragma once

#include "api/object/pod.h"
#include "base/time.h"

namespace spillway::agent {

enum class RunningContainers { kNone, kPossible };

/// Conditions of other owners are taken from `reported`, the agent's own from `wanted`. A terminal phase waits, with
/// its reason, message and DisruptionTarget, until no container can be running; then Ready and ContainersReady are
/// False.
api::PodStatus merge_status(const api::PodStatus& reported, const api::PodStatus& wanted, RunningContainers running,
                            WallTime now);

}  // namespace spillway::agent
