// The rules that hold in every state of a run, whatever breaks: the properties of properties/property.h. Each rule
// checks one change of the store, or the whole world once in a while; those with a state of their own are audits in
// properties/. Thread: one.
#pragma once

#include "api/object/disruption_budget.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/workload.h"
#include "base/time.h"
#include "sim/properties/act_audit.h"
#include "sim/properties/budget_audit.h"
#include "sim/properties/eviction_audit.h"
#include "sim/properties/rollout_audit.h"
#include "sim/properties/verdicts.h"
#include "sim/properties/watch_audit.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

/// The fields of a node's lease that are checked.
struct LeaseRenewal {
  std::string name;
  std::string uid;
  std::optional<WallTime> renew_time;
};

class Invariants {
 public:
  struct Limits {
    ActAudit::Limits acts;
    /// The longest time that a ReplicaSet may have more active pods than its size, and a Ready node a NoExecute taint
    /// of the node lifecycle, while no part of the control plane is down.
    Duration surplus_max = minutes(2);
    Duration stale_taint_max = minutes(2);
    /// The longest time that an object may exist in a deleted namespace: a server that had not received the deletion
    /// yet admitted it.
    Duration late_content_max = minutes(2);
  };

  explicit Invariants(const Limits& limits) : limits_(limits), acts_(limits.acts, verdicts_) {}

  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  /// `before` null: the pod is new; `after` null: it was deleted.
  void on_pod(const api::Pod* before, const api::Pod* after, Now now);
  void on_node(const api::Node* before, const api::Node* after, Now now);
  void on_replica_set(const api::ReplicaSet* before, const api::ReplicaSet* after, Now now);

  void on_deployment(const api::Deployment* before, const api::Deployment* after, Now now) {
    rollouts_.on_deployment(before, after, now);
  }

  void on_lease(const LeaseRenewal* before, const LeaseRenewal* after, Now now);
  void on_budget(const api::PodDisruptionBudget* before, const api::PodDisruptionBudget* after, Now now);
  /// A process of a pod starts on this node.
  void on_start(const std::string& node, const std::string& uid, Now now);

  /// The controllers restarted with empty memory: every zone has a full bucket again.
  void on_controller_restart(Now now) { acts_.on_restart(now); }

  /// A part of the control plane is not there, or is there again: meanwhile nothing is put right.
  void on_outage(bool begins, Now now);

  /// An administrator is about to delete this pod.
  void on_removal_by_hand(const api::PodKey& pod) { rollouts_.on_removal_by_hand(pod); }

  /// The wall clock of one machine jumps: times that its agent writes may look older than earlier ones.
  void on_clock_jump(const std::string& node) { unsteady_nodes_.insert(node); }

  /// An object, by its key, is still there although its namespace is gone (`is_there`), or it is gone as well.
  void on_late_content(const std::string& key, bool is_there, Now now);

  /// Checks that the state has recovered wherever the time for that is over.
  void check(Now now);

  /// From now on a ReplicaSet may never have a pod too many, unless its size was reduced less than surplus_max ago,
  /// which its controller may not have seen yet: no message gets lost, and no process crashes that makes pods.
  void forbid_surplus() { no_surplus_ = true; }

  void violate(Property property, Now now, std::string_view text) { verdicts_.violate(property, now, text); }

  void violate(const Violated& what, Now now, std::string_view text) { verdicts_.violate(what, now, text); }

  const std::vector<std::string>& violations() const { return verdicts_.lines(); }

  const std::set<Property>& violated() const { return verdicts_.violated(); }

  const std::vector<Violated>& kinds_of_violations() const { return verdicts_.kinds(); }

  EvictionAudit& evictions() { return evictions_; }

  WatchAudit& watches() { return watches_; }

 private:
  /// States that must end, with the time when each began.
  using Lasting = std::map<std::string, Instant>;

  void check_status(const api::Pod& before, const api::Pod& after, Now now);
  /// True if no wall clock has jumped so far: the times in objects show which of two is the newer one.
  bool is_wall_steady(Now now);
  void count_replica(const api::Pod* before, const api::Pod* after, Now now);
  void check_surplus(const std::string& set, Now now);
  void mark_replaced(const api::Pod* before, const api::Pod* after, Now now);
  void check_marks(Now now);
  void check_lasting(Lasting& lasting, Duration most, const Violated& violated, std::string_view what, Now now);

  Limits limits_;
  Verdicts verdicts_;
  ActAudit acts_;
  BudgetAudit budgets_{verdicts_};
  EvictionAudit evictions_{verdicts_};
  RolloutAudit rollouts_{verdicts_};
  WatchAudit watches_{verdicts_};
  std::set<std::string> gone_uids_;
  std::map<std::string, std::string> node_of_uid_;
  std::map<std::string, std::int64_t> wanted_replicas_;  // by uid of the set
  std::map<std::string, std::set<std::string>> active_;  // active pods by the uid of their set
  Lasting surplus_;                                      // by uid of the set
  /// The time when a set's size was last reduced, or a pod of it that was being replaced counted again; by uid.
  std::map<std::string, Instant> lowered_;
  std::map<std::string, std::string> replaced_;  // nodes of pods that are being replaced, by their keys
  std::set<std::string> silent_nodes_;           // with a NoExecute taint of the node lifecycle
  Lasting stale_marks_;                          // by pod: being replaced although its node is well
  bool no_surplus_ = false;
  Lasting stale_taints_;  // by node
  Lasting late_content_;  // by key
  int outages_ = 0;
  std::optional<Duration> wall_offset_;  // from the monotonic clock
  bool wall_jumped_ = false;
  std::set<std::string> unsteady_nodes_;
  Instant calm_since_{};
};

}  // namespace spillway::sim
