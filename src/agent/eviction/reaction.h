// The reaction between two observations of the engine when memory runs out faster than they follow each other: the
// engine publishes a plan, the machine may carry it out once, by itself, and reports what it did; the engine then
// evaluates the same numbers by the same rules, and journal, status and events follow from that. Thread: loop, except
// fill(), which the acting thread calls. Invariant: one plan ends at most one pod, either by the machine or by the
// engine (claim()).
// Source: spec "Wake-up sources", 6; spec "Eviction manager", 5, 8.
#pragma once

#include "agent/contract/journal.h"
#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "api/object/pod.h"
#include "api/object/summary.h"
#include "base/bytes.h"
#include "policy/eviction/decide.h"
#include "policy/eviction/reaction.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

/// A journal line written before its numbers are known. fill() inserts them without allocating.
class PreparedEntry {
 public:
  PreparedEntry() = default;
  /// Prepares the line of `entry`, except for its time, its emergency flag and the available amount.
  explicit PreparedEntry(JournalEntry entry);

  /// Ends in a newline.
  void fill(WallTime at, bool emergency, std::int64_t available) noexcept;

  const std::string& line() const { return line_; }

 private:
  std::string line_;
  std::size_t at_ = 0;
  std::size_t at_micros_ = 0;
  std::size_t emergency_ = 0;
  std::size_t available_ = 0;
};

struct ReactionPlan {
  /// A memory signal and the amount below which a threshold of it is met.
  struct Trigger {
    eviction::Signal signal{};
    Bytes below;
  };

  struct Candidate {
    std::string uid;
    eviction::MemoryStanding key;
    Bytes inactive_file;  // when the pod was last measured
    PreparedEntry entry;
  };

  std::vector<Trigger> act;           // hard thresholds; empty: nothing may be done now
  std::vector<Trigger> wake;          // further thresholds: crossing one wakes the engine, and kills nothing
  std::vector<Candidate> candidates;  // by namespace, name, uid
  Bytes blind_zone;
  eviction::MemoryEstimator memory_estimator = eviction::MemoryEstimator::kWorkingSet;
  ObserveOptions observe;
};

/// Port: what carries plans out.
class Reaction {
 public:
  virtual ~Reaction() = default;
  /// Replaces the plan before, which must have been claimed.
  virtual void publish(ReactionPlan plan) = 0;
  /// Makes the plan void. False: it has been executed already, and Reacted will follow.
  virtual bool claim() = 0;
};

/// The plan that follows from the state after a pass. `last`: the observation the pass was made on.
ReactionPlan plan_reaction(const AgentOptions& options, const eviction::PassState& state, const api::Summary& last,
                           std::span<const api::Pod* const> active);

/// `last` with the numbers the machine acted on.
api::Summary summary_at(const Reacted& event, api::Summary last);

}  // namespace spillway::agent
