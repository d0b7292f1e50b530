// Watches the node's memory, disk and processes, and ends one pod after the other when a threshold is met; before that
// it lets the node free what it can by itself. Observes as often as the distance to the next threshold requires; a
// wake-up means "observe now", never "kill now".
// Thread: loop. Invariants: at most one observation in flight; at most one pass at a time; no pass while a victim is
// still there, unless a hard threshold is met and waiting gains nothing (eviction_victims.h); the journal entry
// precedes the kill. Bounds: none of its state grows with time. Source: Kubernetes docs, "Node-pressure Eviction"; spec
// "Eviction manager", 5, 6, 8, 10; "Wake-up sources", 6.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/decision_log.h"
#include "agent/contract/evictable_pods.h"
#include "agent/contract/ports.h"
#include "agent/eviction/eviction_executor.h"
#include "agent/eviction/eviction_log.h"
#include "agent/eviction/eviction_metrics.h"
#include "agent/eviction/eviction_readings.h"
#include "agent/eviction/eviction_victims.h"
#include "agent/eviction/eviction_witness.h"
#include "agent/eviction/reaction.h"
#include "agent/eviction/relief_rounds.h"
#include "api/json/json.h"
#include "policy/eviction/decide.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

/// A node that has not freed anything by then is not waited for any longer.
inline constexpr Duration kReclaimTimeout = seconds(20);

class EvictionEngine {
 public:
  EvictionEngine(AgentContext& context, eviction::PassConfig config, EvictablePods& pods, DecisionLog& decisions,
                 telemetry::Registry* metrics, Reaction* reaction = nullptr, EvictionWitness* witness = nullptr);

  void start(Now now);
  /// `summary`: the event's own, if its sender will not change it, so that it need not be copied.
  void on_observed(const Observed& event, Now now, std::shared_ptr<const api::Summary> summary = nullptr);
  void on_reclaimed(const Reclaimed& event, Now now);
  void on_relieved(const Relieved& event, Now now);
  void on_pressure_wake(const PressureWake& event, Now now);
  void on_pod_finished(const std::string& uid, Now now);
  /// A plan is out of date once pods are added or removed.
  void on_pods_changed(Now now);
  /// Observes the whole machine now: it may have found pods unknown to it.
  void observe_everything(Now now);
  /// An eviction of an earlier instance that is being finished: the next victim waits for it.
  void resume(const JournalEntry& decided, Now now);
  /// The machine acted by itself: the engine evaluates the same numbers and continues as after a pass.
  void on_reacted(const Reacted& event, Now now);

  /// A timer that the engine set with AgentContext::api is due.
  void on_timer(EngineTimer timer, Now now);

  /// The engine's state, for another instance to resume from; without a pass that waits for the node to reclaim.
  EvictionSnapshot snapshot() const;
  /// Restores a new instance before its first input. Keeps the thresholds it was made with; its timers do not run.
  void restore(const EvictionSnapshot& snapshot, Now now);

  const eviction::ConditionSet& conditions() const { return state_.conditions; }

  /// Called when the reported conditions have changed.
  void when_conditions_change(std::function<void(Now now)> listener) { on_conditions_ = std::move(listener); }

  std::shared_ptr<const api::Summary> last_summary() const { return readings_.summary(); }

  /// The present state: why no pod is being evicted, or which one is, and which would be next. nullopt: nothing was
  /// observed yet.
  std::optional<policy::Decision> current_decision(Now now) const;

  /// State for people and /debug/spillway: no contract.
  api::Json state(Now now) const;

 private:
  /// A pass that waits until the node has freed what it can.
  struct PendingReclaim {
    std::uint64_t id = 0;
    eviction::PassResult result;
    std::shared_ptr<const api::Summary> summary;
    bool answered = false;
    std::optional<std::uint64_t> recheck_id;  // the observation taken since
  };

  WitnessedStep take_down(EngineInputRef input, Now now);
  client::ApiClient::TimerId set_timer(EngineTimer timer, Instant due);
  void drop(std::optional<client::ApiClient::TimerId>& timer);

  // eviction_engine.cc: when to observe, and what an observation leads to.
  void observe(ObserveDepth depth, Now now);
  void give_up_observation(Now now);
  void observe_or_schedule(Now now);
  void schedule(Now now);
  void learn(const Observed& event, Now now);
  /// True if the last pass is too old, or inputs have changed since.
  bool needs_pass(Now now) const;
  Duration next_interval(Now now) const;
  Duration pass_interval(Now now) const;

  // eviction_pass.cc: passes, and what follows from them.
  void run_pass(Now now);
  std::vector<const api::Pod*> active() const;
  bool claim();
  /// Every active pod that has not been chosen before.
  std::vector<const api::Pod*> candidates() const;
  enum class OnPressure { kChoose, kMayRelieve };
  eviction::PassResult evaluate(const api::Summary& summary, std::span<const api::Pod* const> active, OnPressure then,
                                Now now);
  void conclude(const eviction::PassResult& result, const eviction::ConditionSet& before, Now now);
  void execute(eviction::PassResult& result, Now now);
  void begin_reclaim(eviction::PassResult result, Now now);
  void end_reclaim(const api::Summary* after, Now now);
  void give_up_reclaim(Now now);
  void supersede_reclaim();

  /// Begins the round of relief that is due; publishes the plan anew if the machine may act by itself now, or no
  /// longer.
  void relieve(Now now);

  void publish_plan();

  AgentContext& context_;
  eviction::PassConfig config_;
  EvictablePods& pods_;
  DecisionLog& decisions_;
  Reaction* reaction_;
  EvictionWitness* witness_;
  EvictionMetrics metrics_;
  std::function<void(Now)> on_conditions_;

  eviction::PassState state_;
  EvictionReadings readings_;
  Victims victims_;
  EvictionExecutor executor_;
  std::optional<PendingReclaim> reclaim_;
  ReliefRounds relief_;
  std::vector<eviction::Threshold> reached_at_pass_;  // in the last pass
  std::optional<Instant> last_pass_;
  std::optional<Instant> threshold_event_at_;
  bool pass_wanted_ = false;
  bool nobody_to_evict_ = false;  // no pod may be evicted, although a threshold was reached in the last pass

  std::uint64_t last_id_ = 0;
  std::optional<Observe> in_flight_;
  bool wake_pending_ = false;
  std::optional<client::ApiClient::TimerId> timer_;
  std::optional<client::ApiClient::TimerId> reclaim_timer_;
  std::optional<client::ApiClient::TimerId> plan_timer_;
  bool reaction_watches_ = false;  // a plan that may act is out
  bool last_failed_ = false;
  EvictionLog log_;
};

}  // namespace spillway::agent
