// 1.7: kubelets that are too old to do their part. Their pods are not marked not ready, and pods that they cannot end
// gracefully are deleted by force.
// Thread: loop. Bounds: one deletion per pod in flight; a failed one is left to the next event of the pod. Source: spec
// "Node lifecycle", S5.7, S10.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"

#include <set>
#include <string>

namespace spillway::controllers {

class OutdatedKubelets {
 public:
  explicit OutdatedKubelets(Shared shared) : shared_(shared) {}

  bool marks_pods_of(const api::Node& node) const;
  /// A pod that is being deleted on a kubelet without graceful deletion would stay for ever.
  void on_pod(const PodPtr& pod);

 private:
  void force(const PodPtr& pod);
  void on_forced(const api::Pod& pod, const Result<api::Json>& outcome);

  Shared shared_;
  std::set<std::string> forcing_;  // uids
};

}  // namespace spillway::controllers
