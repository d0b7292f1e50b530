#include "api/pod.h"

#include <algorithm>
#include <array>

namespace spillway::api {
namespace {

constexpr std::array<std::string_view, 2> kQosResources = {"cpu", "memory"};

constexpr std::array<std::pair<QosClass, std::string_view>, 3> kQosNames = {{{QosClass::kGuaranteed, "Guaranteed"},
                                                                             {QosClass::kBurstable, "Burstable"},
                                                                             {QosClass::kBestEffort, "BestEffort"}}};

/// Sums of what counts: cpu and memory above zero. True if `resources` has both.
bool add_counted(const ResourceList& resources, ResourceList& sums) {
  std::size_t found = 0;
  for (const std::string_view name : kQosResources) {
    const auto amount = resources.find(name);
    if (amount == resources.end() || amount->second.sign() <= 0) continue;
    sums[std::string(name)] += amount->second;
    ++found;
  }
  return found == kQosResources.size();
}

}  // namespace

QosClass compute_qos(const PodSpec& spec, const PodFeatures& features) {
  ResourceList requests;
  ResourceList limits;
  bool all_limited = true;
  const auto count = [&](const ResourceRequirements& resources) {
    add_counted(resources.requests, requests);
    all_limited = add_counted(resources.limits, limits) && all_limited;
  };
  if (features.pod_level_resources && spec.resources) {
    count(*spec.resources);
  } else {
    for (const Container& container : spec.containers) count(container.resources);
    for (const Container& container : spec.init_containers) count(container.resources);
  }
  if (requests.empty() && limits.empty()) return QosClass::kBestEffort;
  return all_limited && requests == limits ? QosClass::kGuaranteed : QosClass::kBurstable;
}

QosClass qos_of(const Pod& pod) {
  return parse_qos(pod.status.qos_class).value_or(compute_qos(pod.spec));
}

std::string_view to_string(QosClass qos) {
  for (const auto& [known, text] : kQosNames) {
    if (known == qos) return text;
  }
  return "";
}

std::optional<QosClass> parse_qos(std::string_view text) {
  for (const auto& [qos, known] : kQosNames) {
    if (known == text) return qos;
  }
  return std::nullopt;
}

}  // namespace spillway::api
