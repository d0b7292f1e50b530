// The time at which each signal will reach its threshold, extrapolated from the last half minute.
#pragma once

#include "base/time.h"
#include "policy/eviction/threshold.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace spillway::agent {

class EvictionForecast {
 public:
  /// Signals without a new reading keep their history.
  void add(const eviction::Observations& seen, Instant now);

  /// Seconds until the nearest threshold of the signal is met: 0 if one is met, infinite if the signal does not fall.
  /// nullopt: it was not observed, or has no threshold.
  std::optional<double> seconds_to_threshold(eviction::Signal signal, std::span<const eviction::Threshold> thresholds,
                                             Instant now) const;

 private:
  friend struct RecordFields;  // part of the engine's state in recordings

  static constexpr std::size_t kSamples = 16;

  struct Sample {
    Instant at;
    std::int64_t available = 0;
  };

  struct Trend {
    std::array<Sample, kSamples> ring{};
    std::size_t count = 0;  // number of samples ever taken
    std::optional<eviction::Observation> last;

    const Sample& newest() const { return ring[(count - 1) % kSamples]; }
  };

  /// Falling amount per second; 0 if it does not fall.
  static double fall_per_second(const Trend& trend, Instant now);

  std::array<Trend, eviction::kSignals.size()> trends_;
};

}  // namespace spillway::agent
