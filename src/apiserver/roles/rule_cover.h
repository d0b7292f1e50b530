// Compares rules that are to be granted with those that a user holds: each verb on each resource, in each of its groups
// and under each of its names, must be in one of the rules held. The product of these lists is never walked: words that
// the same rules grant are equal, so a list counts once for each different set of rules, and a rule that grants all of
// what is left ends the search.
// Thread: any (pure). Bound: the steps of a comparison. Source: Kubernetes docs, "Using RBAC Authorization", privilege
// escalation prevention.
#pragma once

#include "apiserver/roles/policy_rule.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::apiserver {

/// Steps of one comparison. A word of a rule costs 16 of them, an intersection of two sets of rules 16 and one for each
/// 64 rules, so that all of them take some 25 ms (-O2). A document has at most 10,000 words, which leaves 240,000 for
/// the rules held; a larger comparison is refused.
inline constexpr std::size_t kCoverStepsMax = 4'000'000;

struct RuleComparison {
  enum class Answer : std::uint8_t { kCovered, kLacking, kTooLarge };
  Answer answer = Answer::kCovered;
  /// The first rule of those wanted that is not held, if `answer` is kLacking.
  std::size_t lacking = 0;
  std::size_t steps = 0;
};

RuleComparison compare_rules(std::span<const PolicyRule* const> held, std::span<const PolicyRule> wanted,
                             std::size_t steps_max = kCoverStepsMax);

/// As above, for lists of rules; a comparison that is too large counts as not covered.
bool are_covered(std::span<const PolicyRule> held, std::span<const PolicyRule> wanted);

}  // namespace spillway::apiserver
