// The outcome of a scenario: everything that happened to nodes and pods, in order, and the results of the expectations.
// Thread: any (values).
#pragma once

#include "api/json/json.h"
#include "base/time.h"
#include "sim/properties/property.h"
#include "sim/scenario/expectation.h"
#include "sim/scenario/inventory.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::sim {

struct Happening {
  Duration at{};  // since the timeline began
  HappeningKind kind{};
  std::string object;  // "default/web-1", or a node
  std::string node;
  std::string zone;
  std::string owner;   // "ReplicaSet/default/web"; empty: none
  std::string reason;  // in the product's words

  friend bool operator==(const Happening&, const Happening&) = default;
};

struct RunOutcome {
  std::string scenario;
  std::string story;
  std::uint64_t seed = 0;
  bool interrupted = false;
  std::uint64_t nodes = 0;
  std::uint64_t pods = 0;  // when the timeline began
  Duration lasted{};
  std::vector<Happening> happenings;
  /// The time, since the timeline began, at which, after all events, every node was ready and untainted, every pod ran
  /// and every ReplicaSet had its replicas, and this lasted to the end.
  std::optional<Duration> recovered_at;
  std::optional<Duration> time_to_recovery;  // since the last event ended
  std::set<std::string> held_by;             // brakes
  std::uint64_t tainted_nodes_max = 0;       // largest number at the same time
  std::vector<std::string> unplaced;         // pods without a node at the end
  std::vector<std::string> unrecovered;      // problems that were left at the end, at most 20
  std::vector<LeftOut> left_out;
  std::vector<ExpectationResult> expectations;
  std::vector<std::string> violations;        // one line for each violation
  std::vector<std::string> violated;          // names of properties
  std::vector<Violated> kinds_of_violations;  // kinds of violations, each once, in order of the first violation
  std::string trace_hash;
  std::uint64_t writes = 0;
  std::uint64_t messages = 0;

  std::uint64_t count(HappeningKind kind) const;
  bool all_expectations_held() const;
};

/// Pods that were evicted, deleted or killed, by "owner" or by zone.
std::map<std::string, std::uint64_t> disruption_by_owner(const RunOutcome& outcome);
std::map<std::string, std::uint64_t> disruption_by_zone(const RunOutcome& outcome);

/// docs/simulate.md, "As JSON". Names are stable.
api::Json outcome_json(const RunOutcome& outcome);
/// Two runs as a document: the differences, then both.
api::Json comparison_json(const RunOutcome& a, const RunOutcome& b);

/// The outcome as text for a person.
std::string outcome_text(const RunOutcome& outcome);
std::string comparison_text(const RunOutcome& a, const RunOutcome& b);

}  // namespace spillway::sim
