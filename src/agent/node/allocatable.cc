#include "agent/node/allocatable.h"

#include "api/text/resource_names.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kHugePages = "hugepages-";

const api::Quantity* find_amount(const api::ResourceList& list, std::string_view resource) {
  const auto it = list.find(resource);
  return it == list.end() ? nullptr : &it->second;
}

}  // namespace

std::string huge_page_resource(std::int64_t page_size_kib) {
  return std::string(kHugePages) + api::Quantity::of_bytes(kibibytes(page_size_kib)).to_string();
}

std::int64_t pods_of(std::int64_t cpu_milli, std::int64_t pods_max, std::int64_t pods_per_core) {
  return pods_per_core > 0 ? std::min(pods_max, cpu_milli / 1000 * pods_per_core) : pods_max;
}

api::ResourceList capacity_of(const MachineInfo& machine, const AgentOptions& options) {
  api::ResourceList capacity{
      {"cpu", api::Quantity::of_milli(machine.cpu_milli)},
      {"memory", api::Quantity::of_bytes(machine.memory)},
      {"ephemeral-storage", api::Quantity::of_bytes(machine.ephemeral_storage)},
      {"pods", api::Quantity::of_units(pods_of(machine.cpu_milli, options.pods_max, options.pods_per_core))}};
  for (const HugePages& pages : machine.huge_pages) {
    capacity.insert_or_assign(huge_page_resource(pages.page_size_kib),
                              api::Quantity::of_bytes(kibibytes(pages.page_size_kib * pages.pages)));
  }
  return capacity;
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
    const api::Quantity* total = find_amount(capacity, resource);
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
      if (const api::Quantity* part = find_amount(*list, resource)) sum += *part;
    }
    if (!sum.is_zero()) reservation.insert_or_assign(resource, sum);
  }
  return reservation;
}

api::ResourceList without_reservation(const api::ResourceList& capacity, const api::ResourceList& reservation) {
  api::ResourceList left;
  for (const auto& [resource, total] : capacity) {
    const api::Quantity* reserved = find_amount(reservation, resource);
    api::Quantity rest = reserved == nullptr ? total : total - *reserved;
    if (rest.sign() < 0) rest = api::Quantity::of_units(0, rest.format());
    left.insert_or_assign(resource, std::move(rest));
  }
  return left;
}

std::vector<std::string> over_reserved(const api::ResourceList& capacity, const api::ResourceList& reservation) {
  std::vector<std::string> resources;
  for (const auto& [resource, total] : capacity) {
    const api::Quantity* reserved = find_amount(reservation, resource);
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

GroupLimits group_limits(const api::ResourceList& resources) {
  GroupLimits limits;
  if (const api::Quantity* memory = find_amount(resources, "memory")) limits.memory = memory->bytes();
  if (const api::Quantity* cpu = find_amount(resources, "cpu")) limits.cpu_milli = cpu->milli_value();
  if (const api::Quantity* pids = find_amount(resources, "pid")) limits.pids_max = pids->value();
  for (const auto& [resource, amount] : resources) {
    if (!api::is_hugepage_resource(resource)) continue;
    const auto size = api::parse_quantity(std::string_view(resource).substr(kHugePages.size()));
    if (size) limits.huge_pages.emplace(size->value(), amount.bytes());
  }
  return limits;
}

GroupLimits limits_of_pods(const MachineInfo& machine, const AgentOptions& options) {
  api::ResourceList capacity = capacity_of(machine, options);
  if (machine.pids_max > 0) capacity.insert_or_assign("pid", api::Quantity::of_units(machine.pids_max));
  if (options.eviction.thresholds.enforce_pods != eviction::EnforcePods::kYes) return group_limits(capacity);
  const Reserved reserved{.system = options.system_reserved, .kube = options.kube_reserved};
  return group_limits(without_reservation(capacity, reservation_of(capacity, reserved, {})));
}

std::vector<LimitGroup> enforced_limits(const MachineInfo& machine, const AgentOptions& options) {
  std::vector<LimitGroup> limits{
      {.group = LimitedGroup::kPods, .cgroup = {}, .limits = limits_of_pods(machine, options)}};
  const auto add = [&](LimitedGroup group, const ReservedGroup& settings, const api::ResourceList& reserved) {
    if (settings.limits == ReservedLimits::kNone) return;
    GroupLimits wanted = group_limits(reserved);
    if (settings.limits == ReservedLimits::kCompressible) {
      wanted = {.memory = {}, .cpu_milli = wanted.cpu_milli, .pids_max = {}, .huge_pages = {}};
    } else {
      // Huge pages without a reservation belong to pods alone.
      for (const HugePages& pages : machine.huge_pages) {
        wanted.huge_pages.try_emplace(kibibytes(pages.page_size_kib).count(), Bytes{0});
      }
    }
    limits.push_back({.group = group, .cgroup = settings.cgroup, .limits = std::move(wanted)});
  };
  add(LimitedGroup::kSystemReserved, options.enforcement.system, options.system_reserved);
  add(LimitedGroup::kKubeReserved, options.enforcement.kube, options.kube_reserved);
  return limits;
}

}  // namespace spillway::agent
