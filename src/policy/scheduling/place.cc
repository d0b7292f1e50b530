#include "policy/scheduling/place.h"

#include "policy/scheduling/score.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spillway::scheduling {

namespace {

/// Largest is best; total, ending in the name.
struct Rank {
  Score score;
  std::int64_t pod_count;
  const std::string* name;

  friend bool operator<(const Rank& a, const Rank& b) {
    if (const auto c = a.score <=> b.score; c != 0) return c < 0;
    if (a.pod_count != b.pod_count) return a.pod_count > b.pod_count;
    return *a.name > *b.name;
  }
};

std::string summarize(std::size_t node_count, const std::map<std::string, std::size_t>& counts) {
  if (node_count == 0) return "no nodes available to schedule pods";
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(fmt::format("{} {}", count, text));
  std::sort(parts.begin(), parts.end());
  return fmt::format("0/{} nodes are available: {}.", node_count, fmt::join(parts, ", "));
}

}  // namespace

Placement place_pod(const api::Pod& pod, const std::map<std::string, NodeLoad>& nodes) {
  const PendingPod pending = make_pending(pod);
  Placement placement;
  std::map<std::string, std::size_t> counts;
  std::optional<Rank> best;
  for (const auto& [name, load] : nodes) {
    std::vector<Misfit> misfits = find_misfits(pending, load);
    if (misfits.empty()) {
      const Rank rank{score_node(pending, load), load.pod_count, &name};
      if (!best || *best < rank) best = rank;
      continue;
    }
    for (Misfit& misfit : misfits) {
      ++counts[misfit.text];
      misfit.reason.facts.insert(misfit.reason.facts.begin(), {"node", name});
      placement.reasons.push_back(std::move(misfit.reason));
    }
  }
  if (!best) {
    placement.message = summarize(nodes.size(), counts);
    return placement;
  }
  placement.node = *best->name;
  placement.reasons = {policy::Reason{policy::ReasonCode::kFits,
                                      {{"node", *best->name},
                                       {"least_allocated", best->score.least_allocated},
                                       {"balanced", best->score.balanced},
                                       {"soft_taints", best->score.soft_taints},
                                       {"affinity", best->score.affinity},
                                       {"pods", best->pod_count}}}};
  return placement;
}

}  // namespace spillway::scheduling
