#include "policy/lifecycle/pod_marking.h"

namespace spillway::lifecycle {

PodReadyStep plan_pod_not_ready(const api::Pod& pod, bool skip_false) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  if (ready == nullptr) return PodReadyStep::kSkip;
  return skip_false && ready->status == "False" ? PodReadyStep::kSkip : PodReadyStep::kWrite;
}

}  // namespace spillway::lifecycle
