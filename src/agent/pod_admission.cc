#include "agent/pod_admission.h"

#include "api/resource_names.h"
#include "api/taint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace spillway::agent {
namespace {

using eviction::Admission;

constexpr std::array<std::string_view, 3> kNativeResources{"cpu", "memory", "ephemeral-storage"};

Admission refuse(std::string reason, std::string message) {
  return {.admit = false, .reason = std::move(reason), .message = std::move(message)};
}

/// Milli-CPU for cpu, units for all else; rounded up once per pod.
std::int64_t integer_of(const api::ResourceList& list, std::string_view resource) {
  const auto it = list.find(resource);
  if (it == list.end()) return 0;
  return resource == "cpu" ? it->second.milli_value() : it->second.value();
}

Admission out_of(std::string_view resource, std::int64_t requested, std::int64_t used, std::int64_t capacity) {
  return refuse(fmt::format("OutOf{}", resource),
                fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}", resource,
                            requested, used, capacity));
}

std::optional<Admission> check_room(const NodeForAdmission& node, const api::Pod& pod,
                                    std::span<const api::Pod* const> others) {
  const std::int64_t pods_max = integer_of(node.allocatable, "pods");
  const auto count = static_cast<std::int64_t>(others.size());
  if (count + 1 > pods_max) return out_of("pods", 1, count, pods_max);

  const api::ResourceList wanted = api::effective_requests(pod.spec);
  std::vector<std::string_view> resources(kNativeResources.begin(), kNativeResources.end());
  for (const auto& [resource, amount] : wanted) {
    if (api::is_scalar_resource(resource) && node.allocatable.contains(resource)) resources.push_back(resource);
  }
  for (const std::string_view resource : resources) {
    const std::int64_t requested = integer_of(wanted, resource);
    if (requested <= 0) continue;
    std::int64_t used = 0;
    for (const api::Pod* other : others) used += integer_of(api::effective_requests(other->spec), resource);
    const std::int64_t capacity = integer_of(node.allocatable, resource);
    if (requested > capacity - used) return out_of(resource, requested, used, capacity);
  }
  return std::nullopt;
}

}  // namespace

Admission admit_pod(const NodeForAdmission& node, const api::Pod& pod, std::span<const api::Pod* const> others) {
  if (Admission pressure = eviction::admit_pod(node.conditions.list(), pod); !pressure.admit) return pressure;
  const auto os = pod.metadata.labels.find("kubernetes.io/os");
  if (os != pod.metadata.labels.end() && os->second != node.operating_system) {
    return refuse("PodOSSelectorNodeLabelDoesNotMatch",
                  "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label");
  }
  if (std::optional<Admission> no_room = check_room(node, pod, others)) return *no_room;
  const bool selected = std::ranges::all_of(pod.spec.node_selector, [&](const auto& wanted) {
    const auto label = node.labels.find(wanted.first);
    return label != node.labels.end() && label->second == wanted.second;
  });
  if (!selected) {
    return refuse("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
  }
  if (!pod.spec.node_name.empty() && pod.spec.node_name != node.node_name) {
    return refuse("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name");
  }
  const std::array<std::string_view, 1> effects{api::kNoExecute};
  if (!api::is_static(pod) && api::find_untolerated(node.taints, pod.spec.tolerations, effects) != nullptr) {
    return refuse("TaintToleration",
                  "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate");
  }
  return {};
}

}  // namespace spillway::agent
