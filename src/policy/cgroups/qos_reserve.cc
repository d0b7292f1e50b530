#include "policy/cgroups/qos_reserve.h"

#include <algorithm>

namespace spillway::cgroups {
namespace {

constexpr std::int64_t kWhole = 100;

Bytes reserved(Bytes requested, std::int64_t percent) {
  return Bytes{requested.count() * percent / kWhole};
}

Bytes left_of(Bytes all, Bytes taken) {
  return std::max(Bytes{all.count() - taken.count()}, Bytes{0});
}

}  // namespace

std::optional<ClassMemory> class_memory(Bytes allocatable, const RequestedMemory& requested, std::int64_t percent) {
  if (allocatable <= Bytes{0}) return std::nullopt;
  const Bytes burstable = left_of(allocatable, reserved(requested.guaranteed, percent));
  return ClassMemory{.burstable = burstable, .best_effort = left_of(burstable, reserved(requested.burstable, percent))};
}

}  // namespace spillway::cgroups
