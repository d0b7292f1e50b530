// Evictions from nodes with NoExecute taints: the rule, and the timers between evaluations. TaintEvictions does no I/O:
// it gets changes and returns commands, which its caller executes. Thread: loop. Bound: one timer or mark per pod.
// Source: Kubernetes docs, "Taints and Tolerations"; KEP-3902; spec "Node lifecycle", S11; vectors
// lifecycle/taint_eviction.
#pragma once

#include "api/object/pod.h"
#include "api/object/taint.h"
#include "base/time.h"
#include "policy/lifecycle/eviction_schedule.h"
#include "policy/lifecycle/profile.h"
#include "policy/reason.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::lifecycle {

/// The time for which a pod may stay: none, for ever, or `wait`.
struct Toleration {
  enum class Kind { kNone, kForever, kFor };
  Kind kind = Kind::kForever;
  Duration wait{};                          // kFor: not negative
  const api::Taint* untolerated = nullptr;  // kNone: the first taint without a toleration

  friend bool operator==(const Toleration&, const Toleration&) = default;
};

/// Each taint takes the first toleration in pod order that tolerates it; the shortest tolerationSeconds of those
/// counts, zero and less is now. `taints` are NoExecute taints.
Toleration tolerated_for(std::span<const api::Taint> taints, std::span<const api::Toleration> tolerations);

/// The NoExecute taints among `taints`, in order.
std::vector<api::Taint> no_execute_taints(std::span<const api::Taint> taints);

class TaintEvictions {
 public:
  enum class OrderKind {
    kEvict,      // delete the pod now; report with on_evicted
    kCancelled,  // an armed timer was cancelled: record an event
  };

  struct Order {
    OrderKind kind = OrderKind::kEvict;
    api::PodKey pod;
    policy::Reason reason;
  };

  explicit TaintEvictions(Profile profile) : profile_(profile) {}

  /// The node was added or its NoExecute taints changed; `pods` are the pods bound to it, in key order. `since`: the
  /// time since which the taints were in force before this process saw them, if known.
  std::vector<Order> on_node(std::string_view node, std::vector<api::Taint> taints,
                             std::span<const api::Pod* const> pods, Now now,
                             std::optional<Instant> since = std::nullopt);
  /// Forgets the taints; armed timers stay armed and fire.
  void on_node_gone(std::string_view node);
  /// The pod appeared, was bound, or its tolerations changed.
  std::vector<Order> on_pod(const api::Pod& pod, Now now, std::optional<Instant> since = std::nullopt);
  std::vector<Order> on_pod_gone(const api::PodKey& pod);
  /// The pods whose timers have fired.
  std::vector<Order> take_due(Now now);

  std::optional<Instant> next_due() const { return schedule_.next_due(); }

  /// The outcome of a kEvict order. A deleted pod stays registered, so that no second timer is armed for it.
  void on_evicted(const api::PodKey& pod, bool deleted, Now now);

  /// Delays a kEvict order: it is issued again at `due` unless the eviction is cancelled meanwhile.
  void postpone(const api::PodKey& pod, Instant due, Now now);

  const EvictionSchedule& schedule() const { return schedule_; }

  bool is_tainted(std::string_view node) const { return taints_.contains(node); }

 private:
  struct Attempt {
    int failures = 0;
  };

  void cancel(const api::PodKey& pod, std::vector<Order>& orders);
  void evaluate(const api::Pod& pod, std::span<const api::Taint> taints, Now now, std::optional<Instant> since,
                std::vector<Order>& orders, std::vector<Order>& at_once);
  void arm(const api::PodKey& pod, Instant created, Instant due, Now now, std::vector<Order>& at_once);

  Profile profile_;
  std::map<std::string, std::vector<api::Taint>, std::less<>> taints_;
  EvictionSchedule schedule_;
  std::map<api::PodKey, Attempt> attempts_;  // pods whose eviction was ordered
};

}  // namespace spillway::lifecycle
