// Watches the node's memory, disk and processes, and ends one pod after the other when a threshold asks for it.
// Looks as often as the distance to the next threshold requires; a wake-up means "look now", never "kill now".
// Thread: loop. Invariants: at most one observation in flight; no pass while a victim is still there (30 s at most);
// the journal entry precedes the kill. Bounds: none of its state grows with time. Source: Kubernetes docs,
// "Node-pressure Eviction"; spec "Eviction manager", 5, 8, 10; "Wake-up sources", 6.
#pragma once

#include "agent/context.h"
#include "agent/fall_rate.h"
#include "agent/journal.h"
#include "agent/pod_workers.h"
#include "agent/ports.h"
#include "agent/reaction.h"
#include "policy/eviction/decide.h"
#include "telemetry/metrics.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

struct EvictionMetrics {
  explicit EvictionMetrics(telemetry::Registry* registry);
  telemetry::Registry* registry = nullptr;
  telemetry::Counter passes;
  telemetry::Counter observations;
  telemetry::Counter failed_observations;
  telemetry::Counter emergencies;

  void count_eviction(const std::string& signal);
  void record_stats_age(eviction::Signal signal, Duration age);
};

class EvictionEngine {
 public:
  EvictionEngine(AgentContext& context, eviction::PassConfig config, PodWorkers& workers, Journal* journal,
                 telemetry::Registry* metrics, Reaction* reaction = nullptr);

  void start(Now now);
  void on_observed(const Observed& event, Now now);
  void on_pressure_wake(const PressureWake& event, Now now);
  void on_pod_finished(const std::string& uid, Now now);
  /// A plan is out of date once pods come or go.
  void on_pods_changed(Now now);
  /// The machine acted by itself: the same numbers are judged here, and everything follows as from a pass.
  void on_reacted(const Reacted& event, Now now);

  const eviction::ConditionSet& conditions() const { return state_.conditions; }

  /// Called when the reported conditions have changed.
  void when_conditions_change(std::function<void(Now now)> listener) { on_conditions_ = std::move(listener); }

  std::shared_ptr<const api::Summary> last_summary() const { return last_summary_; }

 private:
  struct Victim {
    std::string uid;
    Instant since;
    Instant grace_end;
    bool killed = false;        // without grace
    bool frees_memory = false;  // soon: evicted for memory, with no more than the grace of a hard threshold
  };

  void observe(ObserveDepth depth, Now now);
  void schedule(Now now);
  /// Is the last pass too old, or did the picture change since?
  bool needs_pass(Now now) const;
  void run_pass(Now now);
  eviction::PassResult judge(const api::Summary& summary, std::span<const api::Pod* const> active, Now now);
  void conclude(const eviction::PassResult& result, const eviction::ConditionSet& before, Now now);
  /// `done`: as the machine has done it already; nullopt: to be judged and done now.
  void carry_out(const eviction::EvictPod& action, const eviction::PassResult& result, std::optional<Urgency> done,
                 Now now);
  void publish_plan();
  void escalate(Now now);
  void take_grace(Victim& victim);
  void give_up_waiting(Now now);
  void post_evicted_event(const eviction::EvictPod& action, Now now);
  bool emergency_with(Duration grace, Now now) const;
  std::vector<eviction::Threshold> memory_thresholds_met() const;
  Duration next_interval(Now now) const;

  AgentContext& context_;
  eviction::PassConfig config_;
  PodWorkers& workers_;
  Journal* journal_;
  Reaction* reaction_;
  EvictionMetrics metrics_;
  std::function<void(Now)> on_conditions_;

  eviction::PassState state_;
  FallRate fall_;
  std::vector<Victim> victims_;  // being ended
  std::shared_ptr<const api::Summary> last_summary_;
  eviction::Observations seen_;                   // the memory signals of the last observation
  std::vector<eviction::Threshold> met_at_pass_;  // memory thresholds that were met in the last pass
  std::optional<Instant> last_pass_;
  bool pass_wanted_ = false;
  bool nobody_to_evict_ = false;  // although a threshold that may act was met in the last pass

  struct Request {
    std::uint64_t id = 0;
    ObserveDepth depth = ObserveDepth::kWhole;
  };

  std::uint64_t last_id_ = 0;
  std::optional<Request> in_flight_;
  bool wake_pending_ = false;
  std::optional<client::ApiClient::TimerId> timer_;
  std::optional<client::ApiClient::TimerId> plan_timer_;
  bool reaction_watches_ = false;  // a plan that may act is out
  bool last_failed_ = false;
};

}  // namespace spillway::agent
