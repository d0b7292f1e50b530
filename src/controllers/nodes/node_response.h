// The response of the node lifecycle controller to nodes that turn not ready, turn ready or are gone: an interface.
// NodeTainter taints them; legacy/ has the ways of old Kubernetes lines. The controller calls one object of this type.
// Thread: loop. Source: spec "Node lifecycle", S7 to S10.
#pragma once

#include "base/time.h"
#include "controllers/nodes/node_acts.h"
#include "controllers/nodes/node_taint_writer.h"
#include "controllers/shared/lifecycle_metrics.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/node_monitor.h"
#include "policy/lifecycle/profile.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

class NodeResponse {
 public:
  using NodePtr = std::shared_ptr<const api::Node>;
  using Pods = std::optional<std::vector<PodPtr>>;
  /// The pods bound to a node, in key order; nullopt: they are not known now.
  using PodsOf = std::function<Pods(const std::string& node)>;
  using Done = std::function<void(bool all, Now now)>;

  /// The parts of the controller that a response uses; the references must outlive it.
  struct Parts {
    Shared shared;
    lifecycle::NodeMonitor& monitor;
    NodeTaintWriter& writer;
    NodeActs& acts;
    LifecycleMetrics& metrics;
    PodsOf pods_of;
    lifecycle::Profile profile;
    Duration tainting_period{};       // between two ticks of the queues
    Duration pod_eviction_timeout{};  // EvictionMode::kLegacy
  };

  virtual ~NodeResponse() = default;

  /// Called just before the first pass.
  virtual void start(Now now) = 0;
  /// Nodes that are new or gone, at the beginning of a pass.
  virtual void on_opening(const lifecycle::NodeMonitor::Opening& opening, Now now) = 0;
  /// A node of a pass whose status is as assessed. `pods`: those of the node, if they are known already.
  virtual void on_assessed(const NodePtr& node, const lifecycle::Assessment& assessment, const Pods& pods, Now now) = 0;
  /// Every zone is in full disruption. `entered`: since this pass; `nodes`: the present nodes of the pass.
  virtual void on_full_disruption(bool entered, const std::vector<NodePtr>& nodes, Now now) = 0;
  /// Sets the timer of the next tick of the queues, if any node waits for it.
  virtual void arm(Now now) = 0;

  /// The node object is new or has changed, between passes.
  virtual void on_node(const NodePtr& /*node*/, Now /*now*/) {}

  /// A pod was bound to a node that may be lost already. `done(true)`: the pod may be marked now; `done(false)`: this
  /// has to be tried again.
  virtual void on_bound(const PodPtr& /*pod*/, const NodePtr& /*node*/, const Done& done, Now now) { done(true, now); }

  /// A pod with a node is new or has changed.
  virtual void on_pod(const PodPtr& /*pod*/) {}

  /// False: the pods of this node keep their Ready condition although it is not ready.
  virtual bool marks_pods_of(const api::Node& /*node*/) const { return true; }
};

using MakeNodeResponse = std::function<std::unique_ptr<NodeResponse>(NodeResponse::Parts parts)>;

}  // namespace spillway::controllers
