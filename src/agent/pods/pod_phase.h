// The phase of a pod from the states of its containers.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle", pod phase; spec "Node agent", 15.1; vectors
// node-agent/pod_phase.
#pragma once

#include "api/object/pod.h"

#include <span>
#include <string_view>

namespace spillway::agent {

/// kTerminal: the pod has been stopped and none of its containers will start again.
enum class PodProgress { kOngoing, kTerminal };

/// "Pending", "Running", "Succeeded" or "Failed". `statuses`: those of init and regular containers, by name.
std::string_view phase_of(const api::Pod& pod, std::span<const api::ContainerStatus> statuses, PodProgress progress);

}  // namespace spillway::agent
