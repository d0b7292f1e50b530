// The response by NoExecute taints: taints nodes that are not ready and frees them when they are, at once or when the
// queue of their zone lets them through. The monitor decides.
// Thread: loop. Bound: one taint write per node under way. Source: spec "Node lifecycle", S7 to S9.
#pragma once

#include "controllers/nodes/node_response.h"
#include "controllers/nodes/queue_beat.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::controllers {

class NodeTainter : public NodeResponse {
 public:
  explicit NodeTainter(Parts parts);
  NodeTainter(const NodeTainter&) = delete;
  NodeTainter& operator=(const NodeTainter&) = delete;

  void start(Now now) override { beat_.start(now); }

  /// Upstream frees the nodes that its controller sees for the first time (T3).
  void on_opening(const lifecycle::NodeMonitor::Opening& opening, Now now) override;
  /// Taints, frees or queues the node, as the monitor decides.
  void on_assessed(const NodePtr& node, const lifecycle::Assessment& assessment, const Pods& pods, Now now) override;
  /// No node keeps a taint of ours or its place in a queue.
  void on_full_disruption(bool entered, const std::vector<NodePtr>& nodes, Now now) override;

  void arm(Now now) override { beat_.arm(now); }

  /// Both taints end as soon as the node is Ready.
  void on_node(const NodePtr& node, Now now) override;

 protected:
  const Shared& shared() const { return parts_.shared; }

 private:
  const lifecycle::LineFacts& facts() const { return parts_.profile.facts; }

  const lifecycle::Remedies& remedies() const { return parts_.profile.remedies; }

  bool carries_own_taint(const api::Node& node) const;
  /// Removes the taints of a node, then takes it out of its queue.
  void free(const NodePtr& node, Now now);
  /// Removes the taints of a node. `gone` may be empty; it is called when the taints are removed. `node` may be null.
  void untaint(const NodePtr& node, std::function<void()> gone, Now now);
  void taint(const NodePtr& node, lifecycle::TaintAction action, NodeTaintWriter::Done done, Now now);
  const std::pair<const std::string, lifecycle::NodeMonitor::Zone>* find_waiting_zone(const api::Node& node) const;
  void explain_waiting(const api::Node& node, Now now);
  std::optional<lifecycle::Readiness> effective_readiness(const api::Node& node) const;
  lifecycle::NodeMonitor::Answer taint_waiting(const std::string& zone, const QueueBeat::Entry& entry, Now now);

  Parts parts_;
  QueueBeat beat_;
  std::set<std::string, std::less<>> tainting_;  // nodes of which a taint is being written
};

}  // namespace spillway::controllers
