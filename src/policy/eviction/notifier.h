// Where to set the kernel's memory usage threshold on cgroup v1 so that it fires when an eviction threshold is crossed.
// Thread: any (pure). Source: spec "Eviction manager", 11; kernel docs, cgroup-v1/memory, "Memory thresholds".
#pragma once

#include "api/object/summary.h"
#include "policy/eviction/threshold.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::eviction {

struct MemcgTrigger {
  static constexpr std::string_view kAttribute = "memory.usage_in_bytes";
  std::int64_t usage_bytes = 0;  // may be negative

  friend bool operator==(const MemcgTrigger&, const MemcgTrigger&) = default;
};

/// "hard memory eviction threshold", "soft allocatable memory eviction threshold".
std::string describe(const Threshold& threshold);

/// For a memory threshold. The kernel counts inactive page cache, the signal does not: hence the shift. kNotFound: one
/// of the three numbers, or the pods container, is missing.
Result<MemcgTrigger> memcg_trigger(const Threshold& threshold, const api::Summary& summary);

}  // namespace spillway::eviction
