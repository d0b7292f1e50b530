#include "policy/lifecycle/rate_limiter.h"

namespace spillway::lifecycle {

RateLimiter::RateLimiter(BucketKind kind, float rate, int burst, Instant created, Stopped stopped)
    : kind_(kind), stopped_(stopped) {
  if (rate > 0 || (rate == 0 && stopped == Stopped::kReportsOneBurstAtZero))
    bucket_.emplace(kind, rate, burst, created);
}

bool RateLimiter::try_take(Instant now) {
  return bucket_ && bucket_->try_take(now);
}

std::optional<Instant> RateLimiter::next_grant(Instant now) const {
  return bucket_ ? bucket_->next_grant(now) : std::nullopt;
}

float RateLimiter::reported_rate() const {
  if (bucket_) return bucket_->rate();
  return stopped_ == Stopped::kReportsZero ? 0.0F : 1.0F;
}

float RateLimiter::effective_rate() const {
  return bucket_ ? bucket_->rate() : 0.0F;
}

double RateLimiter::saturation(Instant now) {
  return bucket_ ? bucket_->saturation(now) : 1.0;
}

void RateLimiter::set_rate(float rate, Instant now) {
  if (rate == reported_rate()) return;
  if (rate <= 0) {
    bucket_.reset();
    return;
  }
  TokenBucket next(kind_, rate, 1, now);
  if (kind_ == BucketKind::kContinuous) {
    if (!try_take(now)) next.try_take(now);
  } else {
    while (next.saturation(now) < saturation(now)) next.try_take(now);
  }
  bucket_ = next;
}

}  // namespace spillway::lifecycle
