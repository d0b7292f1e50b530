// vectors/scheduling: filters and scores that depend on other nodes, scores of single plugins, whole cycles.
#include "policy/scheduling/cluster_rows.h"
#include "policy/scheduling/inter_pod.h"
#include "policy/scheduling/place.h"
#include "policy/scheduling/topology_spread.h"
#include "support/vectors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::scheduling {
namespace {

using api::Json;
using support::Mismatch;

Json refusal_json(const Refusal& no) {
  Json::Array reasons;
  for (const Misfit& misfit : no.misfits) reasons.emplace_back(misfit.text);
  return Json::object({{"code", no.resolvable() ? "Unschedulable" : "UnschedulableAndUnresolvable"},
                       {"reasons", Json(std::move(reasons))}});
}

Json skipped(std::string_view point) {
  return Json::object({{point, Json::object({{"code", "Skip"}})}});
}

/// The list under `member`, by node: the order of nodes means nothing.
Json by_node(const Json& document, std::string_view member) {
  Json sorted = document;
  Json* list = sorted.find(member);
  if (list == nullptr || list->if_array() == nullptr) return sorted;
  std::ranges::sort(*list->if_array(), {}, [](const Json& each) { return std::string(each.string_at({"node"})); });
  return sorted;
}

template <typename Plugin>
Json filter_results(const Plugin& plugin, const Topology& nodes) {
  if (!plugin.filters()) return skipped("prefilter");
  Json::Array results;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto no = plugin.refuse(node);
    Json result = no ? refusal_json(*no) : Json::object({{"code", "Success"}});
    result["node"] = nodes.name(node);
    results.push_back(std::move(result));
  }
  return Json::object({{"nodes", Json(std::move(results))}});
}

/// The nodes that scores are over.
std::vector<std::size_t> feasible_in(const Json& row, const Topology& nodes) {
  std::vector<std::size_t> numbers;
  const bool all = row.at({"in", "feasible"}) == nullptr;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const Json::Array& chosen = list_at(row, "feasible");
    if (all || std::ranges::find(chosen, Json(nodes.name(node))) != chosen.end()) numbers.push_back(node);
  }
  return numbers;
}

/// `part`: of a weighed score, before its weight.
template <typename Part>
Json score_results(const Topology& nodes, const std::vector<std::size_t>& numbers, const std::vector<Score>& scores,
                   const std::vector<std::int64_t>& raw, Part part) {
  ScoreBounds bounds;
  for (const Score& score : scores) bounds.include(score);
  Json::Array results;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    results.push_back(Json::object(
        {{"node", nodes.name(numbers[i])}, {"raw", raw[i]}, {"score", part(weigh(scores[i], bounds, {}))}}));
  }
  return Json::object({{"scores", Json(std::move(results))}});
}

std::optional<Mismatch> interpod_affinity(const Json& row) {
  const auto cluster = read_cluster(row);
  if (!cluster) return Mismatch{"a cluster that decodes", cluster.error().text()};
  Topology nodes(cluster->nodes, cluster->around);
  const InterPod plugin(cluster->pod, cluster->around, nodes, cluster->profile);
  Json got;
  if (row.string_at({"op"}) == "filter") {
    got = filter_results(plugin, nodes);
  } else if (!plugin.scores()) {
    got = skipped("prescore");
  } else {
    const std::vector<std::size_t> numbers = feasible_in(row, nodes);
    std::vector<Score> scores;
    std::vector<std::int64_t> raw;
    for (const std::size_t node : numbers) {
      raw.push_back(plugin.raw_score(node));
      scores.emplace_back().inter_pod = raw.back();
    }
    got = score_results(nodes, numbers, scores, raw, [](const WeighedScore& parts) { return parts.inter_pod / 2; });
  }
  return support::compare(by_node(by_node(*row.find("want"), "nodes"), "scores"), by_node(got, "scores"));
}

std::optional<Mismatch> topology_spread(const Json& row) {
  const auto cluster = read_cluster(row);
  if (!cluster) return Mismatch{"a cluster that decodes", cluster.error().text()};
  Topology nodes(cluster->nodes, cluster->around);
  const PendingPod pending = make_pending(cluster->pod, cluster->profile);
  const TopologySpread plugin(pending, cluster->around, nodes, cluster->profile);
  Json got;
  if (row.string_at({"op"}) == "filter") {
    got = filter_results(plugin, nodes);
  } else if (!plugin.scores()) {
    got = skipped("prescore");
  } else {
    const std::vector<std::size_t> numbers = feasible_in(row, nodes);
    std::vector<Score> scores;
    std::vector<std::int64_t> raw;
    for (const std::optional<std::int64_t>& each : plugin.raw_scores(numbers)) {
      raw.push_back(each.value_or(0));
      scores.emplace_back().spread = each;
    }
    got = score_results(nodes, numbers, scores, raw, [](const WeighedScore& parts) { return parts.spread / 2; });
  }
  return support::compare(by_node(by_node(*row.find("want"), "nodes"), "scores"), by_node(got, "scores"));
}

