// Metrics of the node lifecycle and of taint evictions. Upstream's names where the meaning is the same; the zone label
// is the readable form of the key. Thread: loop. Source: spec "Node lifecycle", S15.
#pragma once

#include "base/time.h"
#include "policy/lifecycle/node_monitor.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <set>
#include <string>

namespace spillway::controllers {

class LifecycleMetrics {
 public:
  explicit LifecycleMetrics(telemetry::Registry& registry);

  /// Called after a pass: sizes, health, queues and rates of all zones; vanished zones read 0 and 100 % healthy.
  void show_zones(const lifecycle::NodeMonitor& monitor, Instant now);

  /// Number of completed passes.
  std::uint64_t passes() const { return passes_; }

  void node_tainted(const std::string& zone_key);

  telemetry::Counter pod_deletions;
  telemetry::Histogram pod_deletion_seconds;
  telemetry::Gauge eviction_timers;
  telemetry::Counter status_writes;
  telemetry::Counter status_write_failures;
  telemetry::Gauge master_disruption;

 private:
  telemetry::Counter evictions(const std::string& readable_zone);

  telemetry::Registry& registry_;
  std::set<std::string> zones_;
  std::uint64_t passes_ = 0;
};

}  // namespace spillway::controllers
