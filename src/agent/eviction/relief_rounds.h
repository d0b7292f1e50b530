// The rounds of relief of one eviction engine: page cache is reclaimed from pods while memory is near a threshold, and
// once more before a pod is evicted (policy/eviction/relief.h has the rule). Off unless configured. Thread: loop.
// Invariants: at most one round at the machine; an eviction waits for an answer at most kReliefWait, and not again
// before memory has been above all thresholds. Bounds: one entry for each pod.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/ports.h"
#include "agent/eviction/reaction.h"
#include "policy/eviction/relief.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace spillway::agent {

/// The longest time that an eviction waits for a round: a machine reclaims 256Mi of clean page cache in about a tenth
/// of a second. Dirty pages take longer; the eviction does not wait for them.
inline constexpr Duration kReliefWait = milliseconds(300);

/// State that outlives a round, for snapshots.
struct ReliefMemory {
  eviction::ReliefState state;
  std::optional<Instant> wait_ends;
  Bytes expected;  // by the last plan
  std::optional<Instant> recorded_at;

  friend bool operator==(const ReliefMemory&, const ReliefMemory&) = default;
};

/// A round that the machine has answered.
struct ReliefResult {
  policy::Decision decision;
  Bytes freed;
  bool is_worth_recording = false;  // true for the first round, and then once in ten seconds
};

class ReliefRounds {
 public:
  /// `config` must outlive it.
  ReliefRounds(AgentContext& context, const eviction::PassConfig& config, eviction::Relief relief)
      : context_(context), config_(config), is_on_(relief == eviction::Relief::kOn) {}

  bool is_on() const { return is_on_; }

  /// The machine has not answered yet.
  bool is_under_way() const { return under_way_.has_value(); }

  /// True if the next round needs a reading of the whole machine.
  bool is_due(std::span<const eviction::Threshold> thresholds, const eviction::Observations& seen, Now now) const;

  /// Begins a round, if one is due and there is memory to reclaim. The id of its command is ++last_id.
  void begin(std::span<const eviction::Threshold> thresholds, const api::Summary& summary,
             std::span<const api::Pod* const> active, std::uint64_t& last_id, Now now);

  /// True: the eviction that `result` is about waits, and is dropped from `result`. It is decided anew by the next
  /// reading after the answer.
  bool wait(eviction::PassResult& result, const api::Summary& summary, std::span<const api::Pod* const> active,
            std::uint64_t& last_id, Now now);

  bool waits(Now now) const { return memory_.wait_ends && now.mono < *memory_.wait_ends; }

  /// nullopt: no eviction waits.
  std::optional<Instant> wait_ends(Now now) const { return waits(now) ? memory_.wait_ends : std::nullopt; }

  void end_wait() { memory_.wait_ends.reset(); }

  /// True if the next eviction would wait. Then the machine must not act by itself.
  bool may_wait() const;

  /// Adds triggers by which the machine wakes the engine when memory gets near a threshold.
  void add_triggers(ReactionPlan& plan, std::span<const eviction::Threshold> thresholds,
                    const eviction::Observations& seen) const;

  /// nullopt: not the answer to the round under way.
  std::optional<ReliefResult> on_relieved(const Relieved& event, Now now);

  /// Adds the last round to a decision for users, for a minute.
  void add_to(policy::Decision& decision, Now now) const;

  const ReliefMemory& memory() const { return memory_; }

  void restore(const ReliefMemory& memory) { memory_ = memory; }

 private:
  struct UnderWay {
    std::uint64_t id = 0;
    Instant since{};
    policy::Decision decision;
    std::map<std::string, api::PodKey> pods;  // by uid
  };

  void send(eviction::ReliefPlan plan, std::span<const api::Pod* const> active, std::uint64_t& last_id, Now now);

  AgentContext& context_;
  const eviction::PassConfig& config_;
  bool is_on_;
  eviction::ReliefBounds bounds_;
  ReliefMemory memory_;
  std::optional<UnderWay> under_way_;
  std::optional<policy::Decision> last_;
};

}  // namespace spillway::agent
