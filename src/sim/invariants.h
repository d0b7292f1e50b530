// What must hold in every state of a run, whatever breaks. Each rule looks at one change of the store, or at the whole
// world once in a while; a violation is text with the time, kept in order. Thread: one.
#pragma once

#include "api/object/node.h"
#include "api/object/pod.h"
#include "base/time.h"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::sim {

class Invariants {
 public:
  struct Limits {
    /// NoExecute taints for unreachable or not-ready nodes per zone: at most 1 + restarts + rate × (window + how late
    /// a write can come) of them in any window.
    double node_eviction_rate = 0.1;
    Duration write_latency_max = seconds(5);  // from the decision to the store
  };

  explicit Invariants(Limits limits) : limits_(limits) {}

  /// Null: the object did not exist before, or does not any more.
  void on_pod(const api::Pod* before, const api::Pod* after, Now now);
  void on_node(const api::Node* before, const api::Node* after, Now now);
  /// A process of a pod starts on this node.
  void on_start(const std::string& node, const std::string& uid, Now now);

  /// The controllers came back with empty memory: every zone has a full bucket again.
  void on_controller_restart() { bucket_allowance_ += 1; }

  void violate(Now now, std::string text);

  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void check_taint_rate(const std::string& zone, Now now);

  Limits limits_;
  double bucket_allowance_ = 1;
  std::set<std::string> gone_uids_;
  std::map<std::string, std::string> node_of_uid_;
  std::map<std::string, std::deque<Instant>> tainted_at_;  // by zone
  std::vector<std::string> violations_;
};

}  // namespace spillway::sim
