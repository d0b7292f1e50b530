// vectors/scheduling/preemption: who would have to leave, which node is chosen, what is said and what is written.
#include "api/codec/codec.h"
#include "policy/scheduling/cluster_rows.h"
#include "policy/scheduling/preemption.h"
#include "support/vectors.h"

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::scheduling {
namespace {

using api::Json;
using support::Mismatch;

Json write_json(const PreemptionWrite& write) {
  Json out = Json::object({{"pod", write.pod->key().text()}});
  switch (write.kind) {
    case PreemptionWrite::Kind::kDelete:
      out["verb"] = "delete";
      return out;
    case PreemptionWrite::Kind::kMarkDisrupted:
    case PreemptionWrite::Kind::kClearNomination:
      out["verb"] = "patch";
      out["subresource"] = "status";
      break;
  }
  out["patch"] = status_patch(write, "default-scheduler", WallTime());
  // Upstream's patches carry no precondition, and a null that says nothing.
  out.find("patch")->if_object()->erase("metadata");
  if (write.kind == PreemptionWrite::Kind::kClearNomination) return out;
  Json& condition = out.find("patch")->find("status")->find("conditions")->if_array()->front();
  condition["lastTransitionTime"] = "NOW";
  condition["lastProbeTime"] = Json();
  return out;
}

Json candidate_json(const PreemptionCandidate& candidate) {
  Json::Array victims;
  for (const PodPtr& victim : candidate.victims) victims.emplace_back(victim->key().text());
  return Json::object({{"node", candidate.node},
                       {"pdb_violations", static_cast<std::int64_t>(candidate.budget_violations)},
                       {"victims", Json(std::move(victims))}});
}

void sort_by(Json::Array& list, std::string_view member) {
  std::ranges::stable_sort(list, {}, [member](const Json& each) { return std::string(each.string_at({member})); });
}

Result<BudgetsByNamespace> read_budgets(const Json& row) {
  BudgetsByNamespace budgets;
  for (const Json& each : list_at(row, "pdbs")) {
    SPILLWAY_TRY(budget, api::decode<api::PodDisruptionBudget>(each));
    budgets[budget.metadata.ns].push_back(std::make_shared<const api::PodDisruptionBudget>(budget));
  }
  return budgets;
}

/// The names of the nodes that cost as little as the chosen one.
Json::Array choices_of(const Preemption& decided) {
  Json::Array names;
  for (const PreemptionCandidate& candidate : decided.candidates) {
    if (cost_of(candidate) == cost_of(*decided.choice())) names.emplace_back(candidate.node);
  }
  std::ranges::sort(names, {}, [](const Json& name) { return *name.if_string(); });
  return names;
}

Json outcome_json(const Cluster& cluster, const Placement& refused, const Preemption& decided) {
  Json got = Json::object({});
  Json::Array potential;
  for (const std::string& name : refused.resolvable) potential.emplace_back(name);
  got["potential_nodes"] = Json(std::move(potential));
  got["status"] = decided.chosen ? "Success" : "Unschedulable";
  got["event"] = decided.message.empty() ? refused.message : refused.message + " " + decided.message;
  if (!decided.message.empty()) got["message"] = decided.message;
  if (decided.not_eligible) {
    got["not_eligible"] = decided.message.substr(std::string_view("preemption: ").size());
    got["nomination_unchanged"] = true;
  } else {
    Json::Array candidates;
    for (const PreemptionCandidate& candidate : decided.candidates) candidates.push_back(candidate_json(candidate));
    sort_by(candidates, "node");
    got["candidates"] = Json(std::move(candidates));
  }
  Json::Array writes;
  if (decided.chosen) {
    Json::Array choices = choices_of(decided);
    const bool tie = choices.size() > 1;
    got["choices"] = Json(std::move(choices));
    if (tie) return got;
    got["nominated"] = decided.choice()->node;
    Json::Array events;
    for (const PodPtr& victim : decided.choice()->victims) {
      events.push_back(Json::object({{"action", "Preempting"},
                                     {"note", preempted_text(cluster.pod, decided.choice()->node)},
                                     {"pod", victim->key().text()},
                                     {"reason", "Preempted"},
                                     {"type", "Normal"}}));
    }
    sort_by(events, "pod");
    got["events"] = Json(std::move(events));
    for (const PreemptionWrite& write : writes_for(cluster.pod, *decided.choice(), cluster.around)) {
      writes.push_back(write_json(write));
    }
    sort_by(writes, "pod");
  } else if (!decided.not_eligible) {
    got["nominated"] = "";
  }
  got["writes"] = Json(std::move(writes));
  return got;
}

std::optional<Mismatch> preempt(const Json& row) {
  auto cluster = read_cluster(row);
  if (!cluster) return Mismatch{"a cluster that decodes", cluster.error().text()};
  cluster->profile.preemption = {.percent = 100, .absolute = 100};
  const auto budgets = read_budgets(row);
  if (!budgets) return Mismatch{"budgets that decode", budgets.error().text()};
  const PodsOn pods_on = [&](const std::string& node) {
    const auto found = cluster->pods.find(node);
    return found == cluster->pods.end() ? std::vector<PodPtr>() : found->second;
  };
  const VolumeFilter no_volumes;
  const Placement refused = place_pod(cluster->pod, cluster->nodes, default_profile(), no_volumes, cluster->around);
  if (refused.node) return Mismatch{"a pod that fits nowhere", *refused.node};
  const PreemptionView view{.nodes = cluster->nodes,
                            .pods_on = pods_on,
                            .budgets = *budgets,
                            .around = cluster->around,
                            .volumes = no_volumes,
                            .profile = cluster->profile};
  const Preemption decided = decide_preemption(cluster->pod, refused, view);
  Json want = *row.find("want");
  for (const std::string_view member : {"writes", "events"}) {
    if (Json* list = want.find(member)) sort_by(*list->if_array(), "pod");
  }
  return support::compare(want, outcome_json(*cluster, refused, decided));
}

const bool kPreempt = support::add_vector_check("scheduling/preemption", preempt);

}  // namespace
}  // namespace spillway::scheduling
