// One eviction engine of a replay, from a recorded state on, with ports that give the recorded answers.
// Thread: one. Invariant: under its own configuration nothing is made up.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/decision_log.h"
#include "agent/contract/evictable_pods.h"
#include "agent/eviction/eviction_engine.h"
#include "agent/recording/replay.h"
#include "client/api_client.h"
#include "client/event_recorder.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

ReplayOutcome outcome_of(const eviction::ConditionSet& conditions, Now at);
ReplayOutcome outcome_of(const JournalEntry& entry, Now at);

class Replay::Session final : public EvictionWitness, public EvictablePods, public Reaction {
 public:
  /// kOwn: under the configuration it was recorded with.
  enum class As { kOwn, kOther };

  /// The engine's decisions are added to `outcomes`.
  static Result<std::unique_ptr<Session>> create(RunState state, EvictionOptions options, As as,
                                                 std::vector<ReplayOutcome>& outcomes);

  /// Gives the engine one input with the records that followed it.
  void run(const InputReceived& received, std::vector<Record> followed);

  /// All pods, as the engine sees them from here on.
  void see_all(std::vector<api::Pod> pods);

  EvictionSnapshot snapshot() const { return engine_.snapshot(); }

  std::uint64_t estimated() const { return estimated_; }

  // EvictionWitness
  bool wants_snapshot() const override { return false; }

  void on_snapshot(const EvictionSnapshot&, std::span<const api::Pod* const>, Now) override {}

  void on_input(const EngineInputRef&, Now now) override { now_ = now; }

  void on_end() override {}

  void on_pods(std::span<const api::Pod* const>) override {}

  void on_claim(bool) override {}

  void on_decision(const JournalEntry& entry) override;
  void on_conditions(const eviction::ConditionSet& conditions) override;
  void on_ending() override;

  // EvictablePods
  std::vector<const api::Pod*> active() const override;
  void evict(const eviction::EvictPod& action, Urgency urgency, Now now) override;
  void kill_now(const std::string& uid) override;

  // Reaction
  void publish(ReactionPlan) override {}

  bool claim() override;

 private:
  /// Requests of the engine that the recording's node has not answered yet.
  struct Owed {
    std::optional<Observe> observation;
    std::optional<std::uint64_t> reclaim;
    std::optional<std::uint64_t> relief;
  };

  /// An observation because of which the engine wants to see everything.
  struct Wanting {
    Observed seen;
    Instant at;
  };

  Session(RunState state, EvictionOptions options, As as, eviction::PassConfig config,
          std::vector<ReplayOutcome>& outcomes);

  void deliver(const EngineInput& input, Now now);
  void deliver_adapted(const EngineInput& input, Now now);
  void see(const Observed& seen, Now now);
  /// Answers the engine's observe command.
  void answer(Observed seen, Now now);
  void answer_with_estimate();
  /// The node's and the pods' memory of `light`, and everything else of the last whole observation.
  std::optional<Observed> completed(const Observed& light) const;
  void end_overdue(Now now);
  void collect();
  void see_pods(PodsSeen seen) const;
  const Record* next_answer() const;
  void deliver_nested();

  As as_;
  AgentOptions options_;
  MachineInfo machine_;
  telemetry::Log log_;
  std::vector<HostCommand> commands_;
  client::ApiClient api_;
  client::EventRecorder events_;
  AgentContext context_;
  DecisionLog decisions_;
  EvictionEngine engine_;
  std::vector<ReplayOutcome>& outcomes_;
  Now now_{};

  // Answers of the recording; mutable because the engine asks in const functions.
  mutable std::vector<std::string> order_;
  mutable std::map<std::string, api::Pod, std::less<>> pods_;
  mutable std::vector<Record> followed_;
  mutable std::size_t answered_ = 0;

  // Used under another configuration.
  Owed owed_;
  Instant reclaim_since_{};
  std::optional<Observed> last_whole_;
  const Reacted* reacted_ = nullptr;  // set while the engine evaluates readings that the machine took by itself
  std::optional<Wanting> wanting_more_;
  std::map<std::string, Instant> ending_;  // pods that the engine is ending, with the time of the decision
  std::set<std::string, std::less<>> gone_;
  std::uint64_t estimated_ = 0;
};

}  // namespace spillway::agent
