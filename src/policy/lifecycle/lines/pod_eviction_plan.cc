#include "policy/lifecycle/lines/pod_eviction_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::lifecycle {
namespace {

bool is_daemon_pod(const api::Pod& pod, std::span<const api::DaemonSet* const> daemon_sets) {
  if (pod.metadata.labels.empty()) return false;
  return std::ranges::any_of(daemon_sets, [&](const api::DaemonSet* set) {
    return set->metadata.ns == pod.metadata.ns && !set->selector.is_everything() &&
           set->selector.matches(pod.metadata.labels);
  });
}

}  // namespace

PodEvictionStep plan_pod_eviction(const api::Pod& pod, std::string_view node,
                                  std::span<const api::DaemonSet* const> daemon_sets) {
  if (pod.spec.node_name != node) return {};
  const bool terminating = pod.metadata.deletion_grace_period_seconds.has_value();
  const bool deleted = !terminating && !is_daemon_pod(pod, daemon_sets);
  return {.set_node_lost = pod.status.reason != "NodeLost", .delete_pod = deleted, .remains = terminating || deleted};
}

std::string node_lost_message(std::string_view node, std::string_view pod) {
  return fmt::format("Node {} which was running pod {} is unresponsive", node, pod);
}

}  // namespace spillway::lifecycle
