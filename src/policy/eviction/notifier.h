// Computes the kernel's memory usage threshold on cgroup v1 that fires when an eviction threshold is crossed. Thread:
// any (pure). Source: spec "Eviction manager", 11; kernel docs, cgroup-v1/memory, "Memory thresholds"; vectors
// eviction/notifier.
#pragma once

#include "api/text/quantity.h"
#include "policy/eviction/threshold.h"

#include <cstdint>
#include <string>

namespace spillway::eviction {

/// "hard memory eviction threshold", "soft allocatable memory eviction threshold".
std::string describe(const Threshold& threshold);

/// memory.usage_in_bytes at which what is left of `capacity_bytes` falls below `threshold`; may be negative. The kernel
/// counts inactive page cache as usage, the signal does not: hence the shift by it.
std::int64_t usage_at_threshold(const api::Quantity& threshold, std::int64_t capacity_bytes,
                                std::int64_t inactive_bytes);

}  // namespace spillway::eviction
