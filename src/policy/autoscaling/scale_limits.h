// Limits the growth and shrinking of a target: recent recommendations delay a change, and policies bound it. The
// history is kept in memory, as upstream keeps it: after a restart it begins with the present replicas. Thread: any
// (pure). Bounds: a history reaches back over its windows, kHistoryMax entries at most. Source: Kubernetes docs,
// "Horizontal Pod Autoscaling", configurable scaling behavior; spec "Scheduler and workloads", 20; vectors
// workloads/hpa_replicas.
#pragma once

#include "base/time.h"
#include "policy/autoscaling/settings.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::autoscaling {

inline constexpr std::size_t kHistoryMax = 1024;

/// A number of replicas, recommended or added or removed, and the time.
struct Moment {
  std::int32_t replicas = 0;
  Instant at;
};

struct History {
  std::deque<Moment> recommendations;
  std::deque<Moment> ups;    // recent increases
  std::deque<Moment> downs;  // recent decreases
};

struct ScalingPolicy {
  bool percent = false;  // else a number of pods
  std::int32_t value = 0;
  Duration period{};
};

enum class PolicyChoice { kMax, kMin, kDisabled };

struct ScalingRules {
  std::vector<ScalingPolicy> policies;
  PolicyChoice choice = PolicyChoice::kMax;  // the policy that applies: the one that allows most, or least
  Duration window{};
};

struct Behavior {
  ScalingRules up;
  ScalingRules down;
};

struct ReplicaRange {
  std::int32_t current = 0;
  std::int32_t min = 1;
  std::int32_t max = 1;
};

/// A number of replicas, and the condition that explains it.
struct Bounded {
  std::int32_t replicas = 0;
  std::string_view reason;
  std::string_view message;
};

/// The highest of the window.
Bounded stabilize(const std::deque<Moment>& recommendations, std::int32_t desired, Duration window, Instant now);
/// The size not below the lowest in the window of growth, not above the highest in that of shrinking, else the current
/// one.
Bounded stabilize(const std::deque<Moment>& recommendations, std::int32_t current, std::int32_t desired,
                  const Behavior& behavior, Instant now);
/// Limits the number to the range, and to twice the present number (at least four).
Bounded limit(const ReplicaRange& range, std::int32_t desired);
/// Within the range, and by as much as the policies allow.
Bounded limit(const ReplicaRange& range, std::int32_t desired, const Behavior& behavior, const History& history,
              Instant now);

/// Records a recommendation, or a change that was carried out, and drops entries that no window reaches any more.
/// `longest`: the longest of all windows and periods.
void remember(std::deque<Moment>& moments, std::int32_t replicas, Duration longest, Instant now);
/// The longest window or period of both rules.
Duration longest_memory(const std::optional<Behavior>& behavior, Duration down_stabilization);

}  // namespace spillway::autoscaling
