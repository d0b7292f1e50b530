// The metrics of a SQLite store.
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
  telemetry::Gauge log_bytes;               // size of the write-ahead log
  telemetry::Counter checkpoints;           // passes of the checkpointer
  telemetry::Counter failed_checkpoints;    // failures of the checkpointer and of the writer
  telemetry::Counter writer_checkpoints;    // the writer had to finish, between two groups
  telemetry::Histogram checkpoint_seconds;  // duration of a pass
};

}  // namespace spillway::store::sqlite
