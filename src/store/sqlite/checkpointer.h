// Moves the write-ahead log into the database beside the writer, so that no commit waits for it: a thread and a
// connection of its own run passive checkpoints. The log begins anew only when all of it is moved; under a steady load
// that is the writer's to finish (writer.cc).
// Thread: the writer's, but for the pass. Invariants: one pass at a time; it begins only while the log holds pages that
// are not moved, so that no commit can begin the log anew at the same moment, which SQLite before 3.51.3 does not
// notice. Source: SQLite, "Write-Ahead Logging", Avoiding Excessively Large WAL Files, The WAL-Reset Bug.
#pragma once

#include "store/sqlite/metrics.h"
#include "store/sqlite/options.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace spillway::store::sqlite {

class Checkpointer {
 public:
  /// `metrics` must outlive it; `clock` is called on its thread. Errors are those of open_for_writing().
  static Result<std::unique_ptr<Checkpointer>> start(const std::string& path, StoreMetrics& metrics,
                                                     std::function<Instant()> clock);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  struct Log {
    std::int64_t pages = 0;          // in the log
    std::int64_t waiting = 0;        // maximum of pages that are not moved yet
    bool busy = false;               // a pass is running
    std::optional<Error> failure{};  // the error of the last pass
  };

  /// Called after a commit that left `pages` in the log: begins a pass if at least `pages_min` (≥ 1) wait and none is
  /// running. One that failed is tried again when the log has grown.
  Log on_commit(std::int64_t pages, std::int64_t pages_min);
  /// Waits until no pass is running: the writer is about to move the log itself.
  void wait();
  /// The writer has moved so many of the log's pages itself.
  void on_moved(std::int64_t pages, std::int64_t moved);
  /// Ends the thread after the pass that is running.
  void stop();

 private:
  struct Impl;
  explicit Checkpointer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::store::sqlite
