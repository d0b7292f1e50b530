// Deletes the pods of a node whose turn has come by pod-eviction-timeout: writes NodeLost, then deletes, pod by pod as
// lifecycle::plan_pod_eviction says.
// Thread: loop. Bounds: calls wait in the client's queue; nothing is tried again here. Source: spec "Node lifecycle",
// S8.2.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/profile.h"

#include <functional>
#include <string>
#include <vector>

namespace spillway::controllers {

class PodEvictor {
 public:
  PodEvictor(Shared shared, lifecycle::Profile profile) : shared_(shared), profile_(profile) {}

  /// `done(all)`: every pod was dealt with; else the node is to be tried again.
  void evict(const api::Node& node, const std::vector<PodPtr>& pods, std::function<void(bool all, Now now)> done,
             Now now);

 private:
  using Settle = std::function<void(bool good, Now now)>;

  void mark_lost(const PodPtr& pod, bool then_delete, Settle settle);
  void remove(const PodPtr& pod, Settle settle, Now now);

  Shared shared_;
  lifecycle::Profile profile_;
};

}  // namespace spillway::controllers
