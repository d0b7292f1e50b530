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

double share_of_nodes(const std::string& image, const std::map<std::string, policy::NodeLoad>& nodes) {
  return node_share(static_cast<std::size_t>(std::ranges::count_if(nodes,
                                                                   [&](const auto& node) {
                                                                     return !node.second.image_bytes.empty() &&
                                                                            node.second.image_bytes.contains(image);
                                                                   })),
                    nodes.size());
}

}  // namespace

double node_share(std::size_t holders, std::size_t nodes) {
  return nodes == 0 ? 0 : static_cast<double>(holders) / static_cast<double>(nodes);
}

Placement choose(std::span<const FittingNode> candidates, const ScoreWeights& weights) {
  ScoreBounds most;
  for (const FittingNode& candidate : candidates) most.include(candidate.score);
  // Largest is best; total, ending in the name.
  const auto rank = [&](const FittingNode& node) {
    const std::int64_t total = total_score(node.score, most, weights) + node.extenders;
    return std::tuple(-total, node.pod_count, std::string_view(*node.name));
  };
  const FittingNode* best = &candidates.front();
  auto best_rank = rank(*best);
  for (const FittingNode& candidate : candidates.subspan(1)) {
    const auto other = rank(candidate);
    if (other >= best_rank) continue;
    best = &candidate;
    best_rank = other;
  }
  return placement_on(*best, -std::get<0>(best_rank), candidates.size());
}

Placement placement_on(const FittingNode& chosen, std::int64_t total, std::size_t candidates) {
  Placement placement;
  placement.node = *chosen.name;
  placement.reasons = {policy::Reason{policy::ReasonCode::kFits,
                                      {{"node", *chosen.name},
                                       {"score", total},
                                       {"least_allocated", chosen.score.resources},
                                       {"balanced", chosen.score.balanced},
                                       {"soft_taints", chosen.score.soft_taints},
                                       {"affinity", chosen.score.affinity},
                                       {"image_locality", chosen.score.image_locality},
                                       {"pods", chosen.pod_count},
                                       {"candidates", static_cast<std::int64_t>(candidates)}}}};
  std::vector<policy::Fact>& facts = placement.reasons.front().facts;
  if (chosen.score.inter_pod) facts.push_back({"inter_pod_affinity", *chosen.score.inter_pod});
  if (chosen.score.spread) facts.push_back({"topology_spread", *chosen.score.spread});
  if (chosen.extenders != 0) facts.push_back({"extenders", chosen.extenders});
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
  refused.refused_by.insert(Filter::kVolumeBinding);
  refused.refused_by.insert(Filter::kVolumeRestrictions);
  return refused;
}

std::optional<Refusal> refuse_on(const PendingPod& pending, const Relations& relations, const Topology& nodes,
                                 std::size_t node, const VolumeFilter& volumes, const Surroundings& around) {
  return refuse_with_load(pending, relations, nodes, node, nodes.load(node), volumes, around);
}

std::optional<Refusal> refuse_with_load(const PendingPod& pending, const Relations& relations, const Topology& nodes,
                                        std::size_t node, const policy::NodeLoad& load, const VolumeFilter& volumes,
                                        const Surroundings& around) {
  if (const auto promised = around.promised(nodes.name(node), *pending.pod); !promised.empty()) {
    policy::NodeLoad with = load;
    Relations then = relations;
    for (const api::Pod* other : promised) {
      with.add_unscored(*other);
      then.add(node, *other);
    }
    if (auto no = refuse_pod(pending, with, volumes)) return no;
    if (auto no = then.refuse(node)) return no;
  }
  if (auto no = refuse_pod(pending, load, volumes)) return no;
  return relations.refuse(node);
}

