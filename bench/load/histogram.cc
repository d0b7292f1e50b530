#include "load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace spillway::load {

std::size_t Histogram::bucket_of(std::uint64_t microseconds) {
  if (microseconds < kSub) return static_cast<std::size_t>(microseconds);
  const auto exponent = static_cast<unsigned>(std::bit_width(microseconds)) - kSubBits - 1;
  if (exponent >= kExponents) return kSub * (kExponents + 1) - 1;
  return kSub * exponent + static_cast<std::size_t>(microseconds >> exponent);
}

std::uint64_t Histogram::upper_bound(std::size_t bucket) {
  if (bucket < kSub) return bucket;
  const std::size_t exponent = bucket / kSub - 1;
  return ((static_cast<std::uint64_t>(bucket - kSub * exponent) + 1) << exponent) - 1;
}

void Histogram::record(Duration latency) {
  latency = std::max(latency, Duration::zero());
  ++buckets_[bucket_of(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(latency).count()))];
  ++count_;
  max_ = std::max(max_, latency);
}

Duration Histogram::percentile(double share) const {
  if (count_ == 0) return {};
  const auto rank =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) {
      return std::min(max_, Duration(std::chrono::microseconds(static_cast<std::int64_t>(upper_bound(bucket)))));
    }
  }
  return max_;
}

}  // namespace spillway::load
