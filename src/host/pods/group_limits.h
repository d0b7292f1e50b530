// Limits of the cgroup of all pods and of the cgroups of daemons, as LimitGroup commands them. Thread: loop.
// Source: agent/contract/ports.h, LimitGroup; Kubernetes docs, "Reserve Compute Resources for System Daemons".
#pragma once

#include "agent/contract/ports.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cgroup/node_slice.h"

namespace spillway::host {

/// The limits of a command for any group.
CgroupLimits group_limits(const agent::LimitGroup& command);

/// Limits the cgroup that a command names, anywhere below the root of the machine's hierarchy.
agent::GroupLimited limit_reserved_group(const NodeSlice& slice, const agent::LimitGroup& command);

}  // namespace spillway::host
