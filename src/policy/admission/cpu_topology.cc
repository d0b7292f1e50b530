#include "policy/admission/cpu_topology.h"

#include <algorithm>

namespace spillway::admission {

int CpuPlace::at(CpuLevel level) const {
  switch (level) {
    case CpuLevel::kNuma:
      return numa;
    case CpuLevel::kSocket:
      return socket;
    case CpuLevel::kCore:
      return core;
  }
  return 0;
}

CpuSet CpuTopology::all() const {
  CpuSet cpus;
  for (const auto& [cpu, place] : places) cpus.add(cpu);
  return cpus;
}

CpuSet CpuTopology::cpus_in(CpuLevel level, int id) const {
  CpuSet cpus;
  for (const auto& [cpu, place] : places) {
    if (place.at(level) == id) cpus.add(cpu);
  }
  return cpus;
}

std::set<int> CpuTopology::ids(CpuLevel level, const CpuSet& cpus) const {
  std::set<int> found;
  for (const int cpu : cpus) {
    if (const auto it = places.find(cpu); it != places.end()) found.insert(it->second.at(level));
  }
  return found;
}

int CpuTopology::cpus_per_core() const {
  const auto cores = static_cast<int>(ids(CpuLevel::kCore, all()).size());
  return cores == 0 ? 1 : std::max(1, static_cast<int>(places.size()) / cores);
}

}  // namespace spillway::admission
