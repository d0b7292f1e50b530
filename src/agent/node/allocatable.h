// What of a node's capacity pods may request, what stays reserved, and the limits of all pods together.
// Thread: any (pure). Source: Kubernetes docs, "Reserve Compute Resources for System Daemons"; spec "Node
// agent", 9.1-9.3; vectors node-agent/allocatable.
#pragma once

#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "api/pod.h"
#include "policy/eviction/threshold.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

/// cpu, memory, ephemeral-storage and pods.
api::ResourceList capacity_of(const MachineInfo& machine, std::int64_t pods_max);

/// Hard memory.available and nodefs.available thresholds as amounts; the last one of a signal counts.
api::ResourceList hard_eviction_reservation(std::span<const eviction::Threshold> thresholds,
                                            const api::ResourceList& capacity);

/// What the configuration keeps from pods.
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

/// `allocatable`: internal capacity ("pid" included) without system and kube reservations.
KubepodsLimits kubepods_limits(const api::ResourceList& allocatable);

/// The same for a machine as it is configured; nullopt: pods are not to be limited (enforceNodeAllocatable).
std::optional<KubepodsLimits> kubepods_limits_of(const MachineInfo& machine, const AgentOptions& options);

}  // namespace spillway::agent
