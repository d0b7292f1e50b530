// What of a node's capacity pods may request, and what stays reserved.
// Thread: any (pure). Source: Kubernetes docs, "Reserve Compute Resources for System Daemons"; spec "Node agent", 9;
// vectors node-agent/allocatable.
#pragma once

#include "agent/options.h"
#include "agent/ports.h"
#include "api/pod.h"
#include "policy/eviction/threshold.h"

#include <span>

namespace spillway::agent {

/// cpu, memory, ephemeral-storage and pods.
api::ResourceList capacity_of(const MachineInfo& machine, std::int64_t pods_max);

/// Hard memory.available and nodefs.available thresholds as amounts; the last one of a signal counts.
api::ResourceList hard_eviction_reservation(std::span<const eviction::Threshold> thresholds,
                                            const api::ResourceList& capacity);

/// capacity - system - kube - hard eviction, per resource, not below zero. kInvalid: more is reserved than there is.
Result<api::ResourceList> allocatable_of(const api::ResourceList& capacity, const AgentOptions& options,
                                         std::span<const eviction::Threshold> thresholds);

}  // namespace spillway::agent
