#include "policy/node_load.h"

#include "api/object/pod_requests.h"
#include "api/text/resource_names.h"

#include <algorithm>
#include <limits>

namespace spillway::policy {

namespace {

constexpr std::int64_t kMissingMilliCpu = 100;                                 // upstream's default for scores
constexpr std::int64_t kMissingMemoryBytes = std::int64_t{200} * 1024 * 1024;  // upstream's default for scores

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

}  // namespace

Amounts& Amounts::operator+=(const Amounts& other) {
  milli_cpu = saturating_add(milli_cpu, other.milli_cpu);
  memory_bytes = saturating_add(memory_bytes, other.memory_bytes);
  ephemeral_storage_bytes = saturating_add(ephemeral_storage_bytes, other.ephemeral_storage_bytes);
  for (const auto& [name, amount] : other.scalars) scalars[name] = saturating_add(scalars[name], amount);
  return *this;
}

Amounts amounts_of(const api::ResourceList& resources) {
  Amounts amounts;
  for (const auto& [name, quantity] : resources) {
    if (name == "cpu") {
      amounts.milli_cpu = quantity.milli_value();
    } else if (name == "memory") {
      amounts.memory_bytes = quantity.value();
    } else if (name == "ephemeral-storage") {
      amounts.ephemeral_storage_bytes = quantity.value();
    } else if (api::is_scalar_resource(name)) {
      amounts.scalars.emplace(name, quantity.value());
    }
  }
  return amounts;
}

Amounts requested_by(const api::Pod& pod, const api::PodFeatures& features) {
  api::RequestOptions options;
  options.features = {.pod_level_resources = features.pod_level_resources, .in_place_pod_vertical_scaling = false};
  return amounts_of(api::effective_requests(pod, options));
}

PodLoad load_of(const api::Pod& pod, const api::PodFeatures& features) {
  api::RequestOptions plain;
  plain.features = features;
  api::RequestOptions scored = plain;
  scored.missing_cpu = api::Quantity::of_milli(kMissingMilliCpu);
  scored.missing_memory = api::Quantity::of_units(kMissingMemoryBytes, api::Quantity::Format::kBinarySI);
  const Amounts padded = amounts_of(api::effective_requests(pod, scored));
  return {amounts_of(api::effective_requests(pod, plain)), padded.milli_cpu, padded.memory_bytes};
}

void NodeLoad::set_node(std::shared_ptr<const api::Node> to) {
  node = std::move(to);
  allocatable = amounts_of(node->status.allocatable);
  const auto pods = node->status.allocatable.find("pods");
  pods_max = pods == node->status.allocatable.end() ? 0 : pods->second.value();
  image_bytes.clear();
  for (const api::ContainerImage& image : node->status.images) {
    for (const std::string& name : image.names) image_bytes.insert_or_assign(name, image.size_bytes);
  }
}

void NodeLoad::add(const api::Pod& pod, const api::PodFeatures& features) {
  const PodLoad load = load_of(pod, features);
  requested += load.requested;
  scored_milli_cpu = saturating_add(scored_milli_cpu, load.scored_milli_cpu);
  scored_memory_bytes = saturating_add(scored_memory_bytes, load.scored_memory_bytes);
  count(pod);
}

void NodeLoad::add_unscored(const api::Pod& pod, const api::PodFeatures& features) {
  api::RequestOptions options;
  options.features = features;
  requested += amounts_of(api::effective_requests(pod, options));
  count(pod);
}

void NodeLoad::count(const api::Pod& pod) {
  ++pod_count;
  ports.add(pod.spec);
  volumes.add(pod);
  const std::int32_t priority = api::priority_of(pod);
  lowest_priority = std::min(priority, lowest_priority.value_or(priority));
}

}  // namespace spillway::policy
