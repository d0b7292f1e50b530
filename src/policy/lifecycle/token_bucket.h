// Token buckets that say how many nodes per second may be tainted or evicted. Two arithmetics, both upstream's to the
// last bit because grants at refill boundaries are observable: kContinuous (since 1.8) and kTicks (1.7).
// Thread: any (a value). The time is monotonic and never goes back. Source: spec "Node lifecycle", S7.2; vectors
// lifecycle/token_bucket.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <optional>

namespace spillway::lifecycle {

enum class BucketKind { kContinuous, kTicks };

class TokenBucket {
 public:
  /// Full at `created`. `rate`: tokens per second, single precision as upstream keeps it; not negative, and above 0
  /// for kTicks.
  TokenBucket(BucketKind kind, float rate, int burst, Instant created);

  /// Takes one token; false if there is none.
  bool try_take(Instant now);

  /// When the next token can be taken; nullopt: never. Takes nothing.
  std::optional<Instant> next_grant(Instant now) const;

  float rate() const { return rate_; }

  /// Share of the bucket that is empty, 0 to 1 (kTicks only): what a change of rate compares.
  double saturation(Instant now);

 private:
  bool take_continuous(Instant now);
  bool take_ticks(Instant now);
  void refill_ticks(Instant now);

  BucketKind kind_;
  float rate_;
  int burst_;
  // kContinuous
  std::optional<Instant> last_grant_;
  double tokens_ = 0;
  // kTicks
  Instant created_;
  std::int64_t fill_interval_ns_ = 0;
  std::int64_t quantum_ = 0;
  std::int64_t available_ = 0;
  std::int64_t last_tick_ = 0;
};

/// A limiter that can be stopped, with the rate changed in flight: one per zone.
class RateLimiter {
 public:
  enum class Stopped {
    kReportsZero,
    /// Upstream: a stopped limiter says its rate is 1, so that a change to exactly 1 does nothing.
    kReportsOne,
    /// Upstream: as kReportsOne, and a limiter made with rate 0 is not stopped but lets its burst through once.
    kReportsOneBurstAtZero,
  };

  /// `rate` <= 0: stopped.
  RateLimiter(BucketKind kind, float rate, int burst, Instant created, Stopped stopped);

  bool try_take(Instant now);
  /// When it will let the next one through; nullopt: never, as things are.
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
