// The wait of the next pass for the end of the victims of the last one.
// Thread: any (a plain value). Source: spec "Eviction manager", 10.
#pragma once

#include "base/time.h"

namespace spillway::eviction {

enum class WaitState { kWaiting, kOver, kTimedOut };

enum class Cleanup { kUnfinished, kFinished };

struct CleanupWait {
  Instant since;
  Duration limit = seconds(30);

  /// Finished in time wins over the limit.
  WaitState evaluate(Cleanup pods, Instant now) const {
    if (pods == Cleanup::kFinished) return WaitState::kOver;
    return now - since >= limit ? WaitState::kTimedOut : WaitState::kWaiting;
  }
};

}  // namespace spillway::eviction
