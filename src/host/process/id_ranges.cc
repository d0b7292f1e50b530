#include "host/process/id_ranges.h"

#include "base/check.h"
#include "base/rng.h"

namespace spillway::host {

std::uint32_t IdRanges::take(std::string_view pod_uid) {
  SPILLWAY_CHECK(taken_.size() < kCount);
  auto number = static_cast<std::uint32_t>(fnv1a64(pod_uid) % kCount);
  while (!taken_.insert(number).second) number = (number + 1) % kCount;
  return kFirst + number * kSize;
}

void IdRanges::release(std::uint32_t first) {
  taken_.erase((first - kFirst) / kSize);
}

}  // namespace spillway::host
