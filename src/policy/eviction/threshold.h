// A threshold: when a signal counts as under pressure, for how long that must hold, and how much more to free.
// Thread: any (plain values). Invariant: hard if and only if the grace period is zero.
// Source: Kubernetes docs, "Node-pressure Eviction", eviction thresholds; spec "Eviction manager", 3, 4, 5.1.
#pragma once

#include "api/text/quantity.h"
#include "base/time.h"
#include "policy/eviction/signal.h"

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace spillway::eviction {

/// A share of the capacity: 0.1 is 10 %. Single precision, because upstream's rounding shows in the results; may be NaN
/// ("NaN%" is accepted), which no availability is ever below.
struct Fraction {
  float share = 0;

  friend bool operator==(const Fraction&, const Fraction&) = default;
};

using ThresholdValue = std::variant<api::Quantity, Fraction>;

struct Threshold {
  Signal signal{};
  ThresholdValue value;
  Duration grace_period{};
  std::optional<ThresholdValue> min_reclaim;

  bool is_hard() const { return grace_period == Duration{}; }

  friend bool operator==(const Threshold&, const Threshold&) = default;
};

/// Computes the amount of a value at a capacity: an absolute value is itself, a share is cut to a whole number. nullopt
/// for a NaN share. The only place where percentages are converted to amounts.
std::optional<api::Quantity> amount_of(const ThresholdValue& value, std::int64_t capacity);

enum class Reclaim { kWithout, kWithMinimum };

/// True if the observation is below the threshold; equal is not. False without an observation.
bool is_met(const Threshold& threshold, const Observations& seen, Reclaim reclaim);

/// The reached thresholds, in the given order.
std::vector<Threshold> thresholds_met(std::span<const Threshold> thresholds, const Observations& seen, Reclaim reclaim);

/// Equal signal, grace and value; the minimum reclaim is not compared. An absolute value never equals a share.
bool same_threshold(const Threshold& a, const Threshold& b);
bool contains(std::span<const Threshold> thresholds, const Threshold& wanted);

/// The thresholds of `a`, then those of `b` that `a` does not replace.
std::vector<Threshold> merge_thresholds(std::vector<Threshold> a, std::span<const Threshold> b);

/// Orders met thresholds by urgency: memory before anything, hard before soft, then the order of signals, then the
/// larger amount at the observed capacity. Source: spec "Eviction manager", 5.1 (upstream leaves most of it open).
std::strong_ordering urgency(const Threshold& a, const Threshold& b, const Observations& seen);

}  // namespace spillway::eviction
