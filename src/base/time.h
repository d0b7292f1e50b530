// Time as an argument. Two kinds that never convert into each other outside runtime/clock.h:
// Instant is monotonic and orders what this process saw; WallTime is what API objects carry.
// Thread: any. Neither clock has a now(): rules and engines cannot ask what time it is.
#pragma once

#include <chrono>
#include <cstdint>

namespace spillway {

using Duration = std::chrono::nanoseconds;

struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};

/// Nanoseconds since an arbitrary start of this process (real world) or of the simulation.
using Instant = std::chrono::time_point<MonotonicClock, Duration>;

struct CivilClock {
  using rep = std::int64_t;
  using period = std::micro;
  using duration = std::chrono::microseconds;
  using time_point = std::chrono::time_point<CivilClock>;
  static constexpr bool is_steady = false;
};

/// UTC, microseconds since 1970. metav1.Time keeps whole seconds of it, metav1.MicroTime all of it.
using WallTime = std::chrono::time_point<CivilClock, std::chrono::microseconds>;

/// The two readings of the clocks that an engine gets with every event. Both are taken at the same moment.
struct Now {
  Instant mono;
  WallTime wall;
};

/// Seconds with a fraction, for metrics and for people.
constexpr double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

}  // namespace spillway
