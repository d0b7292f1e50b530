// Readings of the node as the eviction engine took them: the last ones, and how fast the signals fall.
// Thread: loop. Bounds: those of FallRate and EvictionForecast. Source: spec "Wake-up sources", 6.
#pragma once

#include "agent/contract/options.h"
#include "agent/eviction/eviction_forecast.h"
#include "agent/eviction/fall_rate.h"
#include "api/object/summary.h"
#include "policy/eviction/decide.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace spillway::agent {

class EvictionReadings {
 public:
  /// `options` must outlive it.
  EvictionReadings(const EvictionOptions& options, eviction::MemoryEstimator estimator)
      : options_(options), estimator_(estimator) {}

  /// A reading of the whole machine or of its memory alone.
  void add(const api::Summary& summary, Instant now);

  void set_whole(std::shared_ptr<const api::Summary> summary) { summary_ = std::move(summary); }

  /// Takes the numbers on which the machine acted by itself.
  void replace(std::shared_ptr<const api::Summary> summary);

  /// The values of the last reading.
  const eviction::Observations& seen() const { return seen_; }

  /// The last reading of the whole machine; null before the first.
  const std::shared_ptr<const api::Summary>& summary() const { return summary_; }

  const FallRate& fall() const { return fall_; }

  const EvictionForecast& forecast() const { return forecast_; }

  /// True if memory will not last for that grace.
  bool is_emergency(Duration grace, Instant now) const;
  /// The memory thresholds that are reached, whether or not a reclaim would free enough.
  std::vector<eviction::Threshold> memory_thresholds_met(std::span<const eviction::Threshold> thresholds) const;
  /// Bytes between the present amount and the nearest lower threshold; nullopt: there is none.
  std::optional<Bytes> memory_headroom(std::span<const eviction::Threshold> thresholds) const;

  void restore(const FallRate& fall, const EvictionForecast& forecast, const eviction::Observations& seen,
               std::shared_ptr<const api::Summary> summary);

 private:
  const EvictionOptions& options_;
  eviction::MemoryEstimator estimator_;
  FallRate fall_;
  EvictionForecast forecast_;
  eviction::Observations seen_;
  std::shared_ptr<const api::Summary> summary_;
};

}  // namespace spillway::agent
