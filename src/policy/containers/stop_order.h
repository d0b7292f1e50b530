// The order in which the containers of a pod are stopped: sidecars after the containers that they serve.
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

/// For each running container: the containers that must have ended before it is stopped. Regular containers are stopped
/// first, then sidecars, the last one first.
std::map<std::string, std::vector<std::string>> stop_order(const api::PodSpec& spec,
                                                           const std::set<std::string, std::less<>>& running);

}  // namespace spillway::containers
