// The loop thread: everything that decides runs here, one thing after the other. Other threads post values to it.
// One turn: descriptors that are ready, then timers that are due, then posted tasks; of the latter two as many as fit
// into kShareOfTurn, and at least one; at its end the work that was left for the end of the turn. A flood of requests
// therefore cannot hold back a pressure wake-up. Every turn is measured and passed to an observer. Thread: post(),
// stop(), is_ours() and now() any; the rest the loop's own.
#pragma once

#include "base/time.h"
#include "runtime/clock.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace spillway::runtime {

class Loop {
 public:
  using Task = std::move_only_function<void()>;
  using TimerId = std::uint64_t;

  /// A turn that has lasted this long begins no further timer and no further task.
  static constexpr Duration kShareOfTurn = milliseconds(10);

  /// The work between two waits.
  struct Turn {
    Duration took{};
    Duration longest{};  // the mark() of the longest piece; empty: it had none
    std::string what;    // the mark() of the longest piece of work; empty: none
  };

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs `task` on the loop, after the tasks posted before it. Tasks that are left when run() returns stay queued for
  /// the next run() and are destroyed with the loop.
  void post(Task task);
  /// Runs `task` once, at the end of the turn at hand; one that is left by such a task, at the end of the next turn,
  /// which does not wait. What is collected during a turn is handed over there in one piece.
  void at_end_of_turn(Task task);
  /// Runs `task` at or after `due`. Timers due at the same instant run in the order they were set.
  TimerId at(Instant due, Task task);
  /// Harmless if the timer has run or was never set.
  void cancel(TimerId timer);
  /// Calls `ready` on the loop whenever `fd` is ready (POLLIN, POLLOUT; POLLPRI for PSI and cgroup events) until
  /// unwatched. Level-triggered: `ready` must consume the event. Also called on error and hang-up. The descriptor must
  /// be one that epoll accepts, not yet watched, and must stay open until it is unwatched.
  void watch_fd(int fd, short poll_events, std::function<void()> ready);
  /// Waits for `poll_events` from now on (0: only for error and hang-up). `fd` must be watched.
  void rewatch_fd(int fd, short poll_events);
  /// Harmless if `fd` is not watched.
  void unwatch_fd(int fd);

  /// Names the present piece of work, e.g. "PATCH /api/v1/nodes/n1/status".
  void mark(std::string what);
  /// Calls `observe` after every turn in which anything ran. Before run(), or on the loop.
  void on_turn(std::function<void(const Turn&)> observe);

  /// True on the thread that runs the loop, and anywhere while it does not run. Classes whose comment says
  /// `Thread: loop` check it in dev builds, as the functions of the loop itself do: SPILLWAY_DCHECK(loop.is_ours()).
  bool is_ours() const;

  /// The time now, by both clocks.
  Now now() const { return RealClock::read(); }

  /// Blocks until stop(). SIGINT and SIGTERM call `on_signal` on the loop; if it is empty they are left alone. At most
  /// one loop of the process takes signals at a time.
  void run(std::function<void(int signal)> on_signal);
  /// Ends run() after the present task; a run() that has not begun yet returns at once.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::runtime
