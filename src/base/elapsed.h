// The time between two wall times. Objects may name any year, and nanoseconds span 292 of them.
// Thread: any (pure).
#pragma once

#include "base/time.h"

#include <algorithm>
#include <chrono>

namespace spillway {

/// The time from `from` to `to`, negative if `to` is earlier; cut to 292 years, as Go's Time.Sub.
constexpr Duration elapsed(WallTime from, WallTime to) {
  constexpr auto kMost = std::chrono::floor<std::chrono::microseconds>(Duration::max());
  return std::clamp<std::chrono::microseconds>(to - from, -kMost, kMost);
}

}  // namespace spillway
