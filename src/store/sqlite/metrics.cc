#include "store/sqlite/metrics.h"

namespace spillway::store::sqlite {

StoreMetrics::StoreMetrics(telemetry::Registry* registry) {
  if (registry == nullptr) return;
  writes = registry->counter("spillway_store_writes_total", "Writes that are on the disk");
  refused =
      registry->counter("spillway_store_refused_writes_total", "Writes that were not stored: no space, disk failed");
  commit_seconds = registry->histogram("spillway_store_commit_seconds", "Time of one transaction, fsync included",
                                       {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5});
  commit_writes = registry->histogram("spillway_store_commit_writes", "Writes that shared one transaction",
                                      {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  takes_writes = registry->gauge("spillway_store_takes_writes", "1, or 0 while the disk is full or has failed");
  revision = registry->gauge("spillway_store_revision", "The newest revision");
  compacted_revision = registry->gauge("spillway_store_compacted_revision", "The oldest revision that can be read");
  live_bytes = registry->gauge("spillway_store_live_bytes", "Size of the present objects");
  history_bytes = registry->gauge("spillway_store_history_bytes", "Size of their older states");
  log_bytes = registry->gauge("spillway_store_log_bytes", "Size of the write-ahead log's content");
  const auto checkpoint = [&](std::string_view by) {
    return registry->counter("spillway_store_checkpoints_total",
                             "Moves of the write-ahead log into the database: beside the writer, by it, failed",
                             {{"by", by}});
  };
  checkpoints = checkpoint("thread");
  writer_checkpoints = checkpoint("writer");
  failed_checkpoints = checkpoint("nobody");
  checkpoint_seconds =
      registry->histogram("spillway_store_checkpoint_seconds", "Time of a checkpoint by its own thread",
                          {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5});
  takes_writes.set(1);
}

}  // namespace spillway::store::sqlite
