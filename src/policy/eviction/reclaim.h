// Resources that a node can free before it evicts a pod.
// Thread: any (pure). Source: Kubernetes docs, "Node-pressure Eviction", reclaiming node level resources; spec
// "Eviction manager", 6.
#pragma once

#include "policy/eviction/containerfs.h"
#include "policy/eviction/signal.h"

#include <string_view>
#include <vector>

namespace spillway::eviction {

enum class ReclaimAction { kContainers, kImages };

/// "containers", "images".
std::string_view to_string(ReclaimAction action);

/// Actions in the order in which they run; empty for memory and pids.
std::vector<ReclaimAction> reclaim_actions(Signal signal, StorageLayout layout);

}  // namespace spillway::eviction
