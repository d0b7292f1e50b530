// PodDisruptionBudgets: how many healthy pods there should be, how many may be disrupted, and whether one pod may go.
// The API server counts and rules by this; a controller that respects budgets asks the same before it asks there.
// Thread: any (pure). Source: Kubernetes docs, "Specifying a Disruption Budget for your Application", "API-initiated
// Eviction"; spec "API server contract", 13.
#pragma once

#include "api/object/disruption_budget.h"
#include "policy/reason.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace spillway::disruption {

/// The pods that a budget protects, counted.
struct BudgetCount {
  std::int64_t expected_pods = 0;
  std::int64_t current_healthy = 0;  // ready, not terminating, not evicted a moment ago
  std::int64_t desired_healthy = 0;

  /// Disruptions that are allowed; 0 if no pods are expected.
  std::int64_t disruptions_allowed() const;

  friend bool operator==(const BudgetCount&, const BudgetCount&) = default;
};

/// True if minAvailable is a number: the expected pods are the matching ones. Else their controllers state the number.
bool expects_pods_that_match(const api::PodDisruptionBudget& budget);

/// minAvailable, or `expected` less maxUnavailable. Percentages are rounded up. Without either, one pod may be missing.
std::int64_t desired_healthy(const api::PodDisruptionBudget& budget, std::int64_t expected);

/// The budget with a status that promises no more disruptions than `now` allows. `now` is a fresh count of its pods:
/// the controller that writes the status sees a change later, and may be away for long.
api::PodDisruptionBudget held_to(api::PodDisruptionBudget budget, const BudgetCount& now);

/// The state of a pod on which its eviction depends.
struct PodStanding {
  std::string phase;
  bool terminating = false;
  bool ready = false;
};

enum class Passage {
  kUnprotected,  // the pod does not run (yet, or any more): no budget counts it
  kNoBudget,
  kUnready,  // the eviction spends nothing: the pod is not among the healthy ones
  kSpends,   // the eviction uses up one disruption
  // refused
  kSeveralBudgets,
  kNotCountedYet,     // the budget's status belongs to an earlier spec
  kExhausted,         // no disruption is left
  kTooManyUnsettled,  // too many evictions whose result is unknown
};

/// "spends", "exhausted": stable.
std::string_view to_string(Passage passage);

/// A pod's way past its budgets, with the numbers it was decided by.
struct Ruling {
  Passage passage{};
  std::string budget;  // the budget that decided; empty: none did
  std::int64_t desired_healthy = 0;
  std::int64_t current_healthy = 0;
  std::int64_t disruptions_allowed = 0;

  bool goes() const { return passage <= Passage::kSpends; }

  friend bool operator==(const Ruling&, const Ruling&) = default;
};

/// Maximum of evictions of one budget whose result is unknown.
inline constexpr std::size_t kUnsettledMax = 2'000;

/// `budgets`: all of the pod's namespace that select it.
Ruling decide_passage(const PodStanding& pod, std::span<const api::PodDisruptionBudget* const> budgets);

/// kBudgetRefuses with the numbers of a ruling that refuses.
policy::Reason reason_of(const Ruling& ruling);

}  // namespace spillway::disruption
