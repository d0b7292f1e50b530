// The state of the node lifecycle, and what it waits for, as reports for users: `spillway zones`, `spillway explain
// node/NAME`, the pages under /debug/spillway. Reads the state of the controllers and changes nothing.
// Thread: loop.
// Cost: zones: the head of each zone's queue; a node: its pods and the queue of its zone.
#pragma once

#include "api/json/json.h"
#include "controllers/nodes/node_lifecycle.h"
#include "controllers/shared/act_gate.h"
#include "controllers/shared/pods_by_node.h"
#include "controllers/shared/shared.h"
#include "controllers/taints/taint_eviction.h"
#include "policy/reason.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

/// The state of one zone.
struct ZoneStanding {
  std::string zone;  // name for people; empty: the nodes without zone labels
  lifecycle::ZoneState state{};
  lifecycle::ZoneCounts counts;
  double nodes_per_second = 0;
  std::optional<Duration> next_token_in;  // until the next act by the rate; nullopt: never
  std::int64_t waiting = 0;               // nodes in the zone's queue
  std::string next_node;                  // the first node of the queue
  std::optional<Duration> next_act_in;    // until next_node is due; nullopt: none waits, or its acts are held
  std::optional<policy::Reason> brake;    // the reason why its acts are held; nullopt: they are not
};

class LifecycleReport {
 public:
  /// All outlive the report.
  LifecycleReport(const Shared& shared, const NodeLifecycleController& nodes, const TaintEvictionController& taints,
                  const PodsByNode& pods_by_node, const ActGate& gate)
      : shared_(shared), nodes_(nodes), taints_(taints), pods_by_node_(pods_by_node), gate_(gate) {}

  /// The zones in key order.
  std::vector<ZoneStanding> zones(Now now) const;
  /// kind ZoneList: items, newNodes (in no zone so far), lookEverySeconds, masterDisruption, brake (that holds
  /// everything), at.
  api::Json zones_document(Now now) const;

  /// The reasons why the node is or is not tainted: its health, the source and age of that; conditions; zone; place in
  /// the queue; the brake that holds; the time of the next act. nullopt: there is no such node.
  std::optional<policy::Decision> explain_node(const std::string& name, Now now) const;
  /// The reason why a pod of a failed node has not been deleted, or the time at which it will be. `key`:
  /// NAMESPACE/NAME. nullopt: there is no such pod, or it will not be deleted.
  std::optional<policy::Decision> explain_pod(const std::string& key, Now now) const;

 private:
  using Zone = lifecycle::NodeMonitor::Zone;

  std::int64_t new_nodes() const;
  std::optional<policy::Reason> brake_on(std::string_view zone, const Zone& details, Now now) const;
  std::optional<Instant> due(const Zone& zone, std::size_t place, Now now) const;
  policy::Reason health_of(const api::Node& node, Now now) const;
  std::optional<policy::Reason> deletions_of(const std::string& node, Now now) const;

  Shared shared_;
  const NodeLifecycleController& nodes_;
  const TaintEvictionController& taints_;
  const PodsByNode& pods_by_node_;
  const ActGate& gate_;
};

}  // namespace spillway::controllers
