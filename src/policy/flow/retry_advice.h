// The seconds of Retry-After for a refused client: 1 at first, doubled while refusals stay frequent, 32 at most, halved
// again when they become rare. Thread: as its owner.
// Source: spec "API server at scale", 6.5.
#pragma once

#include "base/time.h"

namespace spillway::flow {

class RetryAdvice {
 public:
  /// Counts a refusal and returns the seconds to advise: 1 to 32.
  int refuse(Instant now);

 private:
  void adapt(Instant now);

  int seconds_ = 1;
  int refused_ = 0;  // since `since_`
  Instant since_{};
};

}  // namespace spillway::flow
