// Assigns CPUs to a container: whole NUMA nodes and sockets first, then whole cores, then single threads; or the same
// number from several NUMA nodes. Thread: any (pure). Complexity: packed, cpus x units; spread, over the sets of NUMA
// nodes, of which there are few. Source: Kubernetes docs, "Control CPU Management Policies on the Node", static policy
// and its options; KEP-3570, KEP-2902.
#pragma once

#include "base/error.h"
#include "policy/admission/cpu_topology.h"

namespace spillway::admission {

/// `count` of the free CPUs. Whole units first: the larger of NUMA node and socket, then the smaller, then cores; of
/// units of one kind that with the fewest free CPUs, then the lowest number. kConflict: not that many are free.
Result<CpuSet> take_packed(const CpuTopology& topology, const CpuSet& free, int count);

/// Takes the same number from each of as few NUMA nodes as can hold them, in groups of `group` (1, or the threads of a
/// core); of several sets of nodes the one that leaves the free CPUs most even. CPUs that cannot be spread are packed.
Result<CpuSet> take_spread(const CpuTopology& topology, const CpuSet& free, int count, int group);

}  // namespace spillway::admission
