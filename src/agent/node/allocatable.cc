#include "agent/node/allocatable.h"

#include "api/resource_names.h"

namespace spillway::agent {
namespace {

constexpr std::string_view kHugePages = "hugepages-";

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
    if (resource.empty()) continue;
    const api::Quantity* total = find(capacity, resource);
    const auto amount = amount_of(threshold.value, total == nullptr ? 0 : total->value());
    if (amount) reserved.insert_or_assign(std::string(resource), *amount);
  }
  return reserved;
}

api::ResourceList reservation_of(const api::ResourceList& capacity, const Reserved& reserved,
                                 const api::ResourceList& hard_eviction) {
  api::ResourceList reservation;
  for (const auto& [resource, total] : capacity) {
    api::Quantity sum;
    for (const api::ResourceList* list : {&reserved.system, &reserved.kube, &hard_eviction}) {
      if (const api::Quantity* part = find(*list, resource)) sum += *part;
    }
    if (!sum.is_zero()) reservation.insert_or_assign(resource, sum);
  }
  return reservation;
}

api::ResourceList without_reservation(const api::ResourceList& capacity, const api::ResourceList& reservation) {
  api::ResourceList left;
  for (const auto& [resource, total] : capacity) {
    const api::Quantity* reserved = find(reservation, resource);
    api::Quantity rest = reserved == nullptr ? total : total - *reserved;
    if (rest.sign() < 0) rest = api::Quantity::of_units(0, rest.format());
    left.insert_or_assign(resource, std::move(rest));
  }
  return left;
}

std::vector<std::string> over_reserved(const api::ResourceList& capacity, const api::ResourceList& reservation) {
  std::vector<std::string> resources;
  for (const auto& [resource, total] : capacity) {
    const api::Quantity* reserved = find(reservation, resource);
    if (reserved != nullptr && *reserved > total) resources.push_back(resource);
  }
  return resources;
}

Result<api::ResourceList> node_reservation(const api::ResourceList& capacity, const AgentOptions& options,
                                           std::span<const eviction::Threshold> thresholds) {
  api::ResourceList reservation =
      reservation_of(capacity, {.system = options.system_reserved, .kube = options.kube_reserved},
                     hard_eviction_reservation(thresholds, capacity));
  const std::vector<std::string> over = over_reserved(capacity, reservation);
  if (over.empty()) return reservation;
  return invalid({},
                 "invalid Node Allocatable configuration. Resource \"{}\" has a reservation of {} but capacity of {}. "
                 "Expected capacity >= reservation.",
                 over.front(), reservation.at(over.front()).to_string(), capacity.at(over.front()).to_string());
}

KubepodsLimits kubepods_limits(const api::ResourceList& allocatable) {
  KubepodsLimits limits;
  if (const api::Quantity* memory = find(allocatable, "memory")) limits.memory = memory->bytes();
  if (const api::Quantity* cpu = find(allocatable, "cpu")) limits.cpu_milli = cpu->milli_value();
  if (const api::Quantity* pids = find(allocatable, "pid")) limits.pids_max = pids->value();
  for (const auto& [resource, amount] : allocatable) {
    if (!api::is_hugepage_resource(resource)) continue;
    const auto size = api::parse_quantity(std::string_view(resource).substr(kHugePages.size()));
    if (size) limits.huge_pages.emplace(size->value(), amount.bytes());
  }
  return limits;
}

std::optional<KubepodsLimits> kubepods_limits_of(const MachineInfo& machine, const AgentOptions& options) {
  if (options.eviction.thresholds.enforce_pods != eviction::EnforcePods::kYes) return std::nullopt;
  api::ResourceList capacity = capacity_of(machine, options.pods_max);
  if (machine.pids_max > 0) capacity.insert_or_assign("pid", api::Quantity::of_units(machine.pids_max));
  const Reserved reserved{.system = options.system_reserved, .kube = options.kube_reserved};
  return kubepods_limits(without_reservation(capacity, reservation_of(capacity, reserved, {})));
}

}  // namespace spillway::agent
