// Metrics of the eviction engine, under upstream's names where the meaning is the same.
// Thread: loop. Labels are signals and limits of local storage: bounded. Source: spec "Eviction manager", 8.
#pragma once

#include "base/time.h"
#include "policy/eviction/memory_estimate.h"
#include "policy/eviction/signal.h"
#include "telemetry/metrics.h"

#include <array>
#include <string>
#include <vector>

namespace spillway::agent {

struct EvictionMetrics {
  /// `registry` may be null: nothing is counted.
  explicit EvictionMetrics(telemetry::Registry* registry);

  void count_eviction(const std::string& signal);
  void record_stats_age(eviction::Signal signal, Duration age);
  /// Sets the memory left by every estimator, and whether another one than `chosen` would have led to another decision.
  void set_estimates(const std::vector<eviction::MemoryEstimate>& estimates, eviction::MemoryEstimator chosen);
  /// Infinite: not in sight.
  void set_forecast(eviction::Signal signal, double seconds_to_threshold);

  telemetry::Counter passes;
  telemetry::Counter observations;
  telemetry::Counter failed_observations;
  telemetry::Counter emergencies;
  telemetry::Counter shortened_graces;
  telemetry::Counter reclaims;
  telemetry::Counter relieved_bytes;

 private:
  telemetry::Registry* registry_;
  std::array<telemetry::Gauge, eviction::kSignals.size()> forecasts_;
  std::array<bool, eviction::kSignals.size()> forecast_known_{};
};

}  // namespace spillway::agent
