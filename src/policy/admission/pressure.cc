#include "policy/admission/pressure.h"

#include "api/object/taint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spillway::admission {

namespace {

constexpr std::string_view kMemoryPressure = "MemoryPressure";

bool tolerates_memory_pressure(const api::Pod& pod) {
  const api::Taint taint{.key = std::string(api::kTaintNodeMemoryPressure),
                         .value = {},
                         .effect = std::string(api::kNoSchedule),
                         .time_added = {}};
  return std::ranges::any_of(pod.spec.tolerations, [&](const api::Toleration& each) { return tolerates(each, taint); });
}

}  // namespace

Answer admit_under_pressure(std::span<const std::string_view> conditions, const api::Pod& pod) {
  if (conditions.empty() || api::is_critical(pod)) return {};
  const api::QosClass qos = api::qos_of(pod);
  if (conditions.size() == 1 && conditions.front() == kMemoryPressure) {
    if (qos != api::QosClass::kBestEffort || tolerates_memory_pressure(pod)) return {};
  }
  const std::string names = fmt::format("{}", fmt::join(conditions, " "));
  return refuse("Evicted", fmt::format("The node had condition: [{}]. ", names),
                {policy::ReasonCode::kNodePressure, {{"conditions", names}, {"qos", std::string(to_string(qos))}}});
}

}  // namespace spillway::admission
