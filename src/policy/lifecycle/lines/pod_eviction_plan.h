// Eviction by pod-eviction-timeout: the steps for each pod of a node that is being evicted.
// Thread: any (pure functions). Source: spec "Node lifecycle", S8.2, S10; vectors lifecycle/legacy_eviction.
#pragma once

#include "api/object/pod.h"
#include "api/object/workload.h"

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

}  // namespace spillway::lifecycle
