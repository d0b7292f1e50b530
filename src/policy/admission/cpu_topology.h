// The core, socket and NUMA node of each CPU, and the memory of each NUMA node. Thread: any (plain values). Invariant:
// core numbers are unique in the machine. Source: kernel documents "ABI/stable/sysfs-devices-system-cpu",
// "ABI/stable/sysfs-devices-node".
#pragma once

#include "policy/admission/cpu_set.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::admission {

enum class CpuLevel { kNuma, kSocket, kCore };

struct CpuPlace {
  int core = 0;  // the lowest CPU of the core
  int socket = 0;
  int numa = 0;

  int at(CpuLevel level) const;

  friend bool operator==(const CpuPlace&, const CpuPlace&) = default;
};

struct CpuTopology {
  std::map<int, CpuPlace> places;  // by CPU; online CPUs only

  CpuSet all() const;
  /// The CPUs of the core, socket or node with this id.
  CpuSet cpus_in(CpuLevel level, int id) const;
  /// Cores, sockets or nodes that these CPUs are in.
  std::set<int> ids(CpuLevel level, const CpuSet& cpus) const;
  /// CPUs divided by cores, over the whole machine: 1 without hyper-threads; at least 1.
  int cpus_per_core() const;

  friend bool operator==(const CpuTopology&, const CpuTopology&) = default;
};

/// Memory of one NUMA node, in bytes by resource: "memory", "hugepages-2Mi".
using NumaMemory = std::map<std::string, std::int64_t, std::less<>>;

/// NUMA nodes of a machine. Empty: the machine counts as one node without known properties.
struct NumaLayout {
  std::map<int, NumaMemory> memory;                                  // by node
  std::optional<std::vector<std::vector<std::uint64_t>>> distances;  // rows by node; absent: unknown

  friend bool operator==(const NumaLayout&, const NumaLayout&) = default;
};

}  // namespace spillway::admission
