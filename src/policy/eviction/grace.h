// The time since which each met threshold has been met, which decides if a soft threshold may act.
// Thread: any (a plain value). Bounded by the number of configured thresholds.
// Source: spec "Eviction manager", 5 (steps 8, 11).
#pragma once

#include "base/time.h"
#include "policy/eviction/threshold.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace spillway::eviction {

class GraceTracker {
 public:
  /// Thresholds in `met` keep the time at which they were first seen, or start now; all others lose theirs.
  void update(std::span<const Threshold> crossed, Instant now);
  /// The thresholds of `met` that have held for their grace period.
  std::vector<Threshold> past_grace(std::span<const Threshold> crossed, Instant now) const;
  std::optional<Instant> first_observed(const Threshold& threshold) const;
  void restore(const Threshold& threshold, Instant first_observed);
  /// The time at which the next tracked threshold ends its grace; nullopt: none is waiting.
  std::optional<Instant> next_end(Instant now) const;

 private:
  std::vector<std::pair<Threshold, Instant>> first_observed_;
};

}  // namespace spillway::eviction
