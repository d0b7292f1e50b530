// One pass of the eviction manager: from the measurements to the pod to evict, with reasons. The caller keeps the state
// between passes, journals the decision and acts on it.
// Thread: any (pure). Invariants: at most one pod per pass because of a threshold; a critical pod never.
// Source: Kubernetes docs, "Node-pressure Eviction"; spec "Eviction manager", 5, 6, 8.
#pragma once

#include "api/object/pod.h"
#include "api/object/summary.h"
#include "base/time.h"
#include "policy/eviction/conditions.h"
#include "policy/eviction/containerfs.h"
#include "policy/eviction/grace.h"
#include "policy/eviction/ranking.h"
#include "policy/eviction/reclaim.h"
#include "policy/eviction/threshold.h"
#include "policy/reason.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::eviction {

enum class LocalStorageLimits { kIgnored, kEnforced };

struct PassConfig {
  std::vector<Threshold> thresholds;  // as configured
  Duration pressure_transition_period = minutes(5);
  std::int64_t max_pod_grace_period_seconds = 0;  // ceiling of the grace of soft evictions
  LocalStorageLimits local_storage_limits = LocalStorageLimits::kEnforced;
  MemoryEstimator memory_estimator = MemoryEstimator::kWorkingSet;
  std::string node;  // in whose name decisions are made
};

/// State that is carried from one pass to the next.
struct PassState {
  std::optional<StorageLayout> layout;
  std::vector<Threshold> thresholds;  // with containerfs derived; valid after adopt_layout() or postpone_layout()
  GraceTracker grace;
  ConditionClock condition_clock;
  ConditionSet conditions;                // reported
  std::vector<Threshold> crossed_before;  // past grace in the last pass
  Observations last;
};

/// Fixes the layout for good and derives the containerfs thresholds. Returns the warning of the derivation, or "".
std::string adopt_layout(const PassConfig& config, StorageLayout layout, PassState& state);

/// Postpones the thresholds of disks while the layout is unknown: those of memory and processes are evaluated without
/// it.
void postpone_layout(const PassConfig& config, PassState& state);

/// Status: phase Failed, reason Evicted, `message`; and the condition, if `disruption_target`.
struct EvictPod {
  std::string uid;
  api::PodKey pod;
  std::int64_t grace_period_seconds = 0;  // overrides the pod's own; at least 1 takes effect
  std::string message;
  api::StringMap annotations;  // the event's annotations
  bool disruption_target = false;
  std::string metric_label;  // "memory.available", "emptydirfs.limit"

  friend bool operator==(const EvictPod&, const EvictPod&) = default;
};

/// A threshold that requires an eviction, unless the node frees enough by itself first.
struct PendingEviction {
  Threshold acting;
  std::vector<Threshold> fresh;  // all that may act in this pass, most urgent first
  Observations seen;
  std::vector<ReclaimAction> reclaim;  // may be empty
  Instant since{};
};

struct PassResult {
  PassState state;
  std::vector<EvictPod> actions;      // one for a threshold; or one for each pod above a limit of local storage
  policy::Decision decision;          // with the reasons for acting or not
  std::vector<Threshold> past_grace;  // reached, and past the grace period, whether or not their observation is new
  std::optional<PendingEviction> pending;
  std::string node_event;                               // message of EvictionThresholdMet; empty: none
  std::vector<std::pair<Signal, Duration>> stats_ages;  // the age of the statistics on which a ranking is based
};

inline constexpr std::size_t kCandidatesMax = 10;
inline constexpr std::int64_t kHardGraceSeconds = 1;

/// Steps 5 to 16: conditions, graces, local storage limits, and which threshold acts. `active`: every pod that is not
/// finished, in the caller's order.
PassResult observe_pressure(const PassConfig& config, PassState state, const api::Summary& summary,
                            std::span<const api::Pod* const> active, Now now);

/// Steps 17 to 20, after the reclaim actions of result.pending ran: no pod is evicted if `after` (the summary taken
/// since; null: none, or it failed) shows no threshold met any more. Clears result.pending.
void choose_victim(const PassConfig& config, PassResult& result, const api::Summary& summary,
                   std::span<const api::Pod* const> active, const api::Summary* after, Now now);

/// The part of a pass's decision that is about one of its actions: what is journalled before that pod is ended.
policy::Decision decision_about(const EvictPod& action, const policy::Decision& pass);

/// The state between passes, for a user who asks why nothing is evicted: every threshold with its numbers, and the
/// order in which all pods would be evicted if `signal` ran short. Changes nothing.
policy::Decision current_decision(const PassConfig& config, const PassState& state, const api::Summary& summary,
                                  std::span<const api::Pod* const> active, Signal signal, Now now);

}  // namespace spillway::eviction
