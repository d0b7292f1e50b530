// The order in which surplus pods of a workload are deleted: the least advanced first. Thread: any (pure). Source:
// Kubernetes docs, "ReplicaSet", "Scaling a ReplicaSet"; spec "Scheduler and workloads", 14.
#pragma once

#include "api/object/pod.h"

#include <compare>
#include <cstdint>

namespace spillway::workloads {

/// Sort key of surplus pods; the first are deleted first: not yet bound, not running, not ready, crowded together on a
/// node, ready for a shorter time, restarted more often, younger; then by name. Pure. `on_same_node`: active pods of
/// the set there.
struct SurplusRank {
  bool bound = false;
  int phase = 0;  // Pending 0, Unknown 1, Running 2
  bool ready = false;
  std::int64_t on_same_node = 0;
  WallTime ready_since;
  std::int64_t restarts = 0;
  WallTime created;
  api::PodKey pod;

  friend std::strong_ordering operator<=>(const SurplusRank& a, const SurplusRank& b);
  friend bool operator==(const SurplusRank&, const SurplusRank&) = default;
};

SurplusRank surplus_rank(const api::Pod& pod, std::int64_t on_same_node);

}  // namespace spillway::workloads
