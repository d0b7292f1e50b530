// Limits the nodes per second that may be tainted or evicted in a zone.
// Thread: any (a value). The time is monotonic and never goes back. Source: spec "Node lifecycle", S7.2.
#pragma once

#include "base/time.h"
#include "base/token_bucket.h"

#include <optional>

namespace spillway::lifecycle {

/// A limiter that can be stopped, with the rate changed in flight: one per zone.
class RateLimiter {
 public:
  enum class Stopped {
    kReportsZero,
    /// Upstream: a stopped limiter reports the rate 1, so that a change to exactly 1 does nothing.
    kReportsOne,
    /// Upstream: as kReportsOne, and a limiter made with rate 0 is not stopped but lets its burst through once.
    kReportsOneBurstAtZero,
  };

  /// `rate` <= 0: stopped.
  RateLimiter(BucketKind kind, float rate, int burst, Instant created, Stopped stopped);

  bool try_take(Instant now);
  /// The time of the next grant; nullopt: never at the present rate.
  std::optional<Instant> next_grant(Instant now) const;
  /// The rate that set_rate compares with.
  float reported_rate() const;
  /// Tokens per second that really pass; 0: stopped.
  float effective_rate() const;
  /// Replaces the bucket by one with burst 1 and `rate` (<= 0: stops), unless the reported rate is the same already.
  /// The new bucket starts as full as the old one was.
  void set_rate(float rate, Instant now);

 private:
  double saturation(Instant now);

  BucketKind kind_;
  Stopped stopped_;
  std::optional<TokenBucket> bucket_;  // nullopt: stopped
};

}  // namespace spillway::lifecycle
