// The cgroups of a pod whose resources change while it runs: reads what they use, writes their limits.
// Thread: loop. Source: KEP-1287; kernel documents "cgroup-v2.rst", "cgroup-v1/memory.rst";
// policy/containers/pod_resize.h.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/linux_resources.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_limits.h"
#include "policy/containers/pod_resize.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::host {

/// The cgroup of the container of that name, or of the pod (empty); null: there is none.
using ResizedGroup = std::function<const CgroupDir*(const std::string& container)>;

/// Why memory limits cannot be lowered now; nullopt: they can. A cgroup whose use cannot be read hinders nothing.
std::optional<std::string> refuse_resize(std::span<const containers::ResizeStep> steps, const ResizedGroup& group_of);

/// The limits that one step writes. `swap`: swap limits, for a cgroup whose memory limit changes.
CgroupLimits step_limits(const containers::ResizeStep& step, const agent::ResourceFacts& facts, Swap swap);

/// The writes that lead from the limits that the cgroups have now to those of the command, in an order that the kernel
/// accepts. Where the limits cannot be read, the command's `before` stands for them.
std::vector<containers::ResizeStep> steps_from_present(const agent::ResizePod& command, const ResizedGroup& group_of,
                                                       const agent::ResourceFacts& facts);

/// Checks and makes all steps; the first problem ends it. Steps without a cgroup are left out.
Outcome resize_groups(const agent::ResizePod& command, const ResizedGroup& group_of, const agent::ResourceFacts& facts);

}  // namespace spillway::host
