// An amount of a simulated pod that grows evenly. Thread: any (a value).
#pragma once

#include "base/time.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace spillway::sim {

/// An amount that grows from `before` at `since` to `to`; it changes at once if `to` is less, or without a rate.
struct Growth {
  std::int64_t before = 0;
  std::int64_t to = 0;
  std::int64_t per_second = 0;
  Instant since{};

  std::int64_t at(Instant now) const {
    if (per_second == 0 || to <= before) return to;
    const double grown = std::chrono::duration<double>(now - since).count() * static_cast<double>(per_second);
    return std::min(before + static_cast<std::int64_t>(grown), to);
  }

  /// Aims at another amount, from the present one.
  void aim(std::int64_t target, std::int64_t rate, Instant now) { *this = {at(now), target, rate, now}; }
};

}  // namespace spillway::sim
