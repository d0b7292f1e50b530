// How good a node is for a pod, from 0 to 100 per aspect: room left, evenness of cpu and memory, soft taints, preferred
// affinity. Integers only, so that every machine agrees.
// Thread: any (pure). Source: Kubernetes docs, "Scheduler Configuration", NodeResourcesFit LeastAllocated,
// NodeResourcesBalancedAllocation, TaintToleration, NodeAffinity.
#pragma once

#include "policy/scheduling/node_load.h"
#include "policy/scheduling/pending_pod.h"

#include <cstdint>

namespace spillway::scheduling {

struct Score {
  std::int64_t least_allocated = 0;  // 0..100: mean share of cpu and memory that stays free
  std::int64_t balanced = 0;         // 0..100: how alike the used shares of cpu and memory are
  std::int64_t soft_taints = 0;      // PreferNoSchedule taints not tolerated; fewer is better
  std::int64_t affinity = 0;         // weight of the preferred terms that match

  /// Soft taints outweigh everything; then affinity; then room and balance together.
  friend auto operator<=>(const Score& a, const Score& b) {
    if (const auto c = b.soft_taints <=> a.soft_taints; c != 0) return c;
    if (const auto c = a.affinity <=> b.affinity; c != 0) return c;
    return a.least_allocated + a.balanced <=> b.least_allocated + b.balanced;
  }

  friend bool operator==(const Score& a, const Score& b) { return (a <=> b) == 0; }
};

Score score_node(const PendingPod& pod, const NodeLoad& node);

}  // namespace spillway::scheduling
