// Selects dead containers, idle sandboxes and logs of deleted pods for removal, in order. Thread: any (pure). Source:
// Kubernetes docs, "Garbage Collection", containers and images; spec "Node agent", 18; vectors node-agent/container_gc.
#pragma once

#include "agent/contract/remains_ports.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

struct ContainerGcPolicy {
  Duration min_age{};                      // time since the container was created; younger ones are kept
  std::int64_t max_per_pod_container = 1;  // dead ones kept of each container of a pod; negative: all
  std::int64_t max_containers = -1;        // dead ones kept on the node; negative: all
};

struct ContainerOnNode {
  std::string id;
  std::string pod_uid;
  std::string name;
  std::string sandbox;
  RuntimeState state = RuntimeState::kExited;
  Instant created;
};

struct SandboxOnNode {
  std::string id;
  std::string pod_uid;
  bool ready = false;
  Instant created;
};

struct ContainerGcScope {
  std::function<PodRemains(std::string_view uid)> remains;
  /// True once all sources of pods have reported. Until then no pod counts as gone.
  bool sources_ready = false;
  /// True: kRuntime is removed too, as under pressure.
  bool ended_pods = false;
};

/// `containers` in the runtime's order. Oldest first within a container of a pod.
std::vector<ContainerRemoval> plan_container_gc(const ContainerGcPolicy& policy, const ContainerGcScope& scope,
                                                const std::vector<ContainerOnNode>& containers, Instant now);

/// `containers`: those that are left after the removals. Removes sandboxes that are not ready and hold no container:
/// all sandboxes of a pod that may be removed, else all but the newest.
std::vector<std::string> plan_sandbox_gc(const ContainerGcScope& scope, const std::vector<SandboxOnNode>& sandboxes,
                                         const std::vector<ContainerOnNode>& containers);

/// The directories, called <namespace>_<pod>_<uid>, whose pod may be removed.
std::vector<std::string> plan_log_gc(const ContainerGcScope& scope, const std::vector<std::string>& directories);

}  // namespace spillway::agent
