// Settings of a pod's cgroup and processes: limits, CPU shares, out-of-memory score. Thread: any (pure). Source:
// Kubernetes docs, "Assign CPU/Memory Resources", "Node Out Of Memory Behavior"; spec "Node agent", 9.5.
#pragma once

#include "agent/contract/ports.h"
#include "api/object/pod.h"
#include "base/bytes.h"

#include <cstdint>
#include <optional>

namespace spillway::agent {

/// True if the pod has addresses of its own: the runtime attaches it to a network. Such a pod has a sandbox.
bool has_pod_network(const api::Pod& pod, const MachineInfo& machine);

PodIsolation isolation_of(const api::Pod& pod, const MachineInfo& machine, const std::string& cluster_domain = {});
/// A pod limit exists if the pod level or every container has one.
CreatePod create_pod_command(const api::Pod& pod);

struct ContainerLimits {
  std::optional<Bytes> memory_limit;
  std::optional<std::int64_t> cpu_limit_milli;
  std::int64_t cpu_request_milli = 0;

  friend bool operator==(const ContainerLimits&, const ContainerLimits&) = default;
};

/// A limit that the container does not state is that of the pod level.
ContainerLimits limits_of(const api::PodSpec& spec, const api::Container& container);

/// -997 for node-critical and guaranteed pods, 1000 for best-effort ones; in between, the larger the memory request,
/// the lower. A sidecar is at most as eager as the least eager regular container. Of a memory request of the pod level,
/// each container counts an equal part of what the containers leave of it; where they request more than the pod, which
/// the API server refuses, that part is negative and the score may exceed 1000.
std::int32_t oom_score_adj(const api::Pod& pod, const api::Container& container, Bytes node_memory);

}  // namespace spillway::agent
