// The cost of a call, in Kubernetes' units. Thread: any (pure).
// Source: Kubernetes docs, "Common Expression Language in Kubernetes", resource constraints.
#pragma once

#include "policy/cel/node.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::cel {

inline constexpr double kTraversalFactor = 0.1;  // for a character that is read
inline constexpr double kPatternFactor = 0.25;   // for a character of a pattern
inline constexpr std::uint64_t kListCost = 10;
inline constexpr std::uint64_t kMapCost = 30;
inline constexpr std::uint64_t kMessageCost = 40;
inline constexpr std::uint64_t kAccessCheckCost = 350'000;

/// The size that a factor is of, rounded up.
std::uint64_t scaled(std::uint64_t size, double factor);

/// The size of a value for costs: characters of texts, elements of lists; 1 for other values.
std::uint64_t cost_size(const Value& value);

/// Characters of a pattern as costly as the check of that format.
std::uint64_t pattern_size(const NamedFormat& format);

/// The cost of a checked call. An argument that is an error has the size 1; `result` is null if it is an error.
std::uint64_t call_cost(const Node& call, std::span<const Value> arguments, const Value* result);

}  // namespace spillway::cel
