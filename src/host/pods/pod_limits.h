// Limits and weights of the cgroups of pods and of their classes, computed from the pods' requests.
// Thread: any (pure). Source: Kubernetes docs, "Resource Management for Pods and Containers", "Node Resource Managers";
// KEP-2570; spec "Node agent", 9.4; vectors kubelet-surface/cpu_weights, memory_qos, hugepage_limits.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/linux_resources.h"
#include "host/cgroup/cgroup_limits.h"

#include <span>

namespace spillway::host {

/// Swap of the cgroups above containers: their own limits bound it with swapBehavior LimitedSwap.
Swap swap_above_containers(const agent::ResourceFacts& facts);

/// The limits of a pod's cgroup. Sizes of huge pages that the pod does not request are forbidden to it.
CgroupLimits pod_limits(const agent::CreatePod& pod, const agent::ResourceFacts& facts);

/// The weight of the cgroup of a class of pods, kBurstable or kBestEffort, with MemoryQos its protected memory, and
/// with QosReserve its limit; for kGuaranteed those of the cgroup of all pods, whose weight follows from the node.
/// `pods`: all pods of the node.
CgroupLimits class_limits(api::QosClass qos, std::span<const agent::CreatePod* const> pods,
                          const agent::ResourceFacts& facts);

/// True if the container has CPUs or memory nodes that no other may have. It starts when their assignment is on the
/// disk, so that a process that follows a kill gives them to no other container.
bool owns_cpus_or_memory(const agent::StartContainer& command);

/// Raises a limit of memory to what the cgroup uses: with less the kernel would end processes (version 2) or refuse it.
/// True: it was raised, and should be tried again later.
bool spare_used_memory(const CgroupDir& cgroup, CgroupLimits& limits);

}  // namespace spillway::host
