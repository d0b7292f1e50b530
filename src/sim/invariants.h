// What must hold in every state of a run, whatever breaks. Each rule looks at one change of the store, or at the whole
// world once in a while; a violation is text with the time, kept in order. Thread: one.
#pragma once

#include "api/object/lease.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/workload.h"
#include "base/time.h"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

class Invariants {
 public:
  struct Limits {
    /// NoExecute taints for unreachable or not-ready nodes per zone: at most 1 + restarts + rate × (window + how late
    /// a write can come) of them in any window.
    double node_eviction_rate = 0.1;
    Duration write_latency_max = seconds(5);  // from the decision to the store
    /// How long a ReplicaSet may have more active pods than it asks for, and a Ready node a NoExecute taint of the node
    /// lifecycle, while nothing of the control plane is down. Zero pods too many: not even for a moment.
    Duration surplus_max = minutes(2);
    Duration stale_taint_max = minutes(2);
    /// How long an object may stand in a namespace that is gone: it was admitted before the server heard of that.
    Duration late_content_max = minutes(2);
  };

  explicit Invariants(Limits limits) : limits_(limits) {}

  /// Null: the object did not exist before, or does not any more.
  void on_pod(const api::Pod* before, const api::Pod* after, Now now);
  void on_node(const api::Node* before, const api::Node* after, Now now);
  void on_replica_set(const api::ReplicaSet* before, const api::ReplicaSet* after, Now now);
  void on_lease(const api::Lease* before, const api::Lease* after, Now now);
  /// A process of a pod starts on this node.
  void on_start(const std::string& node, const std::string& uid, Now now);

  /// The controllers came back with empty memory: every zone has a full bucket again.
  void on_controller_restart() { bucket_allowance_ += 1; }

  /// A part of the control plane is not there, or is there again: meanwhile nobody puts anything right.
  void on_outage(bool begins, Now now);

  /// Of an object, by its key: its namespace is gone, or it is gone as well.
  void on_late_content(const std::string& key, bool is_there, Now now);

  /// Nothing that should have been put right by now is left.
  void look(Now now);

  /// From now on a ReplicaSet may never have a pod too many: nothing gets lost and nobody crashes who makes pods.
  void forbid_surplus() { limits_.surplus_max = Duration::zero(); }

  void violate(Now now, std::string text);

  const std::vector<std::string>& violations() const { return violations_; }

 private:
  /// Something that must end, since when it lasts.
  using Lasting = std::map<std::string, Instant>;

  void check_taint_rate(const std::string& zone, Now now);
  void check_status(const api::Pod& before, const api::Pod& after, Now now);
  /// No wall clock has jumped so far: the times that objects carry tell which of two is the newer one.
  bool is_wall_steady(Now now);
  void count_replica(const api::Pod* before, const api::Pod* after, Now now);
  void check_surplus(const std::string& set, Now now);
  void look_at(Lasting& lasting, Duration most, std::string_view what, Now now);

  Limits limits_;
  double bucket_allowance_ = 1;
  std::set<std::string> gone_uids_;
  std::map<std::string, std::string> node_of_uid_;
  std::map<std::string, std::deque<Instant>> tainted_at_;  // by zone
  std::map<std::string, std::int64_t> wanted_replicas_;    // by uid of the set
  std::map<std::string, std::set<std::string>> active_;    // pods by uid of their set
  Lasting surplus_;                                        // by uid of the set
  Lasting stale_taints_;                                   // by node
  Lasting late_content_;                                   // by key
  int outages_ = 0;
  std::optional<Duration> wall_offset_;  // from the monotonic clock
  bool wall_jumped_ = false;
  Instant calm_since_{};
  std::vector<std::string> violations_;
};

}  // namespace spillway::sim
