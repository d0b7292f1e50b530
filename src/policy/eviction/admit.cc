#include "policy/eviction/admit.h"

#include "api/taint.h"

#include <algorithm>

namespace spillway::eviction {
namespace {

bool tolerates_memory_pressure(const api::Pod& pod) {
  const api::Taint taint{.key = std::string(api::kTaintNodeMemoryPressure),
                         .value = {},
                         .effect = std::string(api::kNoSchedule),
                         .time_added = {}};
  return std::ranges::any_of(pod.spec.tolerations, [&](const api::Toleration& each) { return tolerates(each, taint); });
}

}  // namespace

Admission admit_pod(std::span<const Condition> reported, const api::Pod& pod) {
  if (reported.empty() || api::is_critical(pod)) return {};
  if (reported.size() == 1 && reported.front() == Condition::kMemoryPressure) {
    if (api::qos_of(pod) != api::QosClass::kBestEffort || tolerates_memory_pressure(pod)) return {};
  }
  std::string names;
  for (const Condition condition : reported) {
    if (!names.empty()) names += ' ';
    names += to_string(condition);
  }
  return {.admit = false, .reason = "Evicted", .message = "The node had condition: [" + names + "]. "};
}

}  // namespace spillway::eviction
