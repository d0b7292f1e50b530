#include "policy/scheduling/node_shares.h"

#include <algorithm>

namespace spillway::scheduling {

namespace {

constexpr std::int64_t kWhole = 100;            // percent
constexpr std::int64_t kNodesMin = 100;         // upstream: fewer nodes than this are all filtered
constexpr std::int64_t kPercentAtMost = 50;     // upstream's share of a small cluster
constexpr std::int64_t kNodesPerPercent = 125;  // upstream: the share falls by one percent for each 125 nodes
constexpr std::int64_t kPercentAtLeast = 5;     // upstream's share of the largest clusters

}  // namespace

std::int64_t feasible_nodes_enough(std::int64_t nodes, const NodeShare& share) {
  if (nodes < kNodesMin) return nodes;
  std::int64_t percent = share.profile_percent.value_or(share.global_percent);
  if (percent == 0) percent = std::max(kPercentAtMost - nodes / kNodesPerPercent, kPercentAtLeast);
  return std::clamp(nodes * percent / kWhole, kNodesMin, nodes);
}

std::int64_t candidates_enough(std::int64_t potential_nodes, const CandidateShare& share) {
  return std::min(std::max(potential_nodes * share.percent / kWhole, share.absolute), potential_nodes);
}

}  // namespace spillway::scheduling
