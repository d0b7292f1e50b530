// The node lifecycle controller: notices silent nodes by its own clock, sets their conditions to Unknown, taints them
// at the rate of their zone, and undoes all of it when they recover. The decisions are lifecycle::NodeMonitor's; this
// engine reads the caches, writes to the API server and reports back. Taints, or the way of an old line to empty failed
// nodes, are behind node_response.h.
//
// The caches report which nodes may have changed. A pass every node_monitor_period (node_pass.h): assess those, and the
// ones that are not well; get the lease of those that seem to have fallen silent (a broken watch must not pass for a
// dead node); evaluate the zones; then write and decide. The next pass starts a period after the end of this one, or
// when the next node that is late has been silent for its grace period: then it is noticed within pass_gap_min. Thread:
// loop. Bounds: one status write and one taint write per node in flight; five attempts each. Source: Kubernetes docs,
// "Nodes"; KEP-589; spec "Node lifecycle", S3 to S10, S14, S15.
#pragma once

#include "base/rng.h"
#include "client/event_recorder.h"
#include "controllers/nodes/lifecycle_witness.h"
#include "controllers/nodes/node_acts.h"
#include "controllers/nodes/node_response.h"
#include "controllers/nodes/node_status_writer.h"
#include "controllers/nodes/node_taint_writer.h"
#include "controllers/nodes/pod_marker.h"
#include "controllers/shared/act_gate.h"
#include "controllers/shared/lifecycle_metrics.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/node_monitor.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class NodePass;

class NodeLifecycleController {
 public:
  struct Options {
    Duration node_monitor_period = seconds(5);
    lifecycle::MonitorConfig monitor;
    lifecycle::Profile profile;
    Duration tainting_period = milliseconds(100);
    Duration pass_gap_min = milliseconds(100);  // the shortest time between passes for deadlines
    NodeStatusWriter::Options status;
    /// Ask the API server for the lease of a node before it is called silent.
    bool live_lease_check = true;
    /// Keep each node's NoSchedule taints and its beta labels as its conditions and labels say. True also where an old
    /// upstream version is imitated that did not do so: our API server taints new nodes in any case.
    bool reconcile_nodes = true;
    /// Manual hold: while this ConfigMap exists, the acts that it names are held (manual_hold.h). Empty: there is none.
    std::string hold_config_map;  // "kube-system/spillway-hold"
    /// Null: no observer. Must outlive the controller.
    LifecycleWitness* witness = nullptr;
  };

  using Pods = NodeResponse::Pods;
  using PodsOf = NodeResponse::PodsOf;

  /// `make_response` makes the response to nodes that fail and recover.
  NodeLifecycleController(Shared shared, PodsOf pods_of, LifecycleMetrics& metrics, ActGate& gate, Rng rng,
                          Options options, const MakeNodeResponse& make_response);
  NodeLifecycleController(const NodeLifecycleController&) = delete;
  NodeLifecycleController& operator=(const NodeLifecycleController&) = delete;

  /// Begins with the first pass. Called once the caches are filled.
  void start(Now now);

  const lifecycle::NodeMonitor& monitor() const { return monitor_; }

  const Options& options() const { return options_; }

 private:
  using NodePtr = std::shared_ptr<const api::Node>;
  using LeasePtr = std::shared_ptr<const api::Lease>;

  friend class NodePass;

  // The beginning and the end of a pass; NodePass is between them.
  void begin_pass(Now now);
  lifecycle::NodeMonitor::Verdict evaluate_zones(Now now);
  void end_pass(Now now);
  Instant next_pass(Now now) const;
  void feed_brakes(Now now);
  void log_new_zones();
  void check_hold();
  void on_hold_read(const Result<api::Json>& outcome);
  void report_verdict(const lifecycle::NodeMonitor::Verdict& verdict, Now now);
  void act(const NodePtr& node, const lifecycle::Assessment& assessment, Now now);

  void on_status_settled(const NodePtr& node, const lifecycle::Assessment& assessment, Now now);
  void follow_status(const NodePtr& node, const lifecycle::Assessment& assessment, Now now);

  // Events of the caches.
  void on_node(const NodePtr& before, const NodePtr& after, Now now);
  void reconcile(const NodePtr& node, Now now);
  void on_labelled(const std::string& name, const Result<api::Json>& outcome);
  void on_lease(const LeasePtr& before, const LeasePtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void follow_pod(const client::ObjectKey& key, int tries, Now now);
  /// `listed`: nullopt if no list was needed so far.
  void mark_pods(const NodePtr& node, const lifecycle::Assessment& assessment, const Pods& listed, Now now);

  void record_zone(const lifecycle::NodeMonitor::ZoneChange& change, Now now);
  void record_marked(const api::Node& node, const lifecycle::Assessment& assessment, Now now);

  Shared shared_;
  PodsOf pods_of_;
  LifecycleMetrics& metrics_;
  ActGate& gate_;
  Options options_;
  lifecycle::NodeMonitor monitor_;
  NodeStatusWriter statuses_;
  NodeTaintWriter taints_;
  PodMarker marker_;
  NodeActs acts_;
  std::unique_ptr<NodeResponse> response_;
  bool started_ = false;
  std::optional<Instant> first_deadline_;  // among the nodes that were not silent in the last pass
  std::shared_ptr<NodePass> pass_;         // under way, or the last one; null before the first
  std::set<std::string> zones_;            // the zones of the last pass
  std::set<std::string, std::less<>> labelling_;
};

}  // namespace spillway::controllers
