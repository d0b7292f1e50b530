#include "agent/eviction/fall_rate.h"

#include <algorithm>

namespace spillway::agent {
namespace {

/// Shorter steps would measure in what batches memory is taken and accounted.
constexpr Duration kStepMin = milliseconds(20);
constexpr double kNanosPerSecond = 1e9;

std::int64_t second_of(Instant at) {
  return std::chrono::floor<seconds>(at.time_since_epoch()).count();
}

}  // namespace

void FallRate::add(Bytes available, Instant now) {
  if (!last_) {
    last_ = {available, now};
    return;
  }
  const Duration step = now - last_->at;
  if (step < kStepMin) return;
  const Bytes fallen = last_->available - available;
  last_ = {available, now};
  if (fallen <= Bytes{0}) return;
  const double per_second = static_cast<double>(fallen.count()) * kNanosPerSecond / static_cast<double>(step.count());
  const std::int64_t number = second_of(now);
  Second& slot = seconds_[static_cast<std::size_t>(number) % seconds_.size()];
  if (slot.number != number) slot = {number, Bytes{0}};
  slot.fall_per_second = std::max(slot.fall_per_second, Bytes{static_cast<std::int64_t>(per_second)});
}

Bytes FallRate::steepest_per_second(Instant now, Duration window) const {
  const std::int64_t oldest = second_of(now - window);
  Bytes steepest;
  for (const Second& second : seconds_) {
    if (second.number >= oldest) steepest = std::max(steepest, second.fall_per_second);
  }
  return steepest;
}

Duration observe_interval(Bytes headroom, Bytes steepest_fall_per_second, const ObserveOptions& options) {
  if (headroom <= Bytes{0}) return options.interval_min;
  const double rate = std::max(static_cast<double>(options.fall_floor_per_second.count()),
                               2.0 * static_cast<double>(steepest_fall_per_second.count()));
  const double interval_seconds = static_cast<double>(headroom.count()) / (2.0 * std::max(rate, 1.0));
  const double limit_seconds = std::chrono::duration<double>(options.interval_max).count();
  if (interval_seconds >= limit_seconds) return options.interval_max;
  return std::max(options.interval_min,
                  std::chrono::duration_cast<Duration>(std::chrono::duration<double>(interval_seconds)));
}

bool is_emergency(Bytes available, Bytes blind_zone, Bytes fall_per_second, Duration grace) {
  if (fall_per_second <= Bytes{0}) return available <= blind_zone;
  const double left =
      static_cast<double>((available - blind_zone).count()) / static_cast<double>(fall_per_second.count());
  return left < std::chrono::duration<double>(grace).count();
}

}  // namespace spillway::agent
