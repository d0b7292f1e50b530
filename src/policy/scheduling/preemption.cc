#include "policy/scheduling/preemption.h"

#include "api/text/time_text.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace spillway::scheduling {

namespace {

constexpr std::string_view kPreemptionPrefix = "preemption: ";
constexpr std::string_view kPreemptionForbidden = "not eligible due to preemptionPolicy=Never.";
constexpr std::string_view kVictimsLeaving = "not eligible due to a terminating pod on the nominated node.";
constexpr std::string_view kPreemptionUseless = "Preemption is not helpful for scheduling";
constexpr std::string_view kBudgetsForbid = "Disruption budgets do not allow the preemption";
constexpr std::string_view kNoVictims = "No preemption victims found for incoming pod";

/// A pod that has not started counts as the youngest.
WallTime start_of(const api::Pod& pod) {
  return pod.status.start_time.value_or(WallTime::max());
}

/// Sort key: smaller is more important. Ties keep the order of pods_on().
auto importance_of(const PodPtr& pod) {
  return std::tuple(-static_cast<std::int64_t>(api::priority_of(*pod)), start_of(*pod));
}

bool is_marked(const api::Pod& pod) {
  const api::PodCondition* known = api::find_condition(pod.status.conditions, kDisruptionTarget);
  return known != nullptr && known->status == "True" && known->reason == kPreemptionByScheduler;
}

bool is_being_preempted(const api::Pod& pod) {
  return pod.metadata.deletion_timestamp && is_marked(pod);
}

bool selects_for_budget(const api::PodDisruptionBudget& budget, const api::Pod& pod) {
  if (budget.selector.is_everything() || !budget.selector.matches(pod.metadata.labels)) return false;
  const api::Json& disrupted = budget.status.disrupted_pods;
  return !disrupted.is_object() || disrupted.find(pod.metadata.name) == nullptr;
}

/// Checks in turn for the pods of one node if the budgets still allow an eviction. Each takes its share, even if it is
/// reprieved.
class BudgetCheckout {
 public:
  explicit BudgetCheckout(const BudgetsByNamespace& budgets) : budgets_(budgets) {}

  bool violates(const api::Pod& pod) {
    const auto here = budgets_.find(pod.metadata.ns);
    if (here == budgets_.end() || pod.metadata.labels.empty()) return false;
    bool violates = false;
    for (const auto& budget : here->second) {
      if (!selects_for_budget(*budget, pod)) continue;
      const auto left = left_.try_emplace(budget.get(), budget->status.disruptions_allowed).first;
      violates = --left->second < 0 || violates;
    }
    return violates;
  }

 private:
  const BudgetsByNamespace& budgets_;
  std::map<const api::PodDisruptionBudget*, std::int64_t> left_;
};

/// Tries to place the pod on a node without some of the node's pods.
class PreemptionTrial {
 public:
  struct Outcome {
    std::optional<PreemptionCandidate> candidate;
    std::vector<std::string> obstacles;  // in upstream's words; without a candidate at least one
  };

  PreemptionTrial(const api::Pod& pod, const PreemptionView& view)
      : pod_(pod),
        view_(view),
        pending_(make_pending(pod, view.profile)),
        topology_(view.nodes, view.around),
        relations_(pending_, view.around, topology_) {}

  Outcome run(const std::string& name) {
    const std::size_t node = *topology_.number_of(name);
    policy::NodeLoad left(topology_.load(node).node);
    left.image_bytes.clear();  // not used by filters
    std::vector<PodPtr> lower;
    for (const PodPtr& other : view_.pods_on(name)) {
      if (api::priority_of(*other) >= api::priority_of(pod_)) {
        left.add_unscored(*other);
      } else {
        lower.push_back(other);
      }
    }
    if (lower.empty()) return {std::nullopt, {std::string(kNoVictims)}};
    for (const PodPtr& other : lower) relations_.remove(node, *other);
    Outcome outcome;
    if (const auto no = refuse(node, left)) {
      for (const Misfit& misfit : no->misfits) outcome.obstacles.push_back(misfit.text);
      for (const PodPtr& other : lower) relations_.add(node, *other);
      return outcome;
    }
    std::ranges::stable_sort(lower, {}, importance_of);
    PreemptionCandidate found = reprieve(node, std::move(left), lower);
    found.node = name;
    for (const PodPtr& victim : found.victims) relations_.add(node, *victim);
    if (found.victims.empty()) {
      outcome.obstacles.push_back(fmt::format("expected at least one victim pod on node \"{}\"", name));
    } else {
      outcome.candidate = std::move(found);
    }
    return outcome;
  }

 private:
  std::optional<Refusal> refuse(std::size_t node, const policy::NodeLoad& load) const {
    return refuse_with_load(pending_, relations_, topology_, node, load, view_.volumes, view_.around);
  }