Survey survey_nodes(const api::Pod& pod, const std::map<std::string, policy::NodeLoad>& nodes, const Profile& profile,
                    const VolumeFilter& volumes, const Surroundings& around, const SearchShare& share) {
  Survey survey;
  PendingPod pending = make_pending(pod, profile);
  for (PendingImage& image : pending.images) image.node_share = share_of_nodes(image.name, nodes);
  survey.contradicts_itself = pending.only_nodes && pending.only_nodes->empty() && !nodes.empty();
  if (survey.contradicts_itself) return survey;
  Topology topology(nodes, around);
  const Relations relations(pending, around, topology);
  std::vector<std::size_t> numbers;
  const auto ask = [&](std::size_t node) {
    ++survey.scanned;
    auto no = refuse_on(pending, relations, topology, node, volumes, around);
    if (no) {
      survey.refused.insert_or_assign(topology.name(node), *std::move(no));
      return false;
    }
    numbers.push_back(node);
    const policy::NodeLoad& load = topology.load(node);
    survey.fitting.push_back({&topology.name(node), load.pod_count, score_node(pending, load)});
    return true;
  };
  if (const auto promised = topology.number_of(pod.status.nominated_node_name); promised && ask(*promised)) {
    return survey;
  }
  for (std::size_t i = 0; i < topology.size() && survey.fitting.size() < share.enough; ++i) {
    const std::size_t node = (share.first + i) % topology.size();
    const std::string& name = topology.name(node);
    if (!pending.only_nodes || pending.only_nodes->contains(name)) {
      ask(node);
    } else if (!survey.refused.contains(name)) {
      survey.excluded.push_back(name);
    }
  }
  survey.scores_spread = relations.scores_spread();
  survey.scores_inter_pod = relations.scores_inter_pod();
  relations.score(numbers, survey.fitting);
  return survey;
}

Placement place_pod(const api::Pod& pod, const std::map<std::string, policy::NodeLoad>& nodes, const Profile& profile,
                    const VolumeFilter& volumes, const Surroundings& around) {
  Survey survey = survey_nodes(pod, nodes, profile, volumes, around);
  if (!survey.fitting.empty()) return choose(survey.fitting, profile.weights);
  return refusal_of(std::move(survey), nodes.size());
}

Placement place_among(const api::Pod& pod, const std::map<std::string, std::int64_t>& points,
                      const std::map<std::string, policy::NodeLoad>& nodes, const Profile& profile,
                      const VolumeFilter& volumes, const Surroundings& around) {
  PendingPod pending = make_pending(pod, profile);
  for (PendingImage& image : pending.images) image.node_share = share_of_nodes(image.name, nodes);
  Topology topology(nodes, around);
  const Relations relations(pending, around, topology);
  std::vector<std::size_t> numbers;
  std::vector<FittingNode> fitting;
  for (const auto& [name, more] : points) {
    const auto node = topology.number_of(name);
    if (!node || refuse_on(pending, relations, topology, *node, volumes, around)) continue;
    const policy::NodeLoad& load = topology.load(*node);
    numbers.push_back(*node);
    fitting.push_back({&topology.name(*node), load.pod_count, score_node(pending, load), more});
  }
  if (fitting.empty()) return {};
  relations.score(numbers, fitting);
  return choose(fitting, profile.weights);
}

Placement refusal_of(Survey survey, std::size_t nodes) {
  Placement refused;
  if (survey.contradicts_itself) {
    refused.reasons = {policy::Reason{policy::ReasonCode::kNodeSelectorMismatch, {}}};
    refused.message = fmt::format("0/{} nodes are available: pod affinity terms conflict.", nodes);
    refused.refused_by.insert(Filter::kNodeAffinity);
    return refused;
  }
  std::map<std::string, std::size_t> counts;
  if (!survey.excluded.empty()) refused.refused_by.insert(Filter::kNodeAffinity);
  if (!survey.excluded.empty()) counts[std::string(kExcludedByName)] = survey.excluded.size();
  for (auto& [name, no] : survey.refused) {
    if (no.resolvable()) refused.resolvable.push_back(name);
    refused.refused_by.insert(no.filter);
    for (Misfit& misfit : no.misfits) {
      ++counts[misfit.text];
      misfit.reason.facts.insert(misfit.reason.facts.begin(), {"node", name});
      refused.reasons.push_back(std::move(misfit.reason));
    }
  }
  refused.message = nodes == 0 ? "no nodes available to schedule pods" : unavailable_text(nodes, counts);
  return refused;
}

}  // namespace spillway::scheduling
