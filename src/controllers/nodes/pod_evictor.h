// Deletes the pods of a node whose turn has come by pod-eviction-timeout: writes NodeLost, then deletes, pod by pod as
// lifecycle::plan_pod_eviction says. Pods whose kubelet cannot end them gracefully are deleted by force.
// Thread: loop. Bounds: calls wait in the client's queue; nothing is retried here. Source: spec "Node lifecycle",
// S8.2.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/legacy_eviction.h"
#include "policy/lifecycle/profile.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::controllers {

class PodEvictor {
 public:
  PodEvictor(Shared shared, lifecycle::Profile profile) : shared_(shared), profile_(profile) {}

  /// `done(all)`: all pods were deleted; else the node has to be tried again. A pod that cannot be deleted ends the
  /// attempt.
  void evict(const api::Node& node, const std::vector<PodPtr>& pods, std::function<void(bool all, Now now)> done,
             Now now);

  /// Deletes without grace, once for each pod while the call is in flight.
  void force(const PodPtr& pod);

 private:
  void on_forced(const api::Pod& pod, const Result<api::Json>& outcome);

  Shared shared_;
  lifecycle::Profile profile_;
  std::set<std::string> forcing_;  // uids
};

}  // namespace spillway::controllers