  /// Reprieves the pods that may stay, the most important first. `lower` is in order of importance.
  PreemptionCandidate reprieve(std::size_t node, policy::NodeLoad left, const std::vector<PodPtr>& lower) {
    BudgetCheckout budgets(view_.budgets);
    std::vector<PodPtr> violating;
    std::vector<PodPtr> others;
    for (const PodPtr& pod : lower) (budgets.violates(*pod) ? violating : others).push_back(pod);
    PreemptionCandidate found;
    const auto put_back = [&](const PodPtr& pod) {
      policy::NodeLoad with = left;
      with.add_unscored(*pod);
      relations_.add(node, *pod);
      if (!refuse(node, with)) {
        left = std::move(with);
        return;
      }
      relations_.remove(node, *pod);
      found.victims.push_back(pod);
    };
    for (const PodPtr& pod : violating) put_back(pod);
    found.budget_violations = found.victims.size();
    for (const PodPtr& pod : others) put_back(pod);
    std::ranges::stable_sort(found.victims, {}, importance_of);
    return found;
  }

  const api::Pod& pod_;
  const PreemptionView& view_;
  PendingPod pending_;
  Topology topology_;
  Relations relations_;  // relations without removed pods
};

/// The reason why the pod must not preempt now; empty: it may.
std::string_view find_ineligibility(const api::Pod& pod, const Placement& refused, const PreemptionView& view) {
  if (pod.spec.preemption_policy == "Never") return kPreemptionForbidden;
  const std::string& promised = pod.status.nominated_node_name;
  if (promised.empty() || !std::ranges::binary_search(refused.resolvable, promised)) return {};
  const bool victims_remain = std::ranges::any_of(view.pods_on(promised), [&pod](const PodPtr& other) {
    return api::priority_of(*other) < api::priority_of(pod) && is_being_preempted(*other);
  });
  return victims_remain ? kVictimsLeaving : std::string_view();
}

}  // namespace

PreemptionCost cost_of(const PreemptionCandidate& candidate) {
  PreemptionCost cost;
  cost.budget_violations = candidate.budget_violations;
  cost.victims = candidate.victims.size();
  if (candidate.victims.empty()) return cost;
  cost.highest_priority = api::priority_of(*candidate.victims.front());
  WallTime oldest = WallTime::max();
  for (const PodPtr& victim : candidate.victims) {
    const std::int32_t priority = api::priority_of(*victim);
    cost.priorities += static_cast<std::int64_t>(priority) - std::numeric_limits<std::int32_t>::min();
    if (priority == cost.highest_priority) oldest = std::min(oldest, start_of(*victim));
  }
  cost.oldest_start = -oldest.time_since_epoch().count();
  return cost;
}

Preemption decide_preemption(const api::Pod& pod, const Placement& refused, const PreemptionView& view) {
  Preemption decided;
  if (view.nodes.empty() || !view.profile.preempts) return decided;
  if (const std::string_view why = find_ineligibility(pod, refused, view); !why.empty()) {
    decided.not_eligible = true;
    decided.message = fmt::format("{}{}", kPreemptionPrefix, why);
    return decided;
  }
  std::map<std::string, std::size_t> obstacles;
  if (refused.resolvable.size() < view.nodes.size()) {
    obstacles[std::string(kPreemptionUseless)] = view.nodes.size() - refused.resolvable.size();
  }
  const std::size_t potential = refused.resolvable.size();
  const auto enough =
      static_cast<std::size_t>(candidates_enough(static_cast<std::int64_t>(potential), view.profile.preemption));
  std::optional<PreemptionTrial> trial;
  bool spares_budgets = false;
  for (std::size_t i = 0; i < potential && (decided.candidates.size() < enough || !spares_budgets); ++i) {
    const std::string& name = refused.resolvable[(view.first_node + i) % potential];
    const policy::NodeLoad& load = view.nodes.at(name);
    if (!load.lowest_priority || *load.lowest_priority >= api::priority_of(pod)) {
      ++obstacles[std::string(kNoVictims)];
      continue;
    }
    if (!trial) trial.emplace(pod, view);
    PreemptionTrial::Outcome outcome = trial->run(name);
    for (const std::string& obstacle : outcome.obstacles) ++obstacles[obstacle];
    if (!outcome.candidate) continue;
    if (view.respects_budgets && outcome.candidate->budget_violations > 0) {
      ++obstacles[std::string(kBudgetsForbid)];
      continue;
    }
    spares_budgets = spares_budgets || outcome.candidate->budget_violations == 0;
    decided.candidates.push_back(*std::move(outcome.candidate));
  }
  if (decided.candidates.empty()) {
    decided.message = std::string(kPreemptionPrefix) + unavailable_text(view.nodes.size(), obstacles);
    return decided;
  }
  decided.chosen = cheapest_of(decided.candidates);
  return decided;
}

