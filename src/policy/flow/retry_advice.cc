#include "policy/flow/retry_advice.h"

#include <algorithm>
#include <utility>

namespace spillway::flow {
namespace {

constexpr int kSecondsMax = 32;
constexpr int kFrequent = 3;  // refusals in a second

}  // namespace

/// Adapts the advice once its time has passed: by then refused clients have retried, or have given up.
void RetryAdvice::adapt(Instant now) {
  const Duration past = now - since_;
  if (past < seconds(seconds_)) return;
  const int refused = std::exchange(refused_, 0);
  since_ = now;
  if (past >= seconds(2 * kSecondsMax)) {
    seconds_ = 1;
  } else if (refused >= kFrequent * seconds_) {
    seconds_ = std::min(2 * seconds_, kSecondsMax);
  } else if (refused < seconds_) {
    seconds_ = std::max(1, seconds_ / 2);
  }
}

int RetryAdvice::refuse(Instant now) {
  adapt(now);
  if (refused_ < kFrequent * kSecondsMax) ++refused_;
  return seconds_;
}

}  // namespace spillway::flow
