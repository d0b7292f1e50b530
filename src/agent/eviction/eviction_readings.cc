#include "agent/eviction/eviction_readings.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

void EvictionReadings::add(const api::Summary& summary, Instant now) {
  seen_ = eviction::observe(summary, estimator_);
  if (const auto& memory = seen_[eviction::Signal::kMemoryAvailable]) fall_.add(Bytes{memory->available}, now);
  forecast_.add(seen_, now);
}

void EvictionReadings::replace(std::shared_ptr<const api::Summary> summary) {
  summary_ = std::move(summary);
  seen_ = eviction::observe(*summary_, estimator_);
}

bool EvictionReadings::is_emergency(Duration grace, Instant now) const {
  const auto& memory = seen_[eviction::Signal::kMemoryAvailable];
  if (!memory) return false;
  const Bytes fall = fall_.steepest_per_second(now, kRecentFall);
  return agent::is_emergency(Bytes{memory->available}, options_.blind_zone, fall, grace + kKillMargin);
}

std::vector<eviction::Threshold> EvictionReadings::memory_thresholds_met(
    std::span<const eviction::Threshold> thresholds) const {
  std::vector<eviction::Threshold> reached = thresholds_met(thresholds, seen_, eviction::Reclaim::kWithout);
  std::erase_if(reached, [](const eviction::Threshold& threshold) { return !is_memory(threshold.signal); });
  return reached;
}

std::optional<Bytes> EvictionReadings::memory_headroom(std::span<const eviction::Threshold> thresholds) const {
  std::optional<Bytes> headroom;
  for (const eviction::Threshold& threshold : thresholds) {
    const auto& observation = seen_[threshold.signal];
    if (!is_memory(threshold.signal) || !observation) continue;
    const auto limit = amount_of(threshold.value, observation->capacity);
    if (!limit) continue;
    const Bytes left = Bytes{observation->available} - limit->bytes();
    if (left >= Bytes{0}) headroom = std::min(left, headroom.value_or(left));
  }
  return headroom;
}

void EvictionReadings::restore(const FallRate& fall, const EvictionForecast& forecast,
                               const eviction::Observations& seen, std::shared_ptr<const api::Summary> summary) {
  fall_ = fall;
  forecast_ = forecast;
  seen_ = seen;
  summary_ = std::move(summary);
}

}  // namespace spillway::agent
