// A pass's decision about memory, in a form that neither allocates nor throws, for the thread that acts between two
// passes. Same numbers, same victim as rank_for_memory(); a test compares them.
// Thread: any (pure). Source: spec "Eviction manager", 4, 7, 8; spec "Wake-up sources", 6.
#pragma once

#include "api/object/pod.h"
#include "policy/eviction/threshold.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace spillway::eviction {

/// The data of one pod that the memory ranking needs.
struct MemoryStanding {
  bool measured = false;  // false: no statistics at all
  bool spared = false;    // critical: never evicted
  std::int32_t priority = 0;
  std::int64_t request_bytes = 0;  // whole bytes, rounded down: usage is whole, so comparisons are unchanged
  std::int64_t working_set_bytes = 0;
};

/// The parts of the pod's ranking key that are known without a measurement.
MemoryStanding memory_standing_of(const api::Pod& pod);

/// Index of the pod that would be evicted for lack of memory; nullopt: all are spared. Ties go to the lower index, so
/// list pods by namespace, name and uid.
std::optional<std::size_t> first_for_memory(std::span<const MemoryStanding> pods) noexcept;

/// The threshold is met while that much or more is not available: available < result. nullopt: never met.
std::optional<std::int64_t> crossed_below(const Threshold& threshold, std::int64_t capacity, Reclaim reclaim);

}  // namespace spillway::eviction
