// What settings would cost: scenarios under other thresholds, reservations and brakes, and what comes of each.
// Thread: any (values). Source: docs/simulate.md, "Which settings".
#pragma once

#include "api/json/json.h"
#include "base/bytes.h"
#include "base/error.h"
#include "sim/scenario/document.h"
#include "sim/scenario/outcome.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::sim {

/// What is changed in a scenario; absent: as the scenario has it.
struct Choice {
  std::optional<std::string> memory_available;  // hard threshold: a quantity or a percentage
  std::optional<std::string> system_reserved;   // memory: a quantity
  std::optional<bool> brakes;

  bool is_as_it_is() const { return !memory_available && !system_reserved && !brakes; }

  friend bool operator==(const Choice&, const Choice&) = default;
};

/// Values to try; empty: this setting stays.
struct ChoiceLists {
  std::vector<std::string> memory_available;
  std::vector<std::string> system_reserved;
  std::vector<bool> brakes;
};

inline constexpr std::size_t kChoicesMax = 64;

/// Everything as it is, then every combination, the last list fastest. kInvalid: a value that is none, or more than
/// kChoicesMax of them; names the flag.
Result<std::vector<Choice>> choices_of(const ChoiceLists& lists);

/// kInvalid: a node of this scenario cannot have it.
Result<Scenario> with_choice(Scenario scenario, const Choice& choice);

/// Sums over runs. Less is better in everything.
struct Cost {
  std::uint64_t oom_kills = 0;
  std::uint64_t evicted = 0;
  std::uint64_t deleted = 0;
  std::uint64_t flips = 0;  // of nodes' readiness
  std::uint64_t unplaced = 0;
  std::uint64_t failed_expectations = 0;
  std::uint64_t violations = 0;  // of the product's invariants
  Bytes kept_free;               // per node, on average: what is reserved, and the hard threshold on top of it
  std::uint64_t runs = 0;
};

Cost cost_of(const Scenario& scenario, const RunOutcome& outcome);
void add(Cost& sum, const Cost& more);

struct Advice {
  Choice choice;
  Cost cost;
  std::optional<Error> impossible;        // then there is no cost
  std::optional<std::size_t> worse_than;  // another one, by its place, that costs less in something and more in nothing
};

/// Fills in `worse_than`: the first such one.
void compare(std::vector<Advice>& all);

/// docs/simulate.md, "Which settings". Names are stable.
api::Json advice_json(const std::vector<Advice>& all);
/// A table for a person.
std::string advice_text(const std::vector<Advice>& all);

}  // namespace spillway::sim
