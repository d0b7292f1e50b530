#include "policy/autoscaling/scale_limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spillway::autoscaling {

namespace {

constexpr std::string_view kReady = "ReadyForNewScale";
constexpr std::string_view kReadyMessage = "recommended size matches current size";
constexpr std::string_view kHigher =
    "recent recommendations were higher than current one, applying the highest recent recommendation";
constexpr std::string_view kLower =
    "recent recommendations were lower than current one, applying the lowest recent recommendation";
constexpr Bounded kTooFew{0, "TooFewReplicas", "the desired replica count is less than the minimum replica count"};
constexpr Bounded kTooMany{0, "TooManyReplicas", "the desired replica count is more than the maximum replica count"};
constexpr Bounded kTooFastUp{0, "ScaleUpLimit",
                             "the desired replica count is increasing faster than the maximum scale rate"};
constexpr Bounded kTooFastDown{0, "ScaleDownLimit",
                               "the desired replica count is decreasing faster than the maximum scale rate"};

constexpr std::int32_t kFreeGrowth = 4;  // replicas that any target may grow to at once

Bounded at(Bounded why, std::int32_t replicas) {
  why.replicas = replicas;
  return why;
}

Bounded within(std::int32_t replicas) {
  return {replicas, "DesiredWithinRange", "the desired count is within the acceptable range"};
}

std::int32_t clamped(double replicas) {
  return static_cast<std::int32_t>(std::clamp(replicas, static_cast<double>(std::numeric_limits<std::int32_t>::min()),
                                              static_cast<double>(std::numeric_limits<std::int32_t>::max())));
}

std::int64_t sum_since(const std::deque<Moment>& moments, Duration period, Instant now) {
  std::int64_t sum = 0;
  for (const Moment& moment : moments) {
    if (moment.at > now - period) sum += moment.replicas;
  }
  return sum;
}

enum class Direction { kUp, kDown };

/// The bound that one policy sets. A share is rounded so that growth always progresses, and shrinking never exceeds it.
std::int32_t allowed_by(const ScalingPolicy& policy, Direction direction, std::int32_t current, const History& history,
                        Instant now) {
  const auto begin = static_cast<double>(current - sum_since(history.ups, policy.period, now) +
                                         sum_since(history.downs, policy.period, now));
  const double sign = direction == Direction::kUp ? 1 : -1;
  if (!policy.percent) return clamped(begin + sign * policy.value);
  const double replicas = begin * (1 + sign * static_cast<double>(policy.value) / 100);
  return clamped(direction == Direction::kUp ? std::ceil(replicas) : std::trunc(replicas));
}

/// The number that the target may grow or shrink to.
std::int32_t allowed(const ScalingRules& rules, Direction direction, std::int32_t current, const History& history,
                     Instant now) {
  if (rules.choice == PolicyChoice::kDisabled) return current;
  const bool highest = (rules.choice == PolicyChoice::kMax) == (direction == Direction::kUp);
  std::optional<std::int32_t> chosen;
  for (const ScalingPolicy& policy : rules.policies) {
    const std::int32_t each = allowed_by(policy, direction, current, history, now);
    if (!chosen || (highest ? each > *chosen : each < *chosen)) chosen = each;
  }
  return chosen.value_or(current);
}

}  // namespace

Bounded stabilize(const std::deque<Moment>& recommendations, std::int32_t desired, Duration window, Instant now) {
  std::int32_t highest = desired;
  for (const Moment& moment : recommendations) {
    if (moment.at >= now - window) highest = std::max(highest, moment.replicas);
  }
  if (highest == desired) return {desired, kReady, kReadyMessage};
  return {highest, "ScaleDownStabilized", kHigher};
}

Bounded stabilize(const std::deque<Moment>& recommendations, std::int32_t current, std::int32_t desired,
                  const Behavior& behavior, Instant now) {
  std::int32_t lowest = desired;
  std::int32_t highest = desired;
  for (const Moment& moment : recommendations) {
    if (moment.at > now - behavior.up.window) lowest = std::min(lowest, moment.replicas);
    if (moment.at > now - behavior.down.window) highest = std::max(highest, moment.replicas);
  }
  const std::int32_t replicas = std::min(std::max(current, lowest), highest);
  if (replicas == desired) return {desired, kReady, kReadyMessage};
  return desired >= current ? Bounded{replicas, "ScaleUpStabilized", kLower}
                            : Bounded{replicas, "ScaleDownStabilized", kHigher};
}

Bounded limit(const ReplicaRange& range, std::int32_t desired) {
  const std::int32_t fast = std::max(clamped(2.0 * range.current), kFreeGrowth);
  if (desired < range.min) return at(kTooFew, range.min);
  if (range.max > fast && desired > fast) return at(kTooFastUp, fast);
  if (range.max <= fast && desired > range.max) return at(kTooMany, range.max);
  return within(desired);
}

Bounded limit(const ReplicaRange& range, std::int32_t desired, const Behavior& behavior, const History& history,
              Instant now) {
  if (desired > range.current) {
    const std::int32_t fast =
        std::max(allowed(behavior.up, Direction::kUp, range.current, history, now), range.current);
    if (range.max > fast && desired > fast) return at(kTooFastUp, fast);
    if (range.max <= fast && desired > range.max) return at(kTooMany, range.max);
  }
  if (desired < range.current) {
    const std::int32_t fast =
        std::min(allowed(behavior.down, Direction::kDown, range.current, history, now), range.current);
    if (range.min < fast && desired < fast) return at(kTooFastDown, fast);
    if (range.min >= fast && desired < range.min) return at(kTooFew, range.min);
  }
  return within(desired);
}

void remember(std::deque<Moment>& moments, std::int32_t replicas, Duration longest, Instant now) {
  std::erase_if(moments, [&](const Moment& moment) { return moment.at < now - longest; });
  if (moments.size() >= kHistoryMax) moments.pop_front();
  moments.push_back({replicas, now});
}

Duration longest_memory(const std::optional<Behavior>& behavior, Duration down_stabilization) {
  Duration longest = down_stabilization;
  if (!behavior) return longest;
  for (const ScalingRules* rules : {&behavior->up, &behavior->down}) {
    longest = std::max(longest, rules->window);
    for (const ScalingPolicy& policy : rules->policies) longest = std::max(longest, policy.period);
  }
  return longest;
}

}  // namespace spillway::autoscaling
