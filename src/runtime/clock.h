// The real clocks: the only place of the program that reads them. Instants are the kernel's CLOCK_MONOTONIC, so a timer
// of the kernel can be armed with one. Thread: any.
#pragma once

#include "base/time.h"

namespace spillway::runtime {

class RealClock {
 public:
  /// Reads both clocks, one right after the other.
  static Now read();
  /// The monotonic clock alone.
  static Instant read_mono();
};

}  // namespace spillway::runtime
