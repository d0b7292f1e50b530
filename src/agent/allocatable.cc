#include "agent/allocatable.h"

namespace spillway::agent {
namespace {

const api::Quantity* find(const api::ResourceList& list, std::string_view resource) {
  const auto it = list.find(resource);
  return it == list.end() ? nullptr : &it->second;
}

}  // namespace

api::ResourceList capacity_of(const MachineInfo& machine, std::int64_t pods_max) {
  return {{"cpu", api::Quantity::of_milli(machine.cpu_milli)},
          {"memory", api::Quantity::of_bytes(machine.memory)},
          {"ephemeral-storage", api::Quantity::of_bytes(machine.ephemeral_storage)},
          {"pods", api::Quantity::of_units(pods_max)}};
}

api::ResourceList hard_eviction_reservation(std::span<const eviction::Threshold> thresholds,
                                            const api::ResourceList& capacity) {
  api::ResourceList reserved;
  for (const eviction::Threshold& threshold : thresholds) {
    if (!threshold.is_hard()) continue;
    std::string_view resource;
    if (threshold.signal == eviction::Signal::kMemoryAvailable) resource = "memory";
    if (threshold.signal == eviction::Signal::kNodeFsAvailable) resource = "ephemeral-storage";
    const api::Quantity* total = resource.empty() ? nullptr : find(capacity, resource);
    if (total == nullptr) continue;
    const auto amount = amount_of(threshold.value, total->value());
    if (amount) reserved.insert_or_assign(std::string(resource), *amount);
  }
  return reserved;
}

Result<api::ResourceList> allocatable_of(const api::ResourceList& capacity, const AgentOptions& options,
                                         std::span<const eviction::Threshold> thresholds) {
  const api::ResourceList hard = hard_eviction_reservation(thresholds, capacity);
  api::ResourceList allocatable;
  for (const auto& [resource, total] : capacity) {
    api::Quantity reserved;
    for (const api::ResourceList* list : {&options.system_reserved, &options.kube_reserved, &hard}) {
      if (const api::Quantity* part = find(*list, resource)) reserved += *part;
    }
    if (reserved > total) {
      return invalid({}, "invalid Node Allocatable configuration: {} reserved of {}, which has a capacity of {}",
                     reserved.to_string(), resource, total.to_string());
    }
    allocatable.insert_or_assign(resource, reserved.is_zero() ? total : total - reserved);
  }
  return allocatable;
}

}  // namespace spillway::agent
