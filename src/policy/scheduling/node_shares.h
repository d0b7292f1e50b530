// The number of nodes of a large cluster that suffice: for a call of extenders, and for a preemption. Thread: any
// (pure). Source: Kubernetes docs, "Scheduler Performance Tuning", "Scheduler Configuration"; spec "Scheduler and
// workloads", 3, 8; vectors scheduling/queue_sort.
#pragma once

#include <cstdint>
#include <optional>

namespace spillway::scheduling {

/// percentageOfNodesToScore; 0: by the size of the cluster, 50 percent less one for every 125 nodes, at least 5.
struct NodeShare {
  std::int64_t global_percent = 0;
  std::optional<std::int64_t> profile_percent;  // if set, takes precedence over global_percent

  friend bool operator==(const NodeShare&, const NodeShare&) = default;
};

/// The search ends after that many feasible nodes: all of fewer than 100, else that share, at least 100.
std::int64_t feasible_nodes_enough(std::int64_t nodes, const NodeShare& share);

/// minCandidateNodesPercentage and minCandidateNodesAbsolute.
struct CandidateShare {
  std::int64_t percent = 10;
  std::int64_t absolute = 100;

  friend bool operator==(const CandidateShare&, const CandidateShare&) = default;
};

/// The search for preemption ends after that many candidates, out of `potential_nodes` nodes on which removing pods
/// might help.
std::int64_t candidates_enough(std::int64_t potential_nodes, const CandidateShare& share);

}  // namespace spillway::scheduling
