// A node's allocatable, its reservations, and the limits of all pods together.
// Thread: any (pure). Source: Kubernetes docs, "Reserve Compute Resources for System Daemons"; spec "Node agent",
// 9.1-9.3; vectors node-agent/allocatable.
#pragma once

#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "api/object/pod.h"
#include "policy/eviction/threshold.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

/// "hugepages-2Mi".
std::string huge_page_resource(std::int64_t page_size_kib);

/// The configured maximum of pods, of the node and of each core, whichever is less.
std::int64_t pods_of(std::int64_t cpu_milli, std::int64_t pods_max, std::int64_t pods_per_core);

/// cpu, memory, huge pages, ephemeral-storage and pods.
api::ResourceList capacity_of(const MachineInfo& machine, const AgentOptions& options);

/// Hard memory.available and nodefs.available thresholds as amounts; the last one of a signal counts.
api::ResourceList hard_eviction_reservation(std::span<const eviction::Threshold> thresholds,
                                            const api::ResourceList& capacity);

/// The configured reservations.
struct Reserved {
  api::ResourceList system;
  api::ResourceList kube;
};

/// system + kube + hard eviction for each resource of the capacity; without zero amounts.
api::ResourceList reservation_of(const api::ResourceList& capacity, const Reserved& reserved,
                                 const api::ResourceList& hard_eviction);

/// capacity - reservation per resource of the capacity, not below zero.
api::ResourceList without_reservation(const api::ResourceList& capacity, const api::ResourceList& reservation);

/// Resources with more reserved than there is, in order of name.
std::vector<std::string> over_reserved(const api::ResourceList& capacity, const api::ResourceList& reservation);

/// The node's reservation. kInvalid: more of a resource is reserved than there is.
Result<api::ResourceList> node_reservation(const api::ResourceList& capacity, const AgentOptions& options,
                                           std::span<const eviction::Threshold> thresholds);

/// A list of resources ("pid" included) as limits of a cgroup.
GroupLimits group_limits(const api::ResourceList& resources);

/// The limits of all pods together: the capacity, less the reservations if enforceNodeAllocatable contains them. The
/// eviction threshold is not subtracted: pods may use it, and are evicted then.
GroupLimits limits_of_pods(const MachineInfo& machine, const AgentOptions& options);

/// Every limit that enforceNodeAllocatable requires, pods first.
std::vector<LimitGroup> enforced_limits(const MachineInfo& machine, const AgentOptions& options);

}  // namespace spillway::agent