/// The pod with the shares of its images, as place_pod sees it.
PendingPod pending_in(const Cluster& cluster) {
  PendingPod pending = make_pending(cluster.pod, cluster.profile);
  for (PendingImage& image : pending.images) {
    const auto holders = std::ranges::count_if(
        cluster.nodes, [&](const auto& node) { return node.second.image_bytes.contains(image.name); });
    image.node_share = node_share(static_cast<std::size_t>(holders), cluster.nodes.size());
  }
  return pending;
}

std::optional<Mismatch> score_plugins(const Json& row) {
  const auto cluster = read_cluster(row);
  if (!cluster) return Mismatch{"a cluster that decodes", cluster.error().text()};
  Topology nodes(cluster->nodes, cluster->around);
  const PendingPod pending = pending_in(*cluster);
  const std::string_view plugin = row.string_at({"in", "plugin"});
  const std::vector<std::size_t> numbers = feasible_in(row, nodes);
  std::vector<Score> scores;
  for (const std::size_t node : numbers) scores.push_back(score_node(pending, nodes.load(node)));
  const auto results = [&](auto raw_of, auto part) {
    std::vector<std::int64_t> raw;
    for (const Score& score : scores) raw.push_back(raw_of(score));
    return score_results(nodes, numbers, scores, raw, part);
  };
  Json got;
  if (plugin == "NodeResourcesFit") {
    got = results([](const Score& score) { return score.resources; },
                  [](const WeighedScore& parts) { return parts.resources; });
  } else if (plugin == "NodeResourcesBalancedAllocation" && !asks_for_balance(pending)) {
    got = Json::object({{"skipped", true}});
  } else if (plugin == "NodeResourcesBalancedAllocation") {
    got = results([](const Score& score) { return score.balanced; },
                  [](const WeighedScore& parts) { return parts.balanced; });
  } else if (plugin == "ImageLocality") {
    got = results([](const Score& score) { return score.image_locality; },
                  [](const WeighedScore& parts) { return parts.image_locality; });
  } else if (plugin == "TaintToleration") {
    got = results([](const Score& score) { return score.soft_taints; },
                  [](const WeighedScore& parts) { return parts.taints / 3; });
  } else if (!pending.wishes_for_nodes) {
    got = skipped("prescore");
  } else {
    got = results([](const Score& score) { return score.affinity; },
                  [](const WeighedScore& parts) { return parts.affinity / 2; });
  }
  return support::compare(by_node(*row.find("want"), "scores"), by_node(got, "scores"));
}

Json totals_of(const Survey& survey, const PendingPod& pending, std::int64_t* best) {
  ScoreBounds bounds;
  for (const FittingNode& node : survey.fitting) bounds.include(node.score);
  Json::Array totals;
  for (const FittingNode& node : survey.fitting) {
    const WeighedScore parts = weigh(node.score, bounds, {});
    Json scores = Json::object({{"ImageLocality", parts.image_locality},
                                {"NodeResourcesFit", parts.resources},
                                {"TaintToleration", parts.taints}});
    if (asks_for_balance(pending)) scores["NodeResourcesBalancedAllocation"] = parts.balanced;
    if (pending.wishes_for_nodes) scores["NodeAffinity"] = parts.affinity;
    if (survey.scores_inter_pod) scores["InterPodAffinity"] = parts.inter_pod;
    if (survey.scores_spread) scores["PodTopologySpread"] = parts.spread;
    *best = std::max(*best, parts.total());
    totals.push_back(Json::object({{"node", *node.name}, {"scores", std::move(scores)}, {"total", parts.total()}}));
  }
  return Json(std::move(totals));
}

/// Sorts the reasons of a node behind the fixed ones, which may be in any order.
void sort_reasons_in(Json& document) {
  Json* rejected = document.find("rejected");
  if (rejected == nullptr) return;
  for (Json& each : *rejected->if_array()) {
    std::ranges::sort(*each.find("reasons")->if_array(), {}, [](const Json& text) { return *text.if_string(); });
  }
}

