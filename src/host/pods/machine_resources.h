// Facts about this machine that limits of containers follow from: swap and huge pages.
// Thread: any; reads files of the kernel. Source: kernel documents "hugetlbpage.rst", "cgroup-v2.rst".
#pragma once

#include "agent/cri/linux_resources.h"
#include "host/cgroup/cgroup.h"

namespace spillway::host {

/// Swap of the machine, the controller of swap at the cgroup of all pods, and the page sizes. What cannot be read is as
/// on a machine without it.
void read_machine_resources(const CgroupDir& kubepods, agent::ResourceFacts& facts);

}  // namespace spillway::host
