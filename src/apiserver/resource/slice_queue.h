// Work that is too long for one turn of the loop, done a slice per wake-up; several tasks take turns, and requests are
// served in between. Thread: loop. Invariant: a slice is bounded by the task itself (SliceBudget), not by time: an
// engine has no clock, and the same requests cost the same slices.
#pragma once

#include "apiserver/resource/timer_queue.h"
#include "base/time.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

namespace spillway::apiserver {

/// The most that one slice may cost, in bytes of text that are parsed and written anew; 16 KiB take well below a
/// millisecond.
inline constexpr std::size_t kSliceCost = 64U << 10U;
/// Text that is only copied costs an eighth.
inline constexpr std::size_t kCopyShare = 8;
/// The cost of visiting one object, besides its text.
inline constexpr std::size_t kVisitCost = 64;

/// Objects: a list of more, or the start of a watch on more, is long.
inline constexpr std::size_t kLongList = 1'000;
/// Bytes of objects: a list of more is long, however few they are.
inline constexpr std::size_t kLongListBytes = 2U << 20U;

class SliceBudget {
 public:
  /// False: the slice is used up. The first piece of a slice always fits.
  bool take(std::size_t cost) {
    if (spent_ >= kSliceCost) return false;
    spent_ += cost;
    return true;
  }

 private:
  std::size_t spent_ = 0;
};

class SliceQueue {
 public:
  /// Executes one slice; true: the work is done.
  using Work = std::move_only_function<bool(SliceBudget&)>;

  /// `now`: where the instant of the present event is kept.
  SliceQueue(TimerQueue& timers, const Now& now) : timers_(timers), now_(now) {}

  /// Executes the first slice at once if the queue is empty.
  void add(Work work) {
    if (works_.empty() && !running_) {
      if (run(work)) return;
    }
    works_.push_back(std::move(work));
    arm();
  }

  std::size_t size() const { return works_.size(); }

 private:
  bool run(Work& work) {
    running_ = true;
    SliceBudget budget;
    const bool done = work(budget);
    running_ = false;
    return done;
  }

  void next() {
    armed_ = false;
    if (works_.empty()) return;
    Work work = std::move(works_.front());
    works_.pop_front();
    if (!run(work)) works_.push_back(std::move(work));
    arm();
  }

  void arm() {
    if (works_.empty() || std::exchange(armed_, true)) return;
    timers_.at(now_.mono, [this] { next(); });
  }

  TimerQueue& timers_;
  const Now& now_;
  std::deque<Work> works_;
  bool running_ = false;
  bool armed_ = false;
};

}  // namespace spillway::apiserver
