// The cost of settings: scenarios are played under other thresholds, reservations, brakes and configurations, and their
// outcomes counted. For recordings: sim/replay/recorded_cost.h. Thread: any (values). Source: docs/simulate.md,
// "Which settings".
#pragma once

#include "api/json/json.h"
#include "base/bytes.h"
#include "base/error.h"
#include "sim/scenario/document.h"
#include "sim/scenario/outcome.h"
#include "sim/scenario/parser.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::sim {

/// A file with members of `config:`. Absent members keep their values; `agents:` is a whole configuration.
struct ConfigChoice {
  std::string file;
  std::string text;
  ReadText read;  // reads the files that a scenario names

  friend bool operator==(const ConfigChoice& a, const ConfigChoice& b) { return a.file == b.file && a.text == b.text; }
};

/// The options that its `agents:` gives a node with that memory; nullopt: it has no such member. kInvalid: it does not
/// parse.
Result<std::optional<agent::AgentOptions>> agents_under(const ConfigChoice& config, Bytes node_memory);

/// The settings that are changed in a scenario, or for a recording; absent: as it is there. The others take precedence
/// over `config`.
struct Choice {
  std::optional<std::string> memory_available;  // hard threshold: a quantity or a percentage
  std::optional<std::string> system_reserved;   // memory: a quantity
  std::optional<bool> brakes;
  std::optional<ConfigChoice> config = std::nullopt;

  bool is_as_it_is() const { return !memory_available && !system_reserved && !brakes && !config; }

  friend bool operator==(const Choice&, const Choice&) = default;
};

/// Values to try for each setting; empty: the setting is not changed.
struct ChoiceLists {
  std::vector<std::string> memory_available;
  std::vector<std::string> system_reserved;
  std::vector<bool> brakes;
  std::vector<ConfigChoice> configs = {};
};

inline constexpr std::size_t kChoicesMax = 64;

/// The unchanged settings, then every combination, the last list fastest. kInvalid: a value that cannot be parsed, or
/// more than kChoicesMax combinations; names the flag or the file.
Result<std::vector<Choice>> choices_of(const ChoiceLists& lists);

/// The scenario with these settings. kInvalid: a node of the scenario cannot have them.
Result<Scenario> with_choice(Scenario scenario, const Choice& choice);

/// Sums over runs. Less is better in everything.
struct Cost {
  std::uint64_t oom_kills = 0;
  std::uint64_t evicted = 0;
  std::uint64_t deleted = 0;
  std::uint64_t tainted = 0;  // NoExecute taints put on nodes
  std::uint64_t flips = 0;    // changes of nodes' readiness
  std::uint64_t unplaced = 0;
  std::uint64_t failed_expectations = 0;
  std::uint64_t violations = 0;  // violations of the product's invariants
  Bytes kept_free;               // per node, on average: reservations and the hard threshold above them
  std::uint64_t runs = 0;
  std::uint64_t recordings = 0;   // runs that replay recordings, in which OOM kills are unknown
  std::uint64_t controllers = 0;  // recordings of controllers, which have no data about memory
  /// Evictions after the first one that was otherwise in the recording, and those in it that would not be: what
  /// would have followed, an OOM kill perhaps, is not recorded.
  std::uint64_t without_evidence = 0;
};

/// Memory that a node of that size keeps from its pods: reservations, and the hard threshold on top of them. kInvalid:
/// more than it has, or thresholds that cannot be.
Result<Bytes> kept_free(const agent::AgentOptions& options, Bytes memory);

Cost cost_of(const Scenario& scenario, const RunOutcome& outcome);
void add(Cost& sum, const Cost& more);

struct Advice {
  Choice choice;
  Cost cost;
  std::optional<Error> impossible;        // the settings cannot be used, so there is no cost
  std::optional<std::size_t> worse_than;  // index of a choice that costs less in one respect, and more in none
};

/// Fills in `worse_than` with the first choice that dominates.
void compare(std::vector<Advice>& all);

/// docs/simulate.md, "Which settings". Names are stable.
api::Json advice_json(const std::vector<Advice>& all);
/// A table for a person.
std::string advice_text(const std::vector<Advice>& all);

}  // namespace spillway::sim
