#include "policy/eviction/conditions.h"

#include "base/check.h"

namespace spillway::eviction {

std::vector<Condition> ConditionSet::list() const {
  std::vector<Condition> held;
  for (const Condition condition : kConditions) {
    if (contains(condition)) held.push_back(condition);
  }
  return held;
}

ConditionSet conditions_of(std::span<const Threshold> crossed) {
  ConditionSet observed;
  for (const Threshold& threshold : crossed) observed.insert(condition_of(threshold.signal));
  return observed;
}

void ConditionClock::observe(const ConditionSet& observed, Instant now) {
  for (const Condition condition : observed.list()) restore(condition, now);
}

void ConditionClock::restore(Condition condition, Instant seen) {
  seen_[static_cast<std::size_t>(condition)] = seen;
}

std::optional<Instant> ConditionClock::last_seen(Condition condition) const {
  return seen_[static_cast<std::size_t>(condition)];
}

ConditionSet ConditionClock::reported(Instant now, Duration transition_period) const {
  ConditionSet reported;
  for (const Condition condition : kConditions) {
    const std::optional<Instant> seen = last_seen(condition);
    if (seen && now - *seen < transition_period) reported.insert(condition);
  }
  return reported;
}

ConditionText text_of(Condition condition, ConditionStatus status) {
  const bool held = status == ConditionStatus::kTrue;
  switch (condition) {
    case Condition::kMemoryPressure:
      return held ? ConditionText{"KubeletHasInsufficientMemory", "kubelet has insufficient memory available",
                                  "NodeHasInsufficientMemory"}
                  : ConditionText{"KubeletHasSufficientMemory", "kubelet has sufficient memory available",
                                  "NodeHasSufficientMemory"};
    case Condition::kDiskPressure:
      return held ? ConditionText{"KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"}
                  : ConditionText{"KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"};
    case Condition::kPidPressure:
      return held ? ConditionText{"KubeletHasInsufficientPID", "kubelet has insufficient PID available",
                                  "NodeHasInsufficientPID"}
                  : ConditionText{"KubeletHasSufficientPID", "kubelet has sufficient PID available",
                                  "NodeHasSufficientPID"};
  }
  check_failed("Condition in range", __FILE__, __LINE__);
}

}  // namespace spillway::eviction
