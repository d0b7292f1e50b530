// The response by pod-eviction-timeout: a node keeps its pods until it has failed for the timeout, and its turn in the
// queue of its zone has come; then they are deleted. The lines up to 1.26 with the taint manager off.
// Thread: loop. Bound: one eviction per node under way. Source: spec "Node lifecycle", S8.2, S10.
#pragma once

#include "controllers/nodes/legacy/outdated_kubelets.h"
#include "controllers/nodes/node_response.h"
#include "controllers/nodes/queue_beat.h"
#include "policy/lifecycle/lines/timeout_evictions.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

class TimeoutResponse final : public NodeResponse {
 public:
  explicit TimeoutResponse(Parts parts);

  void start(Now now) override { beat_.start(now); }

  void on_opening(const lifecycle::NodeMonitor::Opening& opening, Now now) override;
  void on_assessed(const NodePtr& node, const lifecycle::Assessment& assessment, const Pods& pods, Now now) override;
  void on_full_disruption(bool entered, const std::vector<NodePtr>& nodes, Now now) override;

  void arm(Now now) override { beat_.arm(now); }

  void on_bound(const PodPtr& pod, const NodePtr& node, const Done& done, Now now) override;
  void on_pod(const PodPtr& pod) override;
  bool marks_pods_of(const api::Node& node) const override;

 private:
  /// The turn of a node in the queue of its zone.
  struct Turn {
    std::string zone;
    QueueBeat::Entry entry;
  };

  void evict(const NodePtr& node, const std::vector<PodPtr>& pods, Done done, Now now);
  void on_eviction_end(const std::string& node, Now now);
  lifecycle::NodeMonitor::Answer evict_waiting(const std::string& zone, const QueueBeat::Entry& entry, Now now);

  Parts parts_;
  lifecycle::TimeoutEvictions evictions_;
  QueueBeat beat_;
  std::optional<OutdatedKubelets> kubelets_;  // 1.7
  /// Nodes whose pods are being evicted, each with its turn if that came meanwhile: for a failure after a recovery.
  std::map<std::string, std::optional<Turn>, std::less<>> evicting_;
};

}  // namespace spillway::controllers
