// Eviction by pod-eviction-timeout: what happens to each pod of a node that is being evicted.
// Thread: any (pure functions). Source: spec "Node lifecycle", S5.7, S8.2, S10; vectors lifecycle/legacy_eviction.
#pragma once

#include "api/object/pod.h"
#include "api/object/workload.h"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace spillway::lifecycle {

struct PodEvictionStep {
  bool set_node_lost = false;  // write status.reason NodeLost first; a conflict there ends the attempt
  bool delete_pod = false;
  bool remains = false;  // the pod exists until its kubelet ends it: it is being deleted, or about to be
};

/// Terminating pods and pods of a DaemonSet of their namespace are not deleted; a pod of another node is left alone.
PodEvictionStep plan_pod_eviction(const api::Pod& pod, std::string_view node,
                                  std::span<const api::DaemonSet* const> daemon_sets);

/// "Node n1 which was running pod web-1 is unresponsive".
std::string node_lost_message(std::string_view node, std::string_view pod);

/// The step for the Ready condition of a pod whose node is not ready.
enum class PodReadyStep { kSkip, kWrite };

/// kSkip: the pod has no Ready condition, or it is False already and `skip_false` is set.
PodReadyStep plan_pod_not_ready(const api::Pod& pod, bool skip_false);

/// 1.7: a kubelet older than `minimum`, or of a version that does not parse as semantic version.
bool is_outdated_kubelet(std::string_view version, const std::array<int, 3>& minimum);

inline constexpr std::array<int, 3> kKubeletMarksPods = {1, 2, 0};
inline constexpr std::array<int, 3> kKubeletDeletesGracefully = {1, 1, 0};

}  // namespace spillway::lifecycle
