#include "policy/eviction/notifier.h"

#include <fmt/format.h>

namespace spillway::eviction {

std::string describe(const Threshold& threshold) {
  return fmt::format("{} {}memory eviction threshold", threshold.is_hard() ? "hard" : "soft",
                     threshold.signal == Signal::kAllocatableMemoryAvailable ? "allocatable " : "");
}

std::int64_t usage_at_threshold(const api::Quantity& threshold, std::int64_t capacity_bytes,
                                std::int64_t inactive_bytes) {
  api::Quantity usage = api::Quantity::of_bytes(Bytes{capacity_bytes});
  usage -= threshold;
  usage += api::Quantity::of_bytes(Bytes{inactive_bytes});
  return usage.value();
}

}  // namespace spillway::eviction
