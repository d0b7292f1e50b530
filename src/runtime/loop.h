// The loop thread: everything that decides runs here, one thing after the other. Other threads post values to it.
// Thread: post() and stop() any; the rest the loop's own.
#pragma once

#include "base/time.h"

#include <chrono>
#include <functional>
#include <memory>

namespace spillway::runtime {

class Loop {
 public:
  using Task = std::move_only_function<void()>;
  using TimerId = std::uint64_t;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs `task` on the loop, after what was posted before it.
  void post(Task task);
  /// Runs `task` at or after `due`.
  TimerId at(Instant due, Task task);
  void cancel(TimerId timer);
  /// Calls `ready` on the loop whenever `fd` is readable (or has POLLPRI, for PSI and cgroup events) until unwatched.
  void watch_fd(int fd, short poll_events, std::function<void()> ready);
  void unwatch_fd(int fd);

  /// Both clocks, read now.
  Now now() const;

  /// Blocks until stop(). SIGINT and SIGTERM call `on_signal` on the loop.
  void run(std::function<void(int signal)> on_signal);
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::runtime
