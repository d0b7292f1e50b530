#include "policy/workloads/pod_state.h"

namespace spillway::workloads {

bool is_active(const api::Pod& pod) {
  return !api::is_terminal(pod) && !pod.metadata.deletion_timestamp;
}

bool is_ready(const api::Pod& pod) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  return ready != nullptr && ready->status == "True";
}

}  // namespace spillway::workloads
