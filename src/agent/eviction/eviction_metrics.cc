#include "agent/eviction/eviction_metrics.h"

#include <algorithm>

namespace spillway::agent {

EvictionMetrics::EvictionMetrics(telemetry::Registry* registry) : registry_(registry) {
  if (registry_ == nullptr) return;
  passes = registry_->counter("spillway_eviction_passes_total", "Eviction passes over a whole observation");
  observations = registry_->counter("spillway_observations_total", "Observations of the node");
  failed_observations = registry_->counter("spillway_observation_failures_total", "Observations that failed");
  emergencies = registry_->counter("spillway_emergency_evictions_total", "Evictions without grace");
  shortened_graces = registry_->counter("spillway_eviction_graces_shortened_total",
                                        "Graces of soft evictions cut short because a hard threshold was met");
  reclaims = registry_->counter("spillway_node_reclaims_total", "Reclaims of disk space or inodes before an eviction");
  relieved_bytes = registry_->counter("spillway_memory_relief_bytes_total",
                                      "Page cache reclaimed from pods before an eviction for memory");
}

void EvictionMetrics::count_eviction(const std::string& signal) {
  if (registry_ == nullptr) return;
  registry_
      ->counter("kubelet_evictions", "Cumulative number of pod evictions by eviction signal",
                {{"eviction_signal", signal}})
      .add();
}

void EvictionMetrics::record_stats_age(eviction::Signal signal, Duration age) {
  if (registry_ == nullptr) return;
  registry_
      ->histogram("kubelet_eviction_stats_age_seconds",
                  "Time between when stats are collected, and when pod is evicted based on those stats",
                  {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, {{"eviction_signal", to_string(signal)}})
      .observe(std::chrono::duration<double>(age).count());
}

void EvictionMetrics::set_estimates(const std::vector<eviction::MemoryEstimate>& estimates,
                                    eviction::MemoryEstimator chosen) {
  if (registry_ == nullptr) return;
  const auto by = std::ranges::find(estimates, chosen, &eviction::MemoryEstimate::by);
  for (const eviction::MemoryEstimate& each : estimates) {
    const std::string name(to_string(each.by));
    registry_
        ->gauge("spillway_memory_estimate_bytes", "Available memory of the node by each estimator",
                {{"estimator", name}})
        .set(static_cast<double>(each.available_bytes));
    if (each.by == chosen || by == estimates.end()) continue;
    registry_
        ->gauge("spillway_memory_estimate_difference_bytes",
                "Available memory of the node by an estimator, less that by the one in use", {{"estimator", name}})
        .set(static_cast<double>(each.available_bytes - by->available_bytes));
    telemetry::Counter disagreements = registry_->counter(
        "spillway_memory_estimate_disagreements_total",
        "Whole observations in which an estimator decided otherwise about memory pressure than the one in use",
        {{"estimator", name}});
    if (each.pressure != by->pressure) disagreements.add();
  }
}

void EvictionMetrics::set_forecast(eviction::Signal signal, double seconds_to_threshold) {
  if (registry_ == nullptr) return;
  const auto slot = static_cast<std::size_t>(signal);
  if (!forecast_known_[slot]) {
    forecast_known_[slot] = true;
    forecasts_[slot] =
        registry_->gauge("spillway_forecast_seconds_to_threshold",
                         "Seconds until the nearest threshold is met at the rate of the last half minute",
                         {{"signal", to_string(signal)}});
  }
  forecasts_[slot].set(seconds_to_threshold);
}

}  // namespace spillway::agent
