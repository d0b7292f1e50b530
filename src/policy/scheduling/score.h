// How good a node is for a pod: upstream's aspects and weights. What depends on the other candidates (taints, affinity)
// is counted here and set in proportion by total_score. Integers and one division each, so that every machine agrees.
// Thread: any (pure). Source: Kubernetes docs, "Scheduler Configuration" (default weights), NodeResourcesFit
// LeastAllocated, NodeResourcesBalancedAllocation, ImageLocality, TaintToleration, NodeAffinity.
#pragma once

#include "policy/node_load.h"
#include "policy/scheduling/pending_pod.h"

#include <cstdint>

namespace spillway::scheduling {

struct Score {
  std::int64_t least_allocated = 0;  // 0..100: mean share of cpu and memory that stays free
  std::int64_t balanced = 0;         // 0..100: how alike the used shares of cpu and memory are
  std::int64_t soft_taints = 0;      // PreferNoSchedule taints not tolerated; fewer is better
  std::int64_t affinity = 0;         // weight of the preferred terms that match
  std::int64_t image_locality = 0;   // 0..100: how much of the pod's images is there already, spread images count more

  friend bool operator==(const Score&, const Score&) = default;
};

Score score_node(const PendingPod& pod, const policy::NodeLoad& node);

/// What the candidates have at most of what is set in proportion; nothing below zero.
struct ScoreBounds {
  std::int64_t soft_taints = 0;
  std::int64_t affinity = 0;

  void include(const Score& candidate);

  friend bool operator==(const ScoreBounds&, const ScoreBounds&) = default;
};

/// Among candidates with these bounds: least_allocated + balanced + image_locality + 3 · (100 for no soft taint, 0 for
/// the most of them) + 2 · (100 for the best affinity).
std::int64_t total_score(const Score& score, const ScoreBounds& among);

}  // namespace spillway::scheduling
