// The memory that is left, by three estimators: one drives the memory signals and the others are reported beside it.
// Thread: any (pure). Source: Kubernetes docs, "Node-pressure Eviction" (workingset); kernel document "proc.rst",
// MemAvailable (available); KEP-2400, swap as additional capacity (workingset+swap).
#pragma once

#include "api/object/summary.h"
#include "policy/eviction/threshold.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::eviction {

/// The amount by one estimator, and whether it reaches a memory.available threshold.
struct MemoryEstimate {
  MemoryEstimator by{};
  std::int64_t available_bytes = 0;
  bool pressure = false;

  friend bool operator==(const MemoryEstimate&, const MemoryEstimate&) = default;
};

/// "workingset", "available", "workingset+swap".
std::string_view to_string(MemoryEstimator by);
std::optional<MemoryEstimator> parse_memory_estimator(std::string_view text);

/// Every estimator that has an answer for the node, in their order.
std::vector<MemoryEstimate> memory_estimates(const api::Summary& summary, std::span<const Threshold> thresholds);

}  // namespace spillway::eviction
