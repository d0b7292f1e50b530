// The match conditions of a webhook: expressions over a request that all have to hold for the webhook to be asked. They
// are compiled once for each version of a configuration. Thread: any (immutable).
// Source: Kubernetes docs, "Dynamic Admission Control", matching requests: matchConditions; KEP-3716.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "policy/cel/expression.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::webhooks {

inline constexpr std::size_t kMatchConditionsMax = 64;
/// Units that the conditions of one webhook may cost for one request.
inline constexpr std::uint64_t kMatchBudget = 2'500'000;

struct MatchCondition {
  std::string name;
  Result<cel::Expression> expression;  // an error: the stored text does not compile
};

/// Shared: webhooks are copied, conditions are not compiled again.
using MatchConditions = std::shared_ptr<const std::vector<MatchCondition>>;

/// The names that the match conditions of webhooks may use. namespaceObject is among them, and null.
inline cel::Environment condition_environment() {
  return {.namespace_object = true};
}

/// The match conditions of one webhook of a configuration, or of the spec of an admission policy; null: it has none.
MatchConditions match_conditions_of(const api::Json& webhook,
                                    const cel::Environment& environment = condition_environment());

struct MatchOutcome {
  bool matches = false;
  std::size_t errors = 0;    // conditions without a value
  std::uint64_t used = 0;    // units
  std::optional<Error> why;  // the error that leaves the match undecided
};

/// A false condition decides; else an error does. `units`: the highest cost of all of them.
MatchOutcome evaluate(const std::vector<MatchCondition>& conditions, const cel::Activation& activation,
                      std::uint64_t units = kMatchBudget);

}  // namespace spillway::webhooks
