// Two eviction managers on one node: may ours act at all? Only if each of its thresholds is met before the other one's
// threshold of the same signal would be, else both evict for the same shortage and two pods go where one was enough.
// Thread: any (pure). Source: spec "Eviction manager", 4, 5; docs/adr/0007-companion.md.
#pragma once

#include "policy/eviction/threshold.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace spillway::eviction {

/// The amount to which a threshold in percent refers, by signal; a signal that is missing has no known capacity.
using Capacities = std::map<Signal, std::int64_t>;

/// A threshold of ours that is not crossed strictly before one of the kubelet's.
struct Overlap {
  Threshold ours;
  Threshold theirs;

  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// The first overlap in the order of `ours`; nullopt: ours may act. Against a hard threshold of the same signal ours
/// must be met at a larger available amount; the disks of nodes, images and containers count as one, which they mostly
/// are. Against a soft one only soft ones count: ours must have at least the amount and at most the grace, and not both
/// equal. Amounts that cannot be compared, because a capacity is unknown, overlap.
std::optional<Overlap> find_overlap(std::span<const Threshold> ours, std::span<const Threshold> theirs,
                                    const Capacities& capacities);

/// "memory.available<100Mi" or "memory.available<10% for 1m30s".
std::string text_of(const Threshold& threshold);

}  // namespace spillway::eviction
