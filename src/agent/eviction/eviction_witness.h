// Records the inputs and decisions of an eviction engine, so that another engine can be given the same: the inputs, the
// answers of its ports in between, and now and then its whole state.
// Thread: loop. Invariants: between on_input() and on_end() all calls belong to that input; inputs nest, since a pod
// may be gone the moment it is ended. Source: docs/adr/0024-recordings.md.
#pragma once

#include "agent/contract/journal.h"
#include "agent/contract/ports.h"
#include "agent/eviction/eviction_forecast.h"
#include "agent/eviction/eviction_victims.h"
#include "agent/eviction/fall_rate.h"
#include "agent/eviction/relief_rounds.h"
#include "api/object/pod.h"
#include "api/object/summary.h"
#include "policy/eviction/decide.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace spillway::agent {

/// The timers of the engine: the next observation, an observation without an answer, a node that frees nothing, a new
/// plan.
enum class EngineTimer { kObserve, kNoAnswer, kReclaim, kPlan };

struct EngineStarted {};

struct PodFinished {
  std::string uid;
};

struct PodsChanged {};

struct ObserveEverything {};

/// All inputs of an engine. JournalEntry: an eviction that is resumed.
using EngineInput = std::variant<EngineStarted, Observed, Reclaimed, PressureWake, PodFinished, PodsChanged,
                                 ObserveEverything, JournalEntry, Reacted, EngineTimer, Relieved>;
/// EngineInput by reference, valid during the input.
using EngineInputRef =
    std::variant<EngineStarted, const Observed*, const Reclaimed*, const PressureWake*, PodFinished, PodsChanged,
                 ObserveEverything, const JournalEntry*, const Reacted*, EngineTimer, const Relieved*>;

/// An engine's state between two inputs, without its configuration and its pods.
struct EvictionSnapshot {
  eviction::PassState state;
  FallRate fall;
  EvictionForecast forecast;
  std::vector<Victim> dying;
  std::set<std::string, std::less<>> given_up;
  std::shared_ptr<const api::Summary> last_summary;
  eviction::Observations seen;
  std::vector<eviction::Threshold> reached_at_pass;
  std::optional<Instant> last_pass;
  std::optional<Instant> threshold_event_at;
  bool pass_wanted = false;
  bool nobody_to_evict = false;
  std::uint64_t last_id = 0;
  std::optional<Observe> in_flight;
  bool wake_pending = false;
  bool plan_waits = false;  // the timer of a new plan runs
  bool reaction_watches = false;
  bool last_failed = false;
  std::set<std::string> crossed;
  ReliefMemory relief;
};

class EvictionWitness {
 public:
  virtual ~EvictionWitness() = default;

  /// True if on_snapshot() is to be called before the next input. False during an input.
  virtual bool wants_snapshot() const = 0;
  virtual void on_snapshot(const EvictionSnapshot& snapshot, std::span<const api::Pod* const> pods, Now now) = 0;

  virtual void on_input(const EngineInputRef& input, Now now) = 0;
  /// The end of the input that on_input() began.
  virtual void on_end() = 0;

  /// The pods that the engine reads from its port.
  virtual void on_pods(std::span<const api::Pod* const> pods) = 0;
  /// The result of Reaction::claim().
  virtual void on_claim(bool claimed) = 0;
  virtual void on_decision(const JournalEntry& entry) = 0;
  virtual void on_conditions(const eviction::ConditionSet& conditions) = 0;
  /// A pod's end is ordered or hastened: inputs that nest here follow from it.
  virtual void on_ending() = 0;
};

/// Brackets one input: calls the witness at its beginning and its end. Null: no witness.
class WitnessedStep {
 public:
  explicit WitnessedStep(EvictionWitness* witness) : witness_(witness) {}

  ~WitnessedStep() {
    if (witness_ != nullptr) witness_->on_end();
  }

  WitnessedStep(const WitnessedStep&) = delete;
  WitnessedStep& operator=(const WitnessedStep&) = delete;

 private:
  EvictionWitness* witness_;
};

}  // namespace spillway::agent
