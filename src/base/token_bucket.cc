#include "base/token_bucket.h"

#include "base/check.h"

#include <algorithm>
#include <cmath>

namespace spillway {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr double kTickRateMargin = 0.01;
constexpr std::int64_t kQuantumMax = std::int64_t{1} << 50;

/// Whole seconds and the rest apart, as upstream adds them up.
double seconds_of(Duration elapsed) {
  const auto whole = std::chrono::duration_cast<seconds>(elapsed);
  const auto rest = elapsed - whole;
  return static_cast<double>(whole.count()) + static_cast<double>(rest.count()) / kNanosPerSecond;
}

}  // namespace

TokenBucket::TokenBucket(BucketKind kind, float rate, int burst, Instant created)
    : kind_(kind), rate_(rate), burst_(burst), created_(created) {
  SPILLWAY_CHECK(rate >= 0);
  if (kind_ != BucketKind::kTicks) return;
  SPILLWAY_CHECK(rate > 0);
  available_ = burst;
  const double wanted = static_cast<double>(rate);
  for (std::int64_t quantum = 1; quantum < kQuantumMax; quantum = std::max(quantum * 11 / 10, quantum + 1)) {
    const auto interval = static_cast<std::int64_t>(kNanosPerSecond * static_cast<double>(quantum) / wanted);
    if (interval <= 0) continue;
    const double got = kNanosPerSecond * static_cast<double>(quantum) / static_cast<double>(interval);
    if (std::abs(got - wanted) / wanted > kTickRateMargin) continue;
    quantum_ = quantum;
    fill_interval_ns_ = interval;
    return;
  }
  SPILLWAY_CHECK(fill_interval_ns_ > 0);
}

bool TokenBucket::try_take(Instant now) {
  return kind_ == BucketKind::kContinuous ? take_continuous(now) : take_ticks(now);
}

bool TokenBucket::take_continuous(Instant now) {
  const double rate = static_cast<double>(rate_);
  if (rate == 0) {  // never refilled: only the burst
    if (burst_ < 1) return false;
    --burst_;
    return true;
  }
  const double burst = burst_;
  double tokens = burst;
  if (last_grant_) {
    const Duration elapsed = std::max(now - *last_grant_, Duration::zero());
    tokens = std::min(burst, tokens_ + seconds_of(elapsed) * rate);
  }
  tokens -= 1;
  const auto wait_ns = tokens < 0 ? static_cast<std::int64_t>(kNanosPerSecond * (-tokens / rate)) : 0;
  if (burst_ < 1 || wait_ns > 0) return false;
  last_grant_ = now;
  tokens_ = tokens;
  return true;
}

std::optional<Instant> TokenBucket::next_grant(Instant now) const {
  TokenBucket probe = *this;
  if (probe.try_take(now)) return now;
  if (burst_ < 1 || rate_ <= 0) return std::nullopt;
  if (kind_ == BucketKind::kTicks) {
    const std::int64_t tick = (now - created_).count() / fill_interval_ns_ + 1;
    return created_ + Duration(tick * fill_interval_ns_);
  }
  const double rate = static_cast<double>(rate_);
  const double tokens = tokens_ + seconds_of(std::max(now - *last_grant_, Duration::zero())) * rate;
  return now + Duration(static_cast<std::int64_t>(std::ceil(kNanosPerSecond * (1 - tokens) / rate)));
}

/// A full bucket is not touched: one that idled for at least one interval therefore grants twice in a row.
void TokenBucket::refill_ticks(Instant now) {
  const std::int64_t tick = (now - created_).count() / fill_interval_ns_;
  if (available_ >= burst_) return;
  available_ = std::min<std::int64_t>(burst_, available_ + (tick - last_tick_) * quantum_);
  last_tick_ = tick;
}

bool TokenBucket::take_ticks(Instant now) {
  refill_ticks(now);
  if (available_ <= 0) return false;
  --available_;
  return true;
}

double TokenBucket::saturation(Instant now) {
  refill_ticks(now);
  return static_cast<double>(burst_ - available_) / static_cast<double>(burst_);
}

}  // namespace spillway
