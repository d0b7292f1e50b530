// What a SQLite store says about itself in numbers.
// Thread: any.
#pragma once

#include "telemetry/metrics.h"

namespace spillway::store::sqlite {

struct StoreMetrics {
  /// Without a registry nothing is counted.
  explicit StoreMetrics(telemetry::Registry* registry);

  telemetry::Counter writes;
  telemetry::Counter refused;
  telemetry::Histogram commit_seconds;
  telemetry::Histogram commit_writes;
  telemetry::Gauge takes_writes;  // 1, or 0 while the disk is full or has failed
  telemetry::Gauge revision;
  telemetry::Gauge compacted_revision;
  telemetry::Gauge live_bytes;
  telemetry::Gauge history_bytes;
};

}  // namespace spillway::store::sqlite
