#include "policy/eviction/memory_estimate.h"

#include "base/check.h"

#include <algorithm>

namespace spillway::eviction {

std::string_view to_string(MemoryEstimator by) {
  switch (by) {
    case MemoryEstimator::kWorkingSet:
      return "workingset";
    case MemoryEstimator::kAvailable:
      return "available";
    case MemoryEstimator::kWorkingSetAndSwap:
      return "workingset+swap";
  }
  check_failed("MemoryEstimator in range", __FILE__, __LINE__);
}

std::optional<MemoryEstimator> parse_memory_estimator(std::string_view text) {
  const auto found = std::ranges::find(kMemoryEstimators, text, [](MemoryEstimator by) { return to_string(by); });
  return found == kMemoryEstimators.end() ? std::nullopt : std::optional(*found);
}

std::vector<MemoryEstimate> memory_estimates(const api::Summary& summary, std::span<const Threshold> thresholds) {
  std::vector<MemoryEstimate> estimates;
  for (const MemoryEstimator by : kMemoryEstimators) {
    const Observations seen = observe(summary, by);
    const auto& memory = seen[Signal::kMemoryAvailable];
    if (!memory) continue;
    const bool pressure = std::ranges::any_of(thresholds, [&](const Threshold& threshold) {
      return threshold.signal == Signal::kMemoryAvailable && is_met(threshold, seen, Reclaim::kWithout);
    });
    estimates.push_back({by, memory->available, pressure});
  }
  return estimates;
}

}  // namespace spillway::eviction
