#include "runtime/clock.h"

#include "base/check.h"
#include "runtime/thread_time.h"

#include <ctime>

namespace spillway::runtime {

namespace {

Duration read_kernel_clock(clockid_t clock) {
  timespec time{};
  SPILLWAY_CHECK(clock_gettime(clock, &time) == 0);
  return seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

Instant RealClock::read_mono() {
  return Instant(read_kernel_clock(CLOCK_MONOTONIC));
}

Now RealClock::read() {
  const Instant mono = read_mono();
  return Now{mono, WallTime(std::chrono::floor<microseconds>(read_kernel_clock(CLOCK_REALTIME)))};
}

Duration thread_processor_time() {
  return read_kernel_clock(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace spillway::runtime
