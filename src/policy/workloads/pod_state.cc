#include "policy/workloads/pod_state.h"

#include <algorithm>

namespace spillway::workloads {

bool is_active(const api::Pod& pod) {
  return !api::is_terminal(pod) && !pod.metadata.deletion_timestamp;
}

bool is_ready(const api::Pod& pod) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  return ready != nullptr && ready->status == "True";
}

bool was_evicted(const api::Pod& pod) {
  return pod.status.phase == "Failed" && pod.status.reason == "Evicted" && !pod.spec.node_name.empty();
}

std::optional<Duration> until_available(const api::Pod& pod, std::int32_t min_ready_seconds, WallTime now) {
  if (!is_ready(pod)) return std::nullopt;
  if (min_ready_seconds <= 0) return Duration::zero();
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  if (ready == nullptr || !ready->last_transition_time) return std::nullopt;
  return std::max<Duration>(*ready->last_transition_time + seconds(min_ready_seconds) - now, Duration::zero());
}

}  // namespace spillway::workloads
