// Token buckets: limit acts per second, such as taints or calls. Two arithmetics, both upstream's to the last bit
// because grants at refill boundaries are observable: kContinuous (since 1.8) and kTicks (1.7). Thread: any (a value).
// The time is monotonic and never goes back. Source: spec "Node lifecycle", S7.2; vectors lifecycle/token_bucket.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <optional>

namespace spillway {

enum class BucketKind { kContinuous, kTicks };

class TokenBucket {
 public:
  /// Full at `created`. `rate`: tokens per second, single precision as upstream keeps it; not negative, and above 0
  /// for kTicks.
  TokenBucket(BucketKind kind, float rate, int burst, Instant created);

  /// Takes one token; false if there is none.
  bool try_take(Instant now);

  /// The time of the next token; nullopt: never. Takes no token.
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

}  // namespace spillway
