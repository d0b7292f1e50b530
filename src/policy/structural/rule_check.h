// The rules of a schema asked about a value. What they cost is bounded, each and all together.
// Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions", validation
// rules, transition rules, resource use.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <cstdint>
#include <string_view>

namespace spillway::structural {

struct Node;

/// Units of policy/cel/value.h: of one rule, of all rules of one object.
inline constexpr std::uint64_t kRuleUnitsMax = 1'000'000;
inline constexpr std::uint64_t kObjectRuleUnitsMax = 10'000'000;

/// Cost units spent by the rules of one object; beyond kObjectRuleUnitsMax, which is reported, no further rule is
/// evaluated.
struct RuleUnits {
  std::uint64_t used = 0;

  bool spent() const { return used > kObjectRuleUnitsMax; }
};

/// Adds errors for rules that do not hold. `old`: the previous value; null: there was none, and rules that compare are
/// skipped. `prefix` precedes the reported fields.
void check_rules(const Node& node, const api::Json& value, const api::Json* old, std::string_view prefix,
                 RuleUnits& units, api::FieldErrors& errors);

}  // namespace spillway::structural
