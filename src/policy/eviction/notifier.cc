#include "policy/eviction/notifier.h"

#include <algorithm>

namespace spillway::eviction {

std::string describe(const Threshold& threshold) {
  return fmt::format("{} {}memory eviction threshold", threshold.is_hard() ? "hard" : "soft",
                     threshold.signal == Signal::kAllocatableMemoryAvailable ? "allocatable " : "");
}

Result<MemcgTrigger> memcg_trigger(const Threshold& threshold, const api::Summary& summary) {
  const std::optional<api::MemoryStats>* memory = &summary.node.memory;
  if (threshold.signal == Signal::kAllocatableMemoryAvailable) {
    const auto& containers = summary.node.system_containers;
    const auto pods = std::ranges::find(containers, "pods", &api::ContainerStats::name);
    if (pods == containers.end()) return make_error(ErrorCode::kNotFound, "no statistics of the pods cgroup");
    memory = &pods->memory;
  }
  if (!*memory || !(*memory)->usage_bytes || !(*memory)->working_set_bytes || !(*memory)->available_bytes) {
    return make_error(ErrorCode::kNotFound, "memory statistics are incomplete");
  }
  const std::uint64_t available = *(*memory)->available_bytes;
  const std::uint64_t working_set = *(*memory)->working_set_bytes;
  const auto capacity = static_cast<std::int64_t>(available + working_set);
  const auto inactive = static_cast<std::int64_t>(*(*memory)->usage_bytes - working_set);
  const std::optional<api::Quantity> limit = amount_of(threshold.value, capacity);
  if (!limit) return make_error(ErrorCode::kNotFound, "the threshold is not a number");
  api::Quantity trigger = api::Quantity::of_bytes(Bytes{capacity});
  trigger -= *limit;
  trigger += api::Quantity::of_bytes(Bytes{inactive});
  return MemcgTrigger{trigger.value()};
}

}  // namespace spillway::eviction
