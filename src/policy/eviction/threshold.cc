#include "policy/eviction/threshold.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spillway::eviction {
namespace {

/// Converts as x86 does, and upstream with it: a double that does not fit becomes the least integer.
std::int64_t truncate(double amount) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(amount >= -kLimit && amount < kLimit)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(amount);
}

}  // namespace

std::optional<api::Quantity> amount_of(const ThresholdValue& value, std::int64_t capacity) {
  if (const auto* absolute = std::get_if<api::Quantity>(&value)) return *absolute;
  const float share = std::get<Fraction>(value).share;
  if (std::isnan(share)) return std::nullopt;
  const double amount = static_cast<double>(capacity) * static_cast<double>(share);
  return api::Quantity::of_bytes(Bytes{truncate(amount)});
}

bool is_met(const Threshold& threshold, const Observations& seen, Reclaim reclaim) {
  const std::optional<Observation>& observation = seen[threshold.signal];
  if (!observation) return false;
  std::optional<api::Quantity> limit = amount_of(threshold.value, observation->capacity);
  if (!limit) return false;
  if (reclaim == Reclaim::kWithMinimum && threshold.min_reclaim) {
    const std::optional<api::Quantity> more = amount_of(*threshold.min_reclaim, observation->capacity);
    if (!more) return false;
    *limit += *more;
  }
  return *limit > api::Quantity::of_units(observation->available);
}

std::vector<Threshold> thresholds_met(std::span<const Threshold> thresholds, const Observations& seen,
                                      Reclaim reclaim) {
  std::vector<Threshold> crossed;
  std::ranges::copy_if(thresholds, std::back_inserter(crossed),
                       [&](const Threshold& threshold) { return is_met(threshold, seen, reclaim); });
  return crossed;
}

bool same_threshold(const Threshold& a, const Threshold& b) {
  return a.signal == b.signal && a.grace_period == b.grace_period && a.value == b.value;
}

bool contains(std::span<const Threshold> thresholds, const Threshold& wanted) {
  return std::ranges::any_of(thresholds, [&](const Threshold& each) { return same_threshold(each, wanted); });
}

std::vector<Threshold> merge_thresholds(std::vector<Threshold> a, std::span<const Threshold> b) {
  for (const Threshold& each : b) {
    if (!contains(a, each)) a.push_back(each);
  }
  return a;
}

std::strong_ordering urgency(const Threshold& a, const Threshold& b, const Observations& seen) {
  if (const auto c = is_memory(b.signal) <=> is_memory(a.signal); c != 0) return c;
  if (const auto c = b.is_hard() <=> a.is_hard(); c != 0) return c;
  if (const auto c = a.signal <=> b.signal; c != 0) return c;
  const std::int64_t capacity = seen[a.signal] ? seen[a.signal]->capacity : 0;
  const std::optional<api::Quantity> first = amount_of(a.value, capacity);
  const std::optional<api::Quantity> second = amount_of(b.value, capacity);
  if (!first || !second) return second.has_value() <=> first.has_value();
  if (const auto c = *second <=> *first; c != 0) return c;
  return a.grace_period <=> b.grace_period;
}

}  // namespace spillway::eviction
