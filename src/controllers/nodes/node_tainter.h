// Taints nodes that are not ready and frees them when they are, at once or when the queue of their zone lets them
// through. In legacy mode the pods of a node are evicted instead (pod-eviction-timeout). The monitor decides; waiting
// nodes are processed at the ticks of a fixed beat while a zone lets any through.
// Thread: loop. Bounds: one taint write and one eviction per node under way. Source: spec "Node lifecycle", S7 to S10.
#pragma once

#include "client/api_client.h"
#include "controllers/nodes/node_acts.h"
#include "controllers/nodes/node_taint_writer.h"
#include "controllers/nodes/pod_evictor.h"
#include "controllers/shared/lifecycle_metrics.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/node_monitor.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::controllers {

class NodeTainter {
 public:
  using NodePtr = std::shared_ptr<const api::Node>;
  using Pods = std::optional<std::vector<PodPtr>>;
  /// The pods bound to a node, in key order; nullopt: they are not known now.
  using PodsOf = std::function<Pods(const std::string& node)>;

  /// The parts of the controller that the tainter uses; they must outlive it.
  struct Parts {
    lifecycle::NodeMonitor& monitor;
    NodeTaintWriter& writer;
    PodEvictor& evictor;
    NodeActs& acts;
    LifecycleMetrics& metrics;
  };

  /// `period`: between two ticks.
  NodeTainter(Shared shared, Parts parts, PodsOf pods_of, lifecycle::Profile profile, Duration period);
  NodeTainter(const NodeTainter&) = delete;
  NodeTainter& operator=(const NodeTainter&) = delete;

  /// The beat starts just behind a pass that is due at the same instant.
  void start(Now now) { ticks_from_ = now.mono + nanoseconds(1); }

  /// Taints, frees or queues a node, as the monitor decides. `pods`: those of the node, if they are known already.
  void decide(const NodePtr& node, const lifecycle::Assessment& assessment, const Pods& pods, Now now);
  /// Removes the taints of a node, then takes it out of its queue.
  void free(const NodePtr& node, Now now);
  /// Removes the taints of a node. `gone` may be empty; it is called when the taints are removed. `node` may be null.
  void untaint(const NodePtr& node, std::function<void()> gone, Now now);
  /// Evicts pods that appear on a node whose turn has come already. `done` may be empty, and is not called if the pods
  /// of the node are being evicted already.
  void evict(const NodePtr& node, const std::vector<PodPtr>& pods, std::function<void(bool all, Now now)> done,
             Now now);
  /// Sets the timer of the next tick, if any node waits for it.
  void arm(Now now);

  bool carries_own_taint(const api::Node& node) const;

  /// True while a taint of the node is being written.
  bool is_tainting(const std::string& node) const { return tainting_.contains(node); }

 private:
  using Entry = lifecycle::RateLimitedQueue::Entry;

  bool is_legacy() const { return profile_.mode == lifecycle::EvictionMode::kLegacy; }

  void taint(const NodePtr& node, lifecycle::TaintAction action, NodeTaintWriter::Done done, Now now);
  const std::pair<const std::string, lifecycle::NodeMonitor::Zone>* find_waiting_zone(const api::Node& node) const;
  void explain_waiting(const api::Node& node, Now now);
  std::optional<lifecycle::Readiness> effective_readiness(const api::Node& node) const;

  // The queues of the zones.
  void tick(Now now);
  lifecycle::NodeMonitor::Answer taint_waiting(const std::string& zone, const Entry& entry, Now now);
  lifecycle::NodeMonitor::Answer evict_waiting(const std::string& zone, const Entry& entry, Now now);
  void retry(const std::string& zone, const Entry& entry, Now now);

  Shared shared_;
  Parts parts_;
  PodsOf pods_of_;
  lifecycle::Profile profile_;
  Duration period_;
  Instant ticks_from_{};
  std::set<std::string, std::less<>> tainting_;
  std::set<std::string, std::less<>> evicting_;
  std::optional<client::ApiClient::TimerId> timer_;
};

}  // namespace spillway::controllers
