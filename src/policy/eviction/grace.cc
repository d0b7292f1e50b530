#include "policy/eviction/grace.h"

#include <algorithm>

namespace spillway::eviction {

void GraceTracker::update(std::span<const Threshold> crossed, Instant now) {
  std::vector<std::pair<Threshold, Instant>> next;
  next.reserve(crossed.size());
  for (const Threshold& threshold : crossed) next.emplace_back(threshold, first_observed(threshold).value_or(now));
  first_observed_ = std::move(next);
}

std::vector<Threshold> GraceTracker::past_grace(std::span<const Threshold> crossed, Instant now) const {
  std::vector<Threshold> past;
  for (const Threshold& threshold : crossed) {
    if (now - first_observed(threshold).value_or(now) >= threshold.grace_period) past.push_back(threshold);
  }
  return past;
}

std::optional<Instant> GraceTracker::first_observed(const Threshold& threshold) const {
  for (const auto& [tracked, since] : first_observed_) {
    if (same_threshold(tracked, threshold)) return since;
  }
  return std::nullopt;
}

void GraceTracker::restore(const Threshold& threshold, Instant first_observed) {
  first_observed_.emplace_back(threshold, first_observed);
}

std::optional<Instant> GraceTracker::next_end(Instant now) const {
  std::optional<Instant> next;
  for (const auto& [threshold, since] : first_observed_) {
    const Instant end = since + threshold.grace_period;
    if (end > now) next = std::min(end, next.value_or(end));
  }
  return next;
}

}  // namespace spillway::eviction
