// Disk usage of pods' directories, in bytes and inodes. A thread of its own walks a bounded number of files at a time
// and pauses after each batch, so that measuring causes little load. Answers are those of the last complete walk of a
// pod; before the first there is none. Hard links within a pod count once; other file systems below are left out.
// Thread: loop. Bounds: a walk gives up after a million files, without a result. Source: spec "Eviction manager", 7, 9;
// spec "Node agent", 10.3.
#pragma once

#include "base/time.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

struct DirectoryUsage {
  std::uint64_t used_bytes = 0;  // blocks taken, as du counts
  std::uint64_t inodes = 0;
  WallTime at;

  friend bool operator==(const DirectoryUsage&, const DirectoryUsage&) = default;
};

/// Measures one directory, a few files at a time. May block; not for the loop.
class DirectoryWalk {
 public:
  explicit DirectoryWalk(const std::string& path);
  ~DirectoryWalk();
  DirectoryWalk(DirectoryWalk&&) noexcept;
  DirectoryWalk& operator=(DirectoryWalk&&) noexcept;

  /// Visits no more than `files_max` further entries; true when the walk is complete.
  bool step(std::size_t files_max);
  /// nullopt: the directory cannot be read, or holds too much. `at` is left open.
  std::optional<DirectoryUsage> result() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class DiskUsage {
 public:
  /// The number of entries visited at a time, and the pause after them.
  struct Budget {
    std::size_t files = 2000;
    Duration pause = milliseconds(10);
    Duration between_rounds = milliseconds(500);
  };

  explicit DiskUsage(runtime::Loop& loop, Budget budget);

  explicit DiskUsage(runtime::Loop& loop) : DiskUsage(loop, Budget{}) {}

  ~DiskUsage();
  DiskUsage(const DiskUsage&) = delete;
  DiskUsage& operator=(const DiskUsage&) = delete;

  struct Place {
    std::string uid;
    std::string path;
  };

  /// Begins a round over these unless one is under way or has just ended. Answers of others are forgotten.
  void refresh(std::vector<Place> places);

  std::optional<DirectoryUsage> latest(const std::string& uid) const;

 private:
  void walk_next();
  void step(std::shared_ptr<DirectoryWalk> walk);

  runtime::Loop& loop_;
  Budget budget_;
  std::map<std::string, DirectoryUsage> answers_;
  std::vector<Place> round_;
  std::size_t next_ = 0;
  bool walking_ = false;
  std::optional<Instant> ended_;
  std::optional<runtime::Loop::TimerId> timer_;
  BlockingThread thread_;  // last: its results use the other members
};

}  // namespace spillway::host
