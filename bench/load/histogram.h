// Latencies in buckets whose width is at most 1/64 of their value: exact counts, bounded memory, percentiles that do
// not depend on how many were recorded. Thread: one at a time. Source: the idea of HdrHistogram.
#pragma once

#include "base/time.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace spillway::load {

class Histogram {
 public:
  /// Below zero counts as zero.
  void record(Duration latency);

  std::uint64_t count() const { return count_; }

  Duration max() const { return max_; }

  /// The latency that `share` (0 to 1) of the recorded ones do not exceed, rounded up by at most 1/64; zero if there is
  /// none.
  Duration percentile(double share) const;

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::size_t kSub = std::size_t{1} << kSubBits;
  static constexpr unsigned kExponents = 40;  // powers of two of microseconds: 12 days

  static std::size_t bucket_of(std::uint64_t microseconds);
  static std::uint64_t upper_bound(std::size_t bucket);

  std::array<std::uint64_t, kSub*(kExponents + 1)> buckets_{};
  std::uint64_t count_ = 0;
  Duration max_{};
};

}  // namespace spillway::load
