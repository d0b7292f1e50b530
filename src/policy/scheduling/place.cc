#include "policy/scheduling/place.h"

#include "policy/scheduling/pending_pod.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace spillway::scheduling {

namespace {

constexpr std::string_view kExcludedByName = "node(s) didn't satisfy plugin(s) [NodeAffinity]";

std::int64_t share_of_nodes_ppm(const std::string& image, const std::map<std::string, policy::NodeLoad>& nodes) {
  return share_ppm(static_cast<std::size_t>(std::ranges::count_if(nodes,
                                                                  [&](const auto& node) {
                                                                    return !node.second.image_bytes.empty() &&
                                                                           node.second.image_bytes.contains(image);
                                                                  })),
                   nodes.size());
}

}  // namespace

std::int64_t share_ppm(std::size_t holders, std::size_t nodes) {
  constexpr std::int64_t kMillion = 1'000'000;
  if (nodes == 0) return 0;
  return static_cast<std::int64_t>(holders) * kMillion / static_cast<std::int64_t>(nodes);
}

Placement choose(std::span<const FittingNode> candidates) {
  ScoreBounds most;
  for (const FittingNode& candidate : candidates) most.include(candidate.score);
  // Largest is best; total, ending in the name.
  const auto rank = [&](const FittingNode& node) {
    return std::tuple(-total_score(node.score, most), node.pod_count, std::string_view(*node.name));
  };
  const FittingNode* best = &candidates.front();
  auto best_rank = rank(*best);
  for (const FittingNode& candidate : candidates.subspan(1)) {
    const auto other = rank(candidate);
    if (other >= best_rank) continue;
    best = &candidate;
    best_rank = other;
  }
  return placement_on(*best, total_score(best->score, most), candidates.size());
}

Placement placement_on(const FittingNode& chosen, std::int64_t total, std::size_t candidates) {
  Placement placement;
  placement.node = *chosen.name;
  placement.reasons = {policy::Reason{policy::ReasonCode::kFits,
                                      {{"node", *chosen.name},
                                       {"score", total},
                                       {"least_allocated", chosen.score.least_allocated},
                                       {"balanced", chosen.score.balanced},
                                       {"soft_taints", chosen.score.soft_taints},
                                       {"affinity", chosen.score.affinity},
                                       {"image_locality", chosen.score.image_locality},
                                       {"pods", chosen.pod_count},
                                       {"candidates", static_cast<std::int64_t>(candidates)}}}};
  return placement;
}

std::string unavailable_text(std::size_t nodes, const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(fmt::format("{} {}", count, text));
  std::sort(parts.begin(), parts.end());
  return fmt::format("0/{} nodes are available: {}.", nodes, fmt::join(parts, ", "));
}

Placement refuse_everywhere(std::string_view problem, std::size_t nodes) {
  Placement refused;
  refused.reasons = {policy::Reason{policy::ReasonCode::kNodeSelectorMismatch, {{"volumes", std::string(problem)}}}};
  refused.message = fmt::format("0/{} nodes are available: {}.", nodes, problem);
  if (nodes == 0) refused.message = "no nodes available to schedule pods";
  return refused;
}

Placement place_pod(const api::Pod& pod, const std::map<std::string, policy::NodeLoad>& nodes,
                    NodeConditions conditions, const VolumeFilter& volumes) {
  PendingPod pending = make_pending(pod);
  for (PendingImage& image : pending.images) image.nodes_ppm = share_of_nodes_ppm(image.name, nodes);
  Placement refused;
  if (pending.only_nodes && pending.only_nodes->empty() && !nodes.empty()) {
    refused.reasons = {policy::Reason{policy::ReasonCode::kNodeSelectorMismatch, {}}};
    refused.message = fmt::format("0/{} nodes are available: pod affinity terms conflict.", nodes.size());
    return refused;
  }
  std::map<std::string, std::size_t> counts;
  std::vector<FittingNode> candidates;
  for (const auto& [name, load] : nodes) {
    if (pending.only_nodes && !pending.only_nodes->contains(name)) {
      ++counts[std::string(kExcludedByName)];
      continue;
    }
    std::optional<Refusal> no = refuse_pod(pending, load, conditions, volumes);
    if (!no) {
      candidates.push_back({&name, load.pod_count, score_node(pending, load)});
      continue;
    }
    if (no->resolvable()) refused.resolvable.push_back(name);
    for (Misfit& misfit : no->misfits) {
      ++counts[misfit.text];
      misfit.reason.facts.insert(misfit.reason.facts.begin(), {"node", name});
      refused.reasons.push_back(std::move(misfit.reason));
    }
  }
  if (!candidates.empty()) return choose(candidates);
  refused.message = nodes.empty() ? "no nodes available to schedule pods" : unavailable_text(nodes.size(), counts);
  return refused;
}

}  // namespace spillway::scheduling
