// The taints of 1.7 behind their gate: today's response, with that line's checks of kubelet versions. Thread: loop.
#pragma once

#include "controllers/nodes/legacy/outdated_kubelets.h"
#include "controllers/nodes/node_tainter.h"

#include <utility>

namespace spillway::controllers {

class OriginalTainter final : public NodeTainter {
 public:
  explicit OriginalTainter(Parts parts) : NodeTainter(std::move(parts)), kubelets_(shared()) {}

  void on_pod(const PodPtr& pod) override { kubelets_.on_pod(pod); }

  bool marks_pods_of(const api::Node& node) const override { return kubelets_.marks_pods_of(node); }

 private:
  OutdatedKubelets kubelets_;
};

}  // namespace spillway::controllers
