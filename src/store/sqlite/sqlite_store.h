// The store in one SQLite file: durable, for one process. One thread writes: it takes all waiting requests, commits
// them as one transaction (group commit) that is on the disk before any caller or watcher receives it, and assigns
// revisions without gaps. Another thread reads from snapshots, so that long lists delay no write.
// Thread: loop, except that the poster is called from both threads. Invariants: the changes of a write reach watchers
// before its completion; no answer shows a revision beyond revision(); an acknowledged write survives the death of the
// process and of the machine. Source: spec "API server contract", 22.4; SQLite docs, "Write-Ahead Logging".
#pragma once

#include "base/error.h"
#include "store/sqlite/options.h"
#include "store/store.h"
#include "telemetry/memory_table.h"

#include <memory>
#include <optional>
#include <string>

namespace spillway::store {

class SqliteStore final : public Store {
 public:
  /// Opens or creates the database file `path`, and its directory. The poster must stay callable until stop() returned.
  /// kConflict: "data directory D is in use by process N". kInvalid: not a Spillway database, damaged, or written by a
  /// newer version; nothing has been changed then.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path, Poster post, SqliteOptions options = {});

  /// stop(), then whatever has been posted but did not run yet is dropped.
  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  void write(Write write, Completion<WriteResult> done) override;
  void range(Range range, Completion<RangeResult> done) override;
  WatchId watch(std::string prefix, Revision after, Watcher& watcher) override;
  void unwatch(WatchId id) override;
  void compact(Revision revision, Completion<Revision> done) override;
  void oldest_within(Revision head, std::uint64_t changes_max, Completion<Revision> done) override;
  std::optional<std::string> refusing() const override;
  Revision revision() const override;
  Revision compacted() const override;

  /// The memory of SQLite itself and of the changes that are kept for watches.
  telemetry::MemoryRows memory() const;

  /// Refuses new work, finishes what waits, moves everything into the main file and ends the threads. The completions
  /// of what waited, and the end of every watch, are posted. May be called twice.
  void stop();

 private:
  struct Impl;
  explicit SqliteStore(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace spillway::store
