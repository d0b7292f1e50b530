#include "policy/workloads/surplus_rank.h"

#include "policy/workloads/pod_state.h"

#include <algorithm>

namespace spillway::workloads {

namespace {

int phase_rank(const api::Pod& pod) {
  if (pod.status.phase == "Running") return 2;
  return pod.status.phase == "Unknown" ? 1 : 0;
}

}  // namespace

std::strong_ordering operator<=>(const SurplusRank& a, const SurplusRank& b) {
  if (const auto c = a.bound <=> b.bound; c != 0) return c;
  if (const auto c = a.phase <=> b.phase; c != 0) return c;
  if (const auto c = a.ready <=> b.ready; c != 0) return c;
  if (const auto c = b.on_same_node <=> a.on_same_node; c != 0) return c;
  if (const auto c = b.ready_since <=> a.ready_since; c != 0) return c;
  if (const auto c = b.restarts <=> a.restarts; c != 0) return c;
  if (const auto c = b.created <=> a.created; c != 0) return c;
  return a.pod <=> b.pod;
}

SurplusRank surplus_rank(const api::Pod& pod, std::int64_t on_same_node) {
  SurplusRank rank;
  rank.bound = !pod.spec.node_name.empty();
  rank.phase = phase_rank(pod);
  rank.ready = is_ready(pod);
  rank.on_same_node = on_same_node;
  if (const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready"); rank.ready) {
    rank.ready_since = ready->last_transition_time.value_or(WallTime());
  }
  for (const api::ContainerStatus& container : pod.status.container_statuses) {
    rank.restarts = std::max<std::int64_t>(rank.restarts, container.restart_count);
  }
  rank.created = pod.metadata.creation_timestamp.value_or(WallTime());
  rank.pod = pod.key();
  return rank;
}

}  // namespace spillway::workloads
