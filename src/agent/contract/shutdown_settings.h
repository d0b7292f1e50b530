// The grace of pods when the node shuts down: for all together, or by their priority.
// Thread: any (plain values). Source: Kubernetes docs, "Node Shutdowns"; KEP-2000, KEP-2712.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::agent {

struct PriorityGrace {
  std::int32_t priority = 0;
  std::int64_t grace_seconds = 0;

  friend bool operator==(const PriorityGrace&, const PriorityGrace&) = default;
};

struct ShutdownSettings {
  std::int64_t grace_seconds = 0;
  std::int64_t critical_grace_seconds = 0;  // the part of `grace_seconds` for critical pods
  std::vector<PriorityGrace> by_priority;   // if not empty, the two above do not count
};

}  // namespace spillway::agent
