#include "api/object/pod.h"

#include <algorithm>
#include <array>

namespace spillway::api {
namespace {

constexpr std::array<std::string_view, 2> kQosResources = {"cpu", "memory"};

constexpr std::array<std::pair<QosClass, std::string_view>, 3> kQosNames = {{{QosClass::kGuaranteed, "Guaranteed"},
                                                                             {QosClass::kBurstable, "Burstable"},
                                                                             {QosClass::kBestEffort, "BestEffort"}}};

/// Sums of what counts, cpu and memory above zero; in the order of kQosResources.
struct CountedSums {
  std::array<Quantity, kQosResources.size()> sums;

  /// True if `resources` has both.
  bool add(const ResourceList& resources) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < kQosResources.size(); ++i) {
      const auto amount = resources.find(kQosResources[i]);
      if (amount == resources.end() || amount->second.sign() <= 0) continue;
      sums[i] += amount->second;
      ++found;
    }
    return found == kQosResources.size();
  }

  bool is_nothing() const {
    return std::ranges::all_of(sums, [](const Quantity& sum) { return sum.is_zero(); });
  }

  friend bool operator==(const CountedSums&, const CountedSums&) = default;
};

}  // namespace

QosClass compute_qos(const PodSpec& spec, const PodFeatures& features) {
  CountedSums requests;
  CountedSums limits;
  bool all_limited = true;
  const auto count = [&](const ResourceRequirements& resources) {
    requests.add(resources.requests);
    all_limited = limits.add(resources.limits) && all_limited;
  };
  if (features.pod_level_resources && spec.resources) {
    count(*spec.resources);
  } else {
    for (const Container& container : spec.containers) count(container.resources);
    for (const Container& container : spec.init_containers) count(container.resources);
  }
  if (requests.is_nothing() && limits.is_nothing()) return QosClass::kBestEffort;
  return all_limited && requests == limits ? QosClass::kGuaranteed : QosClass::kBurstable;
}

QosClass qos_of(const Pod& pod) {
  const std::optional<QosClass> set = parse_qos(pod.status.qos_class);
  return set ? *set : compute_qos(pod.spec);
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
