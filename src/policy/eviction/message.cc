#include "policy/eviction/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace spillway::eviction {
namespace {

const api::Container* find_container(const api::PodSpec& spec, std::string_view name) {
  for (const auto* list : {&spec.containers, &spec.init_containers}) {
    const auto found = std::ranges::find(*list, name, &api::Container::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

/// nullopt: not known, or not a resource that containers are blamed for.
std::optional<api::Quantity> usage_of(const api::ContainerStats& container, std::string_view resource) {
  std::optional<std::uint64_t> used;
  if (resource == "memory" && container.memory) {
    used = container.memory->working_set_bytes;
  } else if (resource == "ephemeral-storage" && container.rootfs && container.rootfs->used_bytes && container.logs &&
             container.logs->used_bytes) {
    used = *container.rootfs->used_bytes + *container.logs->used_bytes;
  }
  if (!used) return std::nullopt;
  return api::Quantity::of_bytes(Bytes{static_cast<std::int64_t>(*used)});
}

std::string join(std::string list, std::string_view next) {
  if (!list.empty()) list += ',';
  list += next;
  return list;
}

}  // namespace

EvictionMessage eviction_message(std::string_view resource, const MeasuredPod& victim,
                                 std::span<const Threshold> thresholds, const Observations& seen) {
  EvictionMessage message;
  message.text = fmt::format("{}{}. ", kLowOn, resource);
  for (const Threshold& threshold : thresholds) {
    const std::optional<Observation>& observation = seen[threshold.signal];
    if (resource_of(threshold.signal) != resource || !observation) continue;
    const std::optional<api::Quantity> limit = amount_of(threshold.value, observation->capacity);
    if (!limit) continue;
    message.text += fmt::format("Threshold quantity: {}, available: {}. ", limit->to_string(),
                                quantity_of(threshold.signal, observation->available).to_string());
    break;
  }
  if (victim.stats == nullptr) return message;
  std::string names;
  std::string usages;
  for (const api::ContainerStats& stats : victim.stats->containers) {
    const api::Container* container = find_container(victim.pod->spec, stats.name);
    const std::optional<api::Quantity> usage = usage_of(stats, resource);
    if (container == nullptr || !usage) continue;
    const auto own = container->resources.requests.find(resource);
    const api::Quantity request = own == container->resources.requests.end() ? api::Quantity() : own->second;
    if (*usage <= request) continue;
    message.text += fmt::format("Container {} was using {}, request is {}, has larger consumption of {}. ", stats.name,
                                usage->to_string(), request.to_string(), resource);
    names = join(std::move(names), stats.name);
    usages = join(std::move(usages), usage->to_string());
  }
  message.annotations = {{"offending_containers", std::move(names)},
                         {"offending_containers_usage", std::move(usages)},
                         {"starved_resource", std::string(resource)}};
  return message;
}

}  // namespace spillway::eviction
