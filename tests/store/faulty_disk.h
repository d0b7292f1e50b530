// A disk below SQLite that fails on demand, and that knows its content after a power loss: while one of these lives,
// every connection opened goes through it (it is SQLite's default VFS).
// Thread: any. One at a time per process.
#pragma once

#include "base/rng.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spillway::store {

class FaultyDisk {
 public:
  /// The kinds of failure of a write or sync.
  enum class Fault {
    kNone,
    kIo,          // EIO: nothing is written
    kNoSpace,     // ENOSPC: nothing is written
    kShortWrite,  // the first half is written, then the disk is full (writes only)
  };

  FaultyDisk();
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  /// Makes writes to database and log files fail, until the next call.
  void fail_writes(Fault fault);
  void fail_syncs(Fault fault);
  /// Fails writes to database files alone: their logs are written.
  void fail_database_writes(Fault fault);

  /// Limits the length of database files; nullopt: no limit.
  void limit_database(std::optional<std::int64_t> bytes);

  /// Writes into `directory` what is left of the files of directory `of` if the power fails now: what was synced, and
  /// of each write since then all or nothing, as chance has it.
  void lose_power(const std::string& of, const std::string& directory, Rng& rng) const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace spillway::store
