// In which order the containers of a pod are stopped: sidecars after the containers they serve.
// Thread: any (pure). Source: Kubernetes docs, "Sidecar Containers", "Pod Lifecycle"; spec "Pod lifecycle", 9.9;
// vectors pod-lifecycle/kill_order.
#pragma once

#include "api/object/pod.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::containers {

/// For each container that runs: those that must be gone before it is told to end. Regular containers first, then the
/// next later sidecar.
std::map<std::string, std::vector<std::string>> stop_order(const api::PodSpec& spec,
                                                           const std::set<std::string, std::less<>>& running);

}  // namespace spillway::containers