std::optional<std::size_t> cheapest_of(const std::vector<PreemptionCandidate>& candidates) {
  const auto best = std::ranges::min_element(candidates, {}, [](const PreemptionCandidate& candidate) {
    return std::pair(cost_of(candidate), candidate.node);
  });
  if (best == candidates.end()) return std::nullopt;
  return static_cast<std::size_t>(best - candidates.begin());
}

PreemptionCandidate candidate_of(std::string node, std::vector<PodPtr> victims, const BudgetsByNamespace& budgets) {
  PreemptionCandidate candidate{.node = std::move(node), .victims = std::move(victims), .budget_violations = 0};
  std::ranges::stable_sort(candidate.victims, {}, importance_of);
  BudgetCheckout checkout(budgets);
  for (const PodPtr& victim : candidate.victims) {
    if (checkout.violates(*victim)) ++candidate.budget_violations;
  }
  return candidate;
}

bool frees_enough(const api::Pod& pod, const PreemptionCandidate& candidate, const PreemptionView& view) {
  const PendingPod pending = make_pending(pod, view.profile);
  Topology topology(view.nodes, view.around);
  const auto node = topology.number_of(candidate.node);
  if (!node) return false;
  Relations relations(pending, view.around, topology);
  policy::NodeLoad left(topology.load(*node).node);
  left.image_bytes.clear();  // not used by filters
  for (const PodPtr& other : view.pods_on(candidate.node)) {
    const bool is_victim = std::ranges::any_of(
        candidate.victims, [&other](const PodPtr& victim) { return victim->metadata.uid == other->metadata.uid; });
    if (is_victim) {
      relations.remove(*node, *other);
    } else {
      left.add_unscored(*other);
    }
  }
  return !refuse_with_load(pending, relations, topology, *node, left, view.volumes, view.around);
}

std::vector<PreemptionWrite> writes_for(const api::Pod& pod, const PreemptionCandidate& choice,
                                        const Surroundings& around) {
  using Kind = PreemptionWrite::Kind;
  std::vector<PreemptionWrite> writes;
  for (const PodPtr& victim : choice.victims) {
    if (!is_marked(*victim)) writes.push_back({Kind::kMarkDisrupted, victim});
    writes.push_back({Kind::kDelete, victim});
  }
  for (const PodPtr& other : around.promised_below(choice.node, pod)) {
    writes.push_back({Kind::kClearNomination, other});
  }
  return writes;
}

api::Json status_patch(const PreemptionWrite& write, std::string_view scheduler, WallTime at) {
  api::Json status = api::Json::object({{"nominatedNodeName", api::Json()}});
  if (write.kind == PreemptionWrite::Kind::kMarkDisrupted) {
    api::Json condition =
        api::Json::object({{"type", kDisruptionTarget},
                           {"status", "True"},
                           {"reason", kPreemptionByScheduler},
                           {"message", fmt::format("{}: preempting to accommodate a higher priority pod", scheduler)},
                           {"lastTransitionTime", api::format_time(at)}});
    if (const std::int64_t generation = write.pod->metadata.generation; generation != 0) {
      condition["observedGeneration"] = generation;
    }
    status = api::Json::object({{"conditions", api::Json::array({std::move(condition)})}});
  }
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", write.pod->metadata.uid}})}, {"status", std::move(status)}});
}

std::string preempted_text(const api::Pod& pod, std::string_view node) {
  return fmt::format("Preempted by pod {} on node {}", pod.metadata.uid, node);
}

std::vector<policy::Candidate> victims_of(const api::Pod& pod, const PreemptionCandidate& choice) {
  std::vector<policy::Candidate> victims;
  for (const PodPtr& victim : choice.victims) {
    victims.push_back({.subject = {.kind = "Pod",
                                   .ns = victim->metadata.ns,
                                   .name = victim->metadata.name,
                                   .uid = victim->metadata.uid},
                       .reason = {policy::ReasonCode::kPreempted,
                                  {{"node", choice.node},
                                   {"priority", static_cast<std::int64_t>(api::priority_of(*victim))},
                                   {"for_priority", static_cast<std::int64_t>(api::priority_of(pod))}}},
                       .decided_by = {}});
  }
  return victims;
}

std::vector<policy::Candidate> candidates_of(const Placement& refused) {
  std::vector<policy::Candidate> candidates;
  for (const policy::Reason& reason : refused.reasons) {
    const auto node = policy::text_fact(reason, "node");
    if (!node || candidates.size() == kNodesKept) continue;
    policy::Candidate candidate{.subject = {.kind = "Node", .ns = {}, .name = std::string(*node), .uid = {}},
                                .reason = reason,
                                .decided_by = {}};
    std::erase_if(candidate.reason.facts, [](const policy::Fact& fact) { return fact.name == "node"; });
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace spillway::scheduling
