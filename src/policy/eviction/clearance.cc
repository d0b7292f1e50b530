#include "policy/eviction/clearance.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <compare>

namespace spillway::eviction {
namespace {

std::partial_ordering compare_amounts(const Threshold& a, const Threshold& b, const Capacities& capacities) {
  const auto* share = std::get_if<Fraction>(&a.value);
  const auto* other_share = std::get_if<Fraction>(&b.value);
  if (share != nullptr && other_share != nullptr) return share->share <=> other_share->share;
  const auto capacity = capacities.find(a.signal);
  if ((share != nullptr || other_share != nullptr) && capacity == capacities.end()) {
    return std::partial_ordering::unordered;
  }
  const std::int64_t whole = capacity == capacities.end() ? 0 : capacity->second;
  const auto amount = amount_of(a.value, whole);
  const auto other = amount_of(b.value, whole);
  if (!amount || !other) return std::partial_ordering::unordered;
  return *amount <=> *other;
}

/// False for thresholds that are never reached: NaN, and an amount of zero.
bool can_act(const Threshold& threshold) {
  const auto* share = std::get_if<Fraction>(&threshold.value);
  return share == nullptr || share->share > 0;
}

enum class DiskPart { kNone, kBytes, kInodes };

DiskPart disk_part(Signal signal) {
  if (condition_of(signal) != Condition::kDiskPressure) return DiskPart::kNone;
  return to_string(signal).ends_with(".available") ? DiskPart::kBytes : DiskPart::kInodes;
}

/// True for two signals of the same resource, which run short together.
bool run_short_together(Signal a, Signal b) {
  return a == b || (disk_part(a) != DiskPart::kNone && disk_part(a) == disk_part(b));
}

bool acts_first(const Threshold& ours, const Threshold& theirs, const Capacities& capacities) {
  const std::partial_ordering amounts = compare_amounts(ours, theirs, capacities);
  if (theirs.is_hard()) return amounts > 0;
  if (ours.is_hard()) return true;
  return amounts >= 0 && ours.grace_period <= theirs.grace_period &&
         !(amounts == 0 && ours.grace_period == theirs.grace_period);
}

}  // namespace

std::optional<Overlap> find_overlap(std::span<const Threshold> ours, std::span<const Threshold> theirs,
                                    const Capacities& capacities) {
  for (const Threshold& mine : ours) {
    if (!can_act(mine)) continue;
    for (const Threshold& other : theirs) {
      if (!run_short_together(mine.signal, other.signal) || !can_act(other) || acts_first(mine, other, capacities))
        continue;
      return Overlap{mine, other};
    }
  }
  return std::nullopt;
}

std::string text_of(const Threshold& threshold) {
  std::string value;
  if (const auto* absolute = std::get_if<api::Quantity>(&threshold.value)) {
    value = absolute->to_string();
  } else {
    value = fmt::format("{:g}%", static_cast<double>(std::get<Fraction>(threshold.value).share * 100));
  }
  std::string text = fmt::format("{}<{}", to_string(threshold.signal), value);
  if (!threshold.is_hard()) text += " for " + api::format_duration(threshold.grace_period);
  return text;
}

}  // namespace spillway::eviction
