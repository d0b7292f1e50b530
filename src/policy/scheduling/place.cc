#include "policy/scheduling/place.h"

#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/score.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace spillway::scheduling {

namespace {

constexpr std::string_view kExcludedByName = "node(s) didn't satisfy plugin(s) [NodeAffinity]";

struct Candidate {
  const std::string* name;
  std::int64_t pod_count;
};

Placement choose(const std::vector<Candidate>& candidates, const std::vector<Score>& scores) {
  const std::vector<std::int64_t> totals = total_scores(scores);
  // Largest is best; total, ending in the name.
  const auto rank = [&](std::size_t i) {
    return std::tuple(-totals[i], candidates[i].pod_count, std::string_view(*candidates[i].name));
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (rank(i) < rank(best)) best = i;
  }
  const Score& score = scores[best];
  Placement placement;
  placement.node = *candidates[best].name;
  placement.reasons = {policy::Reason{policy::ReasonCode::kFits,
                                      {{"node", *placement.node},
                                       {"score", totals[best]},
                                       {"least_allocated", score.least_allocated},
                                       {"balanced", score.balanced},
                                       {"soft_taints", score.soft_taints},
                                       {"affinity", score.affinity},
                                       {"image_locality", score.image_locality},
                                       {"pods", candidates[best].pod_count},
                                       {"candidates", static_cast<std::int64_t>(candidates.size())}}}};
  return placement;
}

std::int64_t share_of_nodes_ppm(const std::string& image, const std::map<std::string, policy::NodeLoad>& nodes) {
  constexpr std::int64_t kMillion = 1'000'000;
  if (nodes.empty()) return 0;
  const auto holders = std::ranges::count_if(nodes, [&](const auto& node) {
    return !node.second.image_bytes.empty() && node.second.image_bytes.contains(image);
  });
  return holders * kMillion / static_cast<std::int64_t>(nodes.size());
}

}  // namespace

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
  std::vector<Candidate> candidates;
  std::vector<Score> scores;
  for (const auto& [name, load] : nodes) {
    if (pending.only_nodes && !pending.only_nodes->contains(name)) {
      ++counts[std::string(kExcludedByName)];
      continue;
    }
    std::optional<Refusal> no = refuse_pod(pending, load, conditions, volumes);
    if (!no) {
      candidates.push_back({&name, load.pod_count});
      scores.push_back(score_node(pending, load));
      continue;
    }
    if (no->resolvable()) refused.resolvable.push_back(name);
    for (Misfit& misfit : no->misfits) {
      ++counts[misfit.text];
      misfit.reason.facts.insert(misfit.reason.facts.begin(), {"node", name});
      refused.reasons.push_back(std::move(misfit.reason));
    }
  }
  if (!candidates.empty()) return choose(candidates, scores);
  refused.message = nodes.empty() ? "no nodes available to schedule pods" : unavailable_text(nodes.size(), counts);
  return refused;
}

}  // namespace spillway::scheduling
