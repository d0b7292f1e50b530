#include "wire/server/bounds/stall_watch.h"

#include <algorithm>

namespace spillway::wire {

void StallWatch::begin(Instant now, std::int64_t taken) {
  since_ = now;
  taken_before_ = taken;
  due_ = now + std::min(limits_.stalled_pressed_max, limits_.stalled_max);
}

bool StallWatch::is_stalled(Instant now, std::int64_t taken, bool pressed) {
  if (taken - taken_before_ >= static_cast<std::int64_t>(limits_.taken_bytes_min)) {
    begin(now, taken);
    return false;
  }
  const Instant last = since_ + limits_.stalled_max;
  if (now >= last || pressed) return true;
  due_ = std::min(now + limits_.stalled_pressed_max, last);
  return false;
}

}  // namespace spillway::wire
