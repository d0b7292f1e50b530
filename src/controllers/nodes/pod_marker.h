// Sets Ready=False on the pods of a node that is not ready, so that nothing sends them traffic.
// Thread: loop. Bounds: a failed write is left to the next pass; calls wait in the client's queue. Source: spec "Node
// lifecycle", S5.7.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/profile.h"

#include <functional>
#include <vector>

namespace spillway::controllers {

class PodMarker {
 public:
  PodMarker(Shared shared, lifecycle::Profile profile) : shared_(shared), profile_(profile) {}

  /// `done(all)`: every pod was written or did not need to be.
  void mark(const std::vector<PodPtr>& pods, std::function<void(bool all, Now now)> done, Now now);

 private:
  /// The state of the writes for one node.
  struct Progress {
    std::size_t open = 0;  // without an answer
    bool all = true;
    std::function<void(bool, Now)> done;
  };

  void on_marked(const api::Pod& pod, Progress& progress, const Result<api::Json>& outcome, Now now);

  Shared shared_;
  lifecycle::Profile profile_;
};

}  // namespace spillway::controllers
