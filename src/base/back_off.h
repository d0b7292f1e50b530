// Waits between attempts that fail. Pure: the caller sets the timer.
#pragma once

#include "base/time.h"

#include <algorithm>

namespace spillway {

/// Each wait is twice the one before, at least `first` and at most `longest`.
class BackOff {
 public:
  constexpr BackOff(Duration first, Duration longest) : first_(first), longest_(longest) {}

  /// The wait before the next attempt.
  Duration next() {
    wait_ = std::min<Duration>(wait_ == Duration{} ? first_ : wait_ * 2, longest_);
    return wait_;
  }

  /// The last result of next(); zero after reset().
  Duration wait() const { return wait_; }

  /// True if no attempt has failed since the last reset().
  bool is_idle() const { return wait_ == Duration{}; }

  /// After an attempt that succeeded: the next wait is the first one again.
  void reset() { wait_ = {}; }

 private:
  Duration first_;
  Duration longest_;
  Duration wait_{};
};

}  // namespace spillway
