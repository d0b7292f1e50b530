#include "policy/eviction/message.h"

#include "api/object/pod_requests.h"

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

/// nullopt: unknown, or a resource that is not attributed to containers.
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

/// Adds the sentence about a pod with a memory request for the pod as a whole.
void add_whole_pod(std::string_view resource, const MeasuredPod& victim, EvictionMessage& message) {
  if (resource != "memory" || !victim.stats->memory || !victim.stats->memory->working_set_bytes) return;
  const api::Quantity* request = api::pod_level_request(victim.pod->spec, resource);
  if (request == nullptr) return;
  const auto used = Bytes{static_cast<std::int64_t>(*victim.stats->memory->working_set_bytes)};
  std::string usage = api::Quantity::of_bytes(used).to_string();
  const std::string& name = victim.pod->metadata.name;
  message.text += fmt::format("Pod {} was using {}, request is {}, has larger consumption of {}. ", name, usage,
                              request->to_string(), resource);
  message.annotations.emplace("offending_pod", name);
  message.annotations.emplace("offending_pod_usage", std::move(usage));
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
  add_whole_pod(resource, victim, message);
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
  message.annotations.emplace("offending_containers", std::move(names));
  message.annotations.emplace("offending_containers_usage", std::move(usages));
  message.annotations.emplace("starved_resource", resource);
  return message;
}

}  // namespace spillway::eviction
