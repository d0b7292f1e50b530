// Sizes of the file system that holds a directory, asked for on a thread of its own because statfs may hang.
// Thread: loop. Source: spec "Node agent", 10.2 (node.fs).
#pragma once

#include "api/object/summary.h"
#include "base/error.h"
#include "base/time.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace spillway::host {

/// statvfs(3), now; may hang. `time` is left absent.
Result<api::FsStats> read_fs(const std::string& path);

class FsProbe {
 public:
  using Read = std::function<Result<api::FsStats>(const std::string& path)>;

  /// `read` is called on the probe's own thread, and may hang.
  FsProbe(runtime::Loop& loop, std::string path, Read read = read_fs);

  /// Starts a new statfs unless one is under way, and waits for it for 2 ms at most: a healthy file system answers in
  /// microseconds, a hanging one must not delay the caller.
  void refresh();

  /// The last answer; nothing once it is older than two minutes, because a file system that hangs has no size.
  std::optional<api::FsStats> latest(Instant now) const;

 private:
  struct Answer {
    api::FsStats stats;
    Instant at;
  };

  /// Between the two threads.
  struct Desk {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<Result<api::FsStats>> answer;
  };

  void take_answer();

  runtime::Loop& loop_;
  std::string path_;
  Read read_;
  std::optional<Answer> answer_;
  std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  BlockingThread thread_;  // last: its results touch the rest
};

}  // namespace spillway::host
