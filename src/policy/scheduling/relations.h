// The filters and scores that depend on pods of other nodes: topology spread and inter-pod affinity, in upstream's
// order. Thread: any (pure).
#pragma once

#include "policy/scheduling/inter_pod.h"
#include "policy/scheduling/score.h"
#include "policy/scheduling/topology_spread.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::scheduling {

/// A node that the pod fits on.
struct FittingNode {
  const std::string* name = nullptr;
  std::int64_t pod_count = 0;
  Score score;
  std::int64_t extenders = 0;  // sum of the extenders' scores
};

class Relations {
 public:
  /// Made by the pod's profile. The pod, the surroundings and the nodes must outlive it.
  Relations(const PendingPod& pod, const Surroundings& around, Topology& nodes)
      : spread_(pod, around, nodes, *pod.profile),
        inter_pod_(*pod.pod, around, nodes, *pod.profile),
        asks_spread_(!pod.profile->left_out.contains(Filter::kPodTopologySpread)),
        asks_inter_pod_(!pod.profile->left_out.contains(Filter::kInterPodAffinity)) {}

  bool filters() const { return (asks_spread_ && spread_.filters()) || (asks_inter_pod_ && inter_pod_.filters()); }

  bool scores_spread() const { return spread_.scores(); }

  bool scores_inter_pod() const { return inter_pod_.scores(); }

  /// True if no relation matters to the pod: every node is evaluated alone.
  bool none() const { return !filters() && !scores_spread() && !scores_inter_pod(); }

  std::optional<Refusal> refuse(std::size_t node) const {
    std::optional<Refusal> no;
    if (asks_spread_) no = spread_.refuse(node);
    if (!no && asks_inter_pod_) no = inter_pod_.refuse(node);
    return no;
  }

  /// As refuse(), without the reason.
  bool admits(std::size_t node) const {
    return (!asks_spread_ || spread_.admits(node)) && (!asks_inter_pod_ || inter_pod_.admits(node));
  }

  /// Counts as if that pod were added to the node, or removed from it; filters alone.
  void add(std::size_t node, const api::Pod& other) {
    spread_.add(node, other);
    inter_pod_.add(node, other);
  }

  void remove(std::size_t node, const api::Pod& other) {
    spread_.remove(node, other);
    inter_pod_.remove(node, other);
  }

  /// The scores of these nodes, all of which fit; empty if the plug-in scores none of them.
  std::vector<std::optional<std::int64_t>> spread_scores(std::span<const std::size_t> numbers) const;
  std::vector<std::optional<std::int64_t>> inter_pod_scores(std::span<const std::size_t> numbers) const;
  /// `numbers`: of the nodes that fit, one for each.
  void score(std::span<const std::size_t> numbers, std::span<FittingNode> fitting) const;

 private:
  TopologySpread spread_;
  InterPod inter_pod_;
  bool asks_spread_ = true;
  bool asks_inter_pod_ = true;
};

}  // namespace spillway::scheduling
