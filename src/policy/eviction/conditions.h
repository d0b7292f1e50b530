// Pressure conditions that a node reports: those of all thresholds met now, and those that were met less than the
// transition period ago, so that a node does not flap. Thread: any (plain values). Source: Kubernetes docs,
// "Node-pressure Eviction", node condition oscillation; spec "Eviction manager", 5 (steps 9, 10), 13.
#pragma once

#include "base/time.h"
#include "policy/eviction/threshold.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::eviction {

class ConditionSet {
 public:
  void insert(Condition condition) { held_[static_cast<std::size_t>(condition)] = true; }

  bool contains(Condition condition) const { return held_[static_cast<std::size_t>(condition)]; }

  bool empty() const { return *this == ConditionSet{}; }

  /// The conditions in the order of Condition.
  std::vector<Condition> list() const;

  friend bool operator==(const ConditionSet&, const ConditionSet&) = default;

 private:
  std::array<bool, kConditions.size()> held_{};
};

/// The conditions of the thresholds' signals, soft ones included from their first moment.
ConditionSet conditions_of(std::span<const Threshold> crossed);

/// The time at which each condition was last observed.
class ConditionClock {
 public:
  void observe(const ConditionSet& observed, Instant now);
  /// Conditions observed less than `transition_period` ago; with a period of zero none, even while observed.
  ConditionSet reported(Instant now, Duration transition_period) const;
  std::optional<Instant> last_seen(Condition condition) const;
  void restore(Condition condition, Instant seen);

 private:
  std::array<std::optional<Instant>, kConditions.size()> seen_;
};

/// The reason and message of a condition on the Node object. Source: spec "Eviction manager", 13.
struct ConditionText {
  std::string_view reason;
  std::string_view message;
  std::string_view event_reason;
};

enum class ConditionStatus { kFalse, kTrue };

ConditionText text_of(Condition condition, ConditionStatus status);

}  // namespace spillway::eviction
