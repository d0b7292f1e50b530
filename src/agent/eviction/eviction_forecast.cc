#include "agent/eviction/eviction_forecast.h"

#include <algorithm>
#include <limits>

namespace spillway::agent {
namespace {

constexpr Duration kStep = seconds(2);
constexpr Duration kWindow = seconds(30);

}  // namespace

void EvictionForecast::add(const eviction::Observations& seen, Instant now) {
  for (const eviction::Signal signal : eviction::kSignals) {
    if (!seen[signal]) continue;
    Trend& trend = trends_[static_cast<std::size_t>(signal)];
    trend.last = seen[signal];
    if (trend.count > 0 && now - trend.newest().at < kStep) continue;
    trend.ring[trend.count % kSamples] = {now, seen[signal]->available};
    ++trend.count;
  }
}

double EvictionForecast::fall_per_second(const Trend& trend, Instant now) {
  const std::size_t held = std::min(trend.count, kSamples);
  for (std::size_t back = held; back > 0; --back) {
    const Sample& oldest = trend.ring[(trend.count - back) % kSamples];
    if (now - oldest.at > kWindow) continue;
    const double elapsed = std::chrono::duration<double>(now - oldest.at).count();
    if (elapsed <= 0) return 0;
    const auto fallen = static_cast<double>(oldest.available) - static_cast<double>(trend.last->available);
    return std::max(0.0, fallen / elapsed);
  }
  return 0;
}

std::optional<double> EvictionForecast::seconds_to_threshold(eviction::Signal signal,
                                                             std::span<const eviction::Threshold> thresholds,
                                                             Instant now) const {
  const Trend& trend = trends_[static_cast<std::size_t>(signal)];
  if (!trend.last) return std::nullopt;
  std::optional<double> headroom;
  for (const eviction::Threshold& threshold : thresholds) {
    if (threshold.signal != signal) continue;
    const auto limit = amount_of(threshold.value, trend.last->capacity);
    if (!limit) continue;
    const auto left = static_cast<double>(trend.last->available) - static_cast<double>(limit->value());
    headroom = std::min(left, headroom.value_or(left));
  }
  if (!headroom) return std::nullopt;
  if (*headroom < 0) return 0.0;
  const double fall = fall_per_second(trend, now);
  return fall > 0 ? *headroom / fall : std::numeric_limits<double>::infinity();
}

}  // namespace spillway::agent
