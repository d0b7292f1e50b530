// Sizes of the file system that holds a directory, read on a thread of its own because statfs may hang. Thread: loop.
// Source: spec "Node agent", 10.2 (node.fs).
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
#include <vector>

namespace spillway::host {

/// statvfs(3), now; may hang. `time` is left absent.
Result<api::FsStats> read_fs(const std::string& path);

class FsProbe {
 public:
  using Read = std::function<Result<api::FsStats>(const std::string& path)>;

  /// `read` is called on the probe's own thread, and may hang.
  FsProbe(runtime::Loop& loop, std::string path, Read read = read_fs);

  /// Begins a call of `read` unless one is running, and waits for it for 2 ms at most: a file system that answers does
  /// so in microseconds, and the loop does not wait for one that hangs.
  void refresh();

  /// The last answer. Its time is the moment at which its call began, so it shows every change before that moment.
  /// nullopt: the last answer is older than two minutes, because a file system that hangs has no known size.
  std::optional<api::FsStats> latest(Instant now) const;

  /// Calls `then` on the loop, in a later turn, once a call that began at `since` or later has ended; latest() is its
  /// answer unless it failed. `since` is the present or the past. `then` is not called while the file system hangs: the
  /// caller sets its own limit.
  void after_reading_since(Instant since, std::function<void()> then);

 private:
  struct Answer {
    api::FsStats stats;
    Instant begun;
  };

  struct Waiter {
    Instant since;
    std::function<void()> then;
  };

  /// The answer of the call that is running, shared by the two threads.
  struct Handover {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<Result<api::FsStats>> answer;
  };

  /// Begins a call, after the one that is running if there is one. False: two calls are under way already.
  bool begin();
  void take_answer();
  void on_call_ended();
  void call_waiters();

  runtime::Loop& loop_;
  std::string path_;
  Read read_;
  std::optional<Answer> answer_;
  Now begun_;  // when the last call began
  std::vector<Waiter> waiters_;
  std::shared_ptr<Handover> handover_ = std::make_shared<Handover>();
  BlockingThread thread_;  // last: its results use the other members
};

}  // namespace spillway::host
