// Deletes the pods of a node whose turn has come by pod-eviction-timeout: writes NodeLost, then deletes, pod by pod as
// lifecycle::plan_pod_eviction says.
// Thread: loop. Bounds: calls wait in the client's queue; nothing is retried here. Source: spec "Node lifecycle",
// S8.2.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/profile.h"

#include <functional>
#include <vector>

namespace spillway::controllers {

/// `done(all)`: all pods were deleted; else the node has to be tried again. A pod that cannot be deleted ends the
/// attempt.
void evict_pods(Shared shared, const lifecycle::LineFacts& facts, const api::Node& node,
                const std::vector<PodPtr>& pods, std::function<void(bool all, Now now)> done, Now now);

}  // namespace spillway::controllers
