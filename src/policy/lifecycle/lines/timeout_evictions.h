// Eviction by pod-eviction-timeout: decides when the turn of a failed node's pods has come. Nodes wait in the queues of
// their zones, as nodes that are to be tainted do.
// Thread: any (a value). Bound: one status per node that waits or was evicted. Source: spec "Node lifecycle", S8.2,
// S10; vectors lifecycle/legacy_eviction.
#pragma once

#include "api/object/node.h"
#include "base/time.h"
#include "policy/lifecycle/node_monitor.h"
#include "policy/lifecycle/profile.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace spillway::lifecycle {

class TimeoutEvictions {
 public:
  /// The step for the pods of one node.
  enum class Step : std::uint8_t { kNone, kQueued, kDeleteAgain };

  /// `monitor` must outlive this.
  TimeoutEvictions(NodeMonitor& monitor, Duration pod_eviction_timeout, const LineFacts& facts)
      : monitor_(monitor), timeout_(pod_eviction_timeout), status_per_node_(facts.eviction_status_per_node) {}

  /// Nodes of an earlier life do not wait any more.
  void on_opening(const NodeMonitor::Opening& opening);
  /// For a node in a pass.
  Step decide_eviction(const api::Node& node, const Assessment& assessment, Now now);
  /// For a pod that appears on a node between passes (S10); by the recorded status.
  Step decide_eviction_of_new_pod(const api::Node& node, Now now);
  /// The pods of the node are being deleted now (1.19 deletes newcomers at once from then on).
  void evicted(std::string_view node);
  /// Takes every node out of its queue.
  void cancel_all();

 private:
  /// The state of a node (1.16 to 1.26).
  enum class Status : std::uint8_t { kToBeEvicted, kEvicted };

  Step decide_eviction(const api::Node& node, Readiness readiness, Now now);
  void set(std::string_view node, Status status);
  void cancel(const api::Node& node);

  NodeMonitor& monitor_;
  Duration timeout_;
  bool status_per_node_;
  std::map<std::string, Status, std::less<>> status_;
};

}  // namespace spillway::lifecycle
