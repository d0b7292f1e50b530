// The taint eviction controller: deletes the pods of nodes with NoExecute taints when their tolerations end. The
// decisions are lifecycle::TaintEvictions'; this engine feeds it from the caches and carries its orders out.
//
// After a start, nodes that already carry the not-ready or unreachable taint are left alone for `start_hold`: they may
// have recovered while no controller ran. Timers of pods that were there before count from the time the taint was
// added. Thread: loop. Bounds: five attempts per deletion, 10 ms apart, then again with back-off up to a minute.
// Source: Kubernetes docs, "Taints and Tolerations"; KEP-3902; spec "Node lifecycle", S11.
#pragma once

#include "client/event_recorder.h"
#include "client/wake_up.h"
#include "controllers/shared/act_gate.h"
#include "controllers/shared/lifecycle_metrics.h"
#include "controllers/shared/pods_by_node.h"
#include "controllers/shared/shared.h"
#include "controllers/taints/budget_check.h"
#include "controllers/taints/replacement_check.h"
#include "controllers/taints/replacement_order.h"
#include "policy/lifecycle/taint_eviction.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

enum class TaintDeletionEnd : std::uint8_t;

class TaintEvictionController {
 public:
  struct Options {
    lifecycle::Profile profile;
    Duration start_hold = seconds(50);
    int attempts_max = 5;
    Duration attempt_wait = milliseconds(10);
    /// Evict through pods/eviction, so that disruption budgets are respected, instead of deleting.
    bool respect_budgets = false;
    /// Delete a pod only when its replacement could be placed on another node.
    bool wait_for_replacement = false;
    /// As above; in addition, pods of ReplicaSets on failed nodes are replaced first, in order of priority. The
    /// controller of the sets needs the same option (ReplicasController); without it the pods are deleted after
    /// workloads::kReplacementPatience.
    bool replace_before_deletion = false;
    Duration obstacle_wait = seconds(5);  // before a refused deletion is tried again
  };

  TaintEvictionController(Shared shared, const PodsByNode& pods_by_node, LifecycleMetrics& metrics, ActGate& gate,
                          telemetry::Registry& registry, Options options);
  TaintEvictionController(const TaintEvictionController&) = delete;
  TaintEvictionController& operator=(const TaintEvictionController&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);

  const lifecycle::EvictionSchedule& schedule() const { return evictions_.schedule(); }

  /// nullptr: pods are deleted first.
  const ReplacementOrder* replacements() const { return order_ ? &*order_ : nullptr; }

 private:
  using NodePtr = std::shared_ptr<const api::Node>;

  void on_node(const NodePtr& before, const NodePtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void evaluate_node(const api::Node& node, Now now);
  void release_held(Now now);
  void evaluate_as_before(const api::Node& node, Now now);
  bool has_health_taint(const api::Node& node) const;
  void carry_out(std::vector<lifecycle::TaintEvictions::Order> orders, Now now);
  void sort_by_priority(std::vector<lifecycle::TaintEvictions::Order>& orders) const;
  void evict(const api::PodKey& pod, const policy::Reason& reason, Now now);
  bool holds(const PodPtr& pod, Now now);
  bool waits_for_replacement(const PodPtr& pod, Now now);
  bool waits_for_room(const api::Pod& pod, Now now);
  void begin_check(Now now);
  void postpone(const api::Pod& pod, const policy::Reason& reason, Now now);
  void postpone_until(Instant again, const api::Pod& pod, const policy::Reason& reason, Now now);
  void remove(const PodPtr& pod, Now now);
  void on_removed(const api::Pod& pod, Instant ordered, TaintDeletionEnd end, const std::optional<Error>& error,
                  Now now);
  void arm();

  Shared shared_;
  const PodsByNode& pods_by_node_;
  LifecycleMetrics& metrics_;
  ActGate& gate_;
  Options options_;
  lifecycle::TaintEvictions evictions_;
  std::optional<ReplacementOrder> order_;  // if pods are replaced before they are deleted
  std::optional<ReplacementCheck> rooms_;  // set if replacements must have room
  std::optional<BudgetCheck> budgets_;     // set if disruption budgets are respected
  /// Pods that found no room are checked again together, so that the one of the highest priority has the first choice
  /// of the freed room. Pods that find none in between wait for that pass.
  std::map<api::PodKey, policy::Reason> roomless_;
  std::optional<Instant> check_at_;       // the time of the next check, or of the last one
  std::optional<Instant> next_check_at_;  // if any found no room
  bool started_ = false;
  std::set<std::string, std::less<>> held_;  // nodes whose taints are older than this process
  client::WakeUp wake_up_;
};

}  // namespace spillway::controllers
