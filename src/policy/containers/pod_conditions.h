// The conditions of a pod that the node's agent writes: those about its containers.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle", pod conditions, pod readiness; spec "Pod lifecycle",
// 10.5, 10.6; vectors pod-lifecycle/pod_conditions.
#pragma once

#include "api/object/pod.h"
#include "policy/containers/pod_actions.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::containers {

/// The condition of pods with a rule that restarts all containers; True during the restart.
inline constexpr std::string_view kAllContainersRestarting = "AllContainersRestarting";

/// PodReadyToStartContainers, Initialized, Ready, ContainersReady, PodScheduled, AllContainersRestarting, without
/// times. `status`: the phase and the containers, with `started` and `ready`. `has_sandbox`: see is_sandbox_usable().
std::vector<api::PodCondition> pod_conditions(const api::Pod& pod, const api::PodStatus& status, bool has_sandbox);

/// The addresses of a pod in the order of its status: first the family of the node's own address, at most one of each
/// family. `sandbox`: addresses of its own network; empty for pods of the node's network, whose addresses are `node`.
std::vector<std::string> pod_addresses(const api::Pod& pod, const std::vector<std::string>& sandbox,
                                       const std::vector<std::string>& node);

}  // namespace spillway::containers