std::optional<Mismatch> full_schedule(const Json& row) {
  const auto cluster = read_cluster(row);
  if (!cluster) return Mismatch{"a cluster that decodes", cluster.error().text()};
  const Survey survey = survey_nodes(cluster->pod, cluster->nodes, cluster->profile, {}, cluster->around);
  const Placement placement = place_pod(cluster->pod, cluster->nodes, cluster->profile, {}, cluster->around);
  // Upstream does not report the filters for a pod that was nominated to a node and got one.
  const bool silent = !survey.fitting.empty() && !cluster->pod.status.nominated_node_name.empty();
  Json::Array feasible;
  for (const FittingNode& node : survey.fitting) feasible.emplace_back(*node.name);
  Json got = Json::object({{"feasible", Json(std::move(feasible))}});
  std::set<std::string> plugins;
  Json::Array rejected;
  for (const auto& [name, no] : survey.refused) {
    Json each = refusal_json(no);
    each["node"] = name;
    each["plugin"] = to_string(no.filter);
    plugins.insert(std::string(to_string(no.filter)));
    rejected.push_back(std::move(each));
  }
  for (const std::string& name : survey.excluded) {
    rejected.push_back(Json::object({{"code", "UnschedulableAndUnresolvable"},
                                     {"node", name},
                                     {"reasons", Json::array({"node(s) didn't satisfy plugin(s) [NodeAffinity]"})}}));
  }
  // Names of nodes make that plugin one of the causes, whichever plugins refuse.
  if (pending_in(*cluster).only_nodes) plugins.insert("NodeAffinity");
  if (!silent) got["rejected"] = Json(std::move(rejected));
  if (survey.fitting.empty()) {
    got["fit_error"] = placement.message;
    Json::Array names;
    for (const std::string& plugin : plugins) names.emplace_back(plugin);
    got["unschedulable_plugins"] = Json(std::move(names));
  } else {
    std::int64_t most = INT64_MIN;
    const Json totals = totals_of(survey, pending_in(*cluster), &most);
    Json::Array best;
    for (const Json& each : *totals.if_array()) {
      if (each.find("total")->if_int64() == most) best.emplace_back(std::string(each.string_at({"node"})));
    }
    if (std::ranges::find(best, Json(placement.node.value())) == best.end()) {
      return Mismatch{"one of the best nodes", *placement.node};
    }
    got["best"] = Json(std::move(best));
    if (survey.fitting.size() > 1) got["totals"] = totals;
  }
  Json want = by_node(by_node(*row.find("want"), "rejected"), "totals");
  got = by_node(by_node(got, "rejected"), "totals");
  sort_reasons_in(want);
  sort_reasons_in(got);
  return support::compare(want, got);
}

/// The numbers are those of cpu, memory and, in some rows, a third resource.
std::optional<Mismatch> balanced_allocation(const Json& row) {
  Profile profile = default_profile();
  const auto amounts = [&](std::string_view member) {
    const Json::Array& numbers = *row.at({"in", member})->if_array();
    policy::Amounts out;
    out.milli_cpu = numbers[0].if_int64().value();
    out.memory_bytes = numbers[1].if_int64().value();
    if (numbers.size() > 2) out.ephemeral_storage_bytes = numbers[2].if_int64().value();
    profile.balanced.resize(2);
    if (numbers.size() > 2) profile.balanced.emplace_back("ephemeral-storage");
    return out;
  };
  const api::Pod pod;
  policy::NodeLoad load(std::make_shared<const api::Node>());
  load.allocatable = amounts("allocatable");
  load.requested = amounts("allocated");
  PendingPod pending = make_pending(pod, profile);
  pending.load.requested = amounts("pod");
  const Json* want = row.at({"want", "score"});
  return support::compare(Json::object({{"score", *want}}),
                          Json::object({{"score", score_node(pending, load).balanced}}));
}

const bool kBalanced = support::add_vector_check("scheduling/balanced_allocation", balanced_allocation);
const bool kInterPod = support::add_vector_check("scheduling/interpod_affinity", interpod_affinity);
const bool kSpread = support::add_vector_check("scheduling/topology_spread", topology_spread);
const bool kScores = support::add_vector_check("scheduling/score_plugins", score_plugins);
const bool kCycle = support::add_vector_check("scheduling/full_schedule", full_schedule);

}  // namespace
}  // namespace spillway::scheduling
