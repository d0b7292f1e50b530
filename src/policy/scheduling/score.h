// Scores a node for a pod by upstream's aspects and weights. Aspects that depend on the other candidates (taints,
// affinity, other pods) are counted here and set in proportion by weigh().
// Thread: any (pure). Source: Kubernetes docs, "Scheduler Configuration" (default weights), NodeResourcesFit,
// NodeResourcesBalancedAllocation, ImageLocality, TaintToleration, NodeAffinity, InterPodAffinity, PodTopologySpread;
// vectors scheduling/score_plugins, scheduling/full_schedule, scheduling/balanced_allocation.
#pragma once

#include "policy/node_load.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/profile.h"

#include <cstdint>
#include <optional>

namespace spillway::scheduling {

struct Score {
  std::int64_t resources = 0;    // 0..100: NodeResourcesFit; by default the share of cpu and memory left free
  std::int64_t balanced = 0;     // 0, or 50..100: how the pod changes the balance of cpu and memory, or others
  std::int64_t soft_taints = 0;  // PreferNoSchedule taints not tolerated; fewer is better
  std::int64_t affinity = 0;     // weight of the preferred terms that match
  // 0..100: share of the pod's images on the node; images on many nodes count more
  std::int64_t image_locality = 0;
  std::optional<std::int64_t> inter_pod;  // weights of inter-pod terms; nullopt: no term applies
  std::optional<std::int64_t> spread;     // fewer is better; nullopt: no constraint, or the node lacks a label

  friend bool operator==(const Score&, const Score&) = default;
};

/// True if the pod requests any of the resources whose balance counts; the balance of other pods scores nothing.
bool asks_for_balance(const PendingPod& pod);

/// The aspects that do not depend on other nodes.
Score score_node(const PendingPod& pod, const policy::NodeLoad& node);

/// The lowest and highest values among the candidates, for scores that are set in proportion to each other.
struct ScoreBounds {
  std::int64_t soft_taints = 0;
  std::int64_t affinity = 0;
  std::optional<std::int64_t> inter_pod_least;
  std::int64_t inter_pod_most = 0;
  std::optional<std::int64_t> spread_least;
  std::int64_t spread_most = 0;

  void include(const Score& candidate);

  friend bool operator==(const ScoreBounds&, const ScoreBounds&) = default;
};

/// A score's parts among candidates with these bounds, each 0..100 times its weight.
struct WeighedScore {
  std::int64_t resources = 0;
  std::int64_t balanced = 0;
  std::int64_t image_locality = 0;
  std::int64_t taints = 0;
  std::int64_t affinity = 0;
  std::int64_t inter_pod = 0;
  std::int64_t spread = 0;

  std::int64_t total() const { return resources + balanced + image_locality + taints + affinity + inter_pod + spread; }
};

/// The part of the total score that depends on the places of other pods.
std::int64_t related_score(const Score& score, const ScoreBounds& among, const ScoreWeights& weights);
WeighedScore weigh(const Score& score, const ScoreBounds& among, const ScoreWeights& weights);
std::int64_t total_score(const Score& score, const ScoreBounds& among, const ScoreWeights& weights);

}  // namespace spillway::scheduling
