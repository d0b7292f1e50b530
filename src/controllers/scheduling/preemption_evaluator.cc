#include "controllers/scheduling/preemption_evaluator.h"

#include "controllers/scheduling/extender_cycles.h"
#include "controllers/scheduling/pod_conditions.h"
#include "controllers/shared/paths.h"
#include "policy/scheduling/extender_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using scheduling::ExtenderVerb;

/// Nodes that are tried, the cheapest first, while brakes hold the preemption. Brakes count victims of owners and of
/// the cluster, so that nodes beyond the first twenty are held for the same cause.
constexpr int kBrakedTriesMax = 20;

bool has_more_names(const api::Json& before, const api::Json& after) {
  const api::Json::Object* names = after.if_object();
  return names != nullptr &&
         std::ranges::any_of(*names, [&before](const auto& each) { return before.find(each.key) == nullptr; });
}

/// True if the changed budget may allow more disruptions than before; a new budget never does.
bool allows_more(const api::PodDisruptionBudget& before, const api::PodDisruptionBudget& after) {
  const bool same_spec = before.selector == after.selector && before.min_available == after.min_available &&
                         before.max_unavailable == after.max_unavailable;
  return !same_spec || after.status.disruptions_allowed > before.status.disruptions_allowed ||
         // a pod whose disruption was granted already needs no further allowance
         has_more_names(before.status.disrupted_pods, after.status.disrupted_pods);
}

}  // namespace

PreemptionEvaluator::PreemptionEvaluator(Parts parts, Options options, Rng search, telemetry::Registry& metrics,
                                         Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      respects_budgets_(options.respects_budgets),
      search_(search),
      preemptor_(parts_.client, parts_.log, metrics, std::move(options.brakes),
                 {.events_of = hooks_.events_of,
                  .still_holds = [this](const Preemptor::Plan& plan) { return holds(plan); },
                  .on_withdrawn = [this](const Preemptor::Plan& plan, Now now) { on_withdrawn(plan, now); }}) {}

void PreemptionEvaluator::conclude(const PodPtr& pod, const std::string& message, const scheduling::Preemption& decided,
                                   bool by_extenders, Now now) {
  if (decided.choice() == nullptr) {
    const bool loses = !decided.not_eligible && !pod->status.nominated_node_name.empty();
    hooks_.report(pod, message, loses ? std::optional(std::string()) : std::nullopt, now);
    return;
  }
  std::vector<scheduling::PreemptionCandidate> candidates = decided.candidates;
  std::optional<std::size_t> chosen = decided.chosen;
  std::optional<lifecycle::Brakes::Answer> held;  // the brake of the cheapest candidate
  for (int tries = 0; chosen && tries < kBrakedTriesMax; ++tries) {
    const scheduling::PreemptionCandidate& choice = candidates[*chosen];
    Preemptor::Plan plan{pod, choice, scheduling::writes_for(*pod, choice, parts_.placer.surroundings()), by_extenders};
    auto brake = preemptor_.find_brake(plan, now);
    if (!brake) {
      preemptor_.record_brake(*pod, std::nullopt, now);
      return begin(std::move(plan), message, now);
    }
    if (!held) held = std::move(brake);
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(*chosen));
    chosen = scheduling::cheapest_of(candidates);
  }
  preemptor_.record_brake(*pod, held, now);
  hooks_.report(pod, fmt::format("{} preemption: held back: {}", message, policy::render(*held->held)), std::nullopt,
                now);
  parts_.client.at(held->ask_again, [this, key = pod->key().text()](Now) { parts_.queue.wake(key); });
}

void PreemptionEvaluator::begin(Preemptor::Plan plan, const std::string& message, Now now) {
  const PodPtr pod = plan.pod;
  hooks_.report(pod, message, plan.choice.node, now);
  for (const scheduling::PreemptionWrite& write : plan.writes) {
    if (write.kind == scheduling::PreemptionWrite::Kind::kClearNomination) {
      hooks_.promise({}, write.pod, plan.choice.node);
    }
  }
  hooks_.promise(plan.choice.node, pod, {});
  preemptor_.begin(std::move(plan), unscheduled_condition(*pod, message, "Unschedulable", now), now);
}

scheduling::BudgetsByNamespace PreemptionEvaluator::budgets_now() const {
  scheduling::BudgetsByNamespace budgets;
  for (const auto& [key, budget] : parts_.budgets.cache().all()) budgets[budget->metadata.ns].push_back(budget);
  return budgets;
}

void PreemptionEvaluator::on_budget(const BudgetPtr& before, const BudgetPtr& after) {
  if (!before) return;
  if (!after) return parts_.refused.requeue_all("PodDisruptionBudgetDelete");
  if (allows_more(*before, *after)) parts_.refused.requeue_all("PodDisruptionBudgetUpdate");
}

scheduling::Preemption PreemptionEvaluator::decide(const api::Pod& pod, const scheduling::Placement& refused,
                                                   const scheduling::VolumeFilter& volumes) {
  const scheduling::BudgetsByNamespace budgets = budgets_now();
  const scheduling::PodsOn on = [this](const std::string& node) { return hooks_.pods_on(node); };
  const scheduling::Profile& profile = parts_.placer.profile_of(pod);
  const auto potential = static_cast<std::int64_t>(refused.resolvable.size());
  const bool searches = scheduling::candidates_enough(potential, profile.preemption) < potential;
  return scheduling::decide_preemption(
      pod, refused,
      {.nodes = parts_.placer.nodes(),
       .pods_on = on,
       .budgets = budgets,
       .around = parts_.placer.surroundings(),
       .volumes = volumes,
       .profile = profile,
       .first_node = searches ? static_cast<std::size_t>(search_.below(static_cast<std::uint64_t>(potential))) : 0,
       .respects_budgets = respects_budgets_});
}

bool PreemptionEvaluator::holds(const Preemptor::Plan& plan) {
  const PodPtr pod = hooks_.still_waiting(plan.pod);
  if (!pod || hooks_.has_cycle(pod->metadata.uid)) return false;  // the pod may be about to get a free node
  if (!parts_.placer.nodes().contains(plan.choice.node)) return false;
  api::Pod asking = *pod;
  asking.status.nominated_node_name.clear();  // the promise is ours
  if (plan.by_extenders) return extended_holds(asking, plan);
  scheduling::Placement refused;
  refused.resolvable = {plan.choice.node};
  const scheduling::PodVolumes volumes(asking, hooks_.volumes_now());
  if (!volumes.problem().empty()) return false;  // no node has room, whichever pods are deleted
  const scheduling::Preemption now = decide(asking, refused, volumes.filter());
  return now.chosen && now.choice()->budget_violations <= plan.choice.budget_violations &&
         std::ranges::equal(
             now.choice()->victims, plan.choice.victims, {}, [](const PodPtr& victim) { return victim->metadata.uid; },
             [](const PodPtr& victim) { return victim->metadata.uid; });
}

void PreemptionEvaluator::on_withdrawn(const Preemptor::Plan& plan, Now now) {
  hooks_.promise({}, plan.pod, {});
  for (const scheduling::PreemptionWrite& write : plan.writes) {
    if (write.kind != scheduling::PreemptionWrite::Kind::kClearNomination) continue;
    const PodPtr other = parts_.pods.cache().find(write.pod->key().text());
    if (other) hooks_.restore_promise(other);  // if the pod's status still names the node
  }
  parts_.queue.fail(plan.pod->key().text(), now.mono);
}

bool PreemptionEvaluator::ask_extenders(const PodPtr& pod, const std::string& message,
                                        const scheduling::Preemption& decided) {
  std::vector<std::size_t> extenders = parts_.extender_calls.asked_for(ExtenderVerb::kPreempt, *pod);
  if (extenders.empty()) return false;
  parts_.refused.message_of(pod->key().text());
  auto review = std::make_shared<VictimReview>();
  review->pod = pod;
  review->message = message;
  review->candidates = decided.candidates;
  review->extenders = std::move(extenders);
  reviews_[pod->metadata.uid] = review;
  parts_.client.get(pod_path(*pod),
                    [this, review](const auto& document, Now then) { on_pod_read(review, document, then); });
  return true;
}

void PreemptionEvaluator::on_pod_read(const ReviewPtr& review, const Result<api::Json>& document, Now now) {
  if (!is_same_document(document, *review->pod)) {
    reviews_.erase(review->pod->metadata.uid);
    parts_.queue.wake(review->pod->key().text());
    return;
  }
  review->document = *document;
  ask_next(review, now);
}

bool PreemptionEvaluator::is_current(const ReviewPtr& review) const {
  const auto known = reviews_.find(review->pod->metadata.uid);
  return known != reviews_.end() && known->second == review;
}

void PreemptionEvaluator::ask_next(const ReviewPtr& review, Now now) {
  if (!is_current(review)) return;
  if (review->next < review->extenders.size() && !review->candidates.empty()) {
    const std::size_t extender = review->extenders[review->next];
    return parts_.extender_calls.ask(
        extender, ExtenderVerb::kPreempt,
        scheduling::preemption_question(parts_.extender_calls[extender], review->document, review->candidates), now,
        [this, review](const Result<std::string>& body, Now then) { on_victims(review, body, then); });
  }
  reviews_.erase(review->pod->metadata.uid);
  const PodPtr pod = hooks_.still_waiting(review->pod);
  if (!pod || hooks_.has_cycle(pod->metadata.uid)) return;  // the pod has another turn, which decides
  scheduling::Preemption decided;
  decided.candidates = std::move(review->candidates);
  decided.chosen = scheduling::cheapest_of(decided.candidates);
  const std::string none = decided.chosen ? "" : " preemption: no victims that the extenders agree to.";
  conclude(pod, review->message + none, decided, true, now);
}

void PreemptionEvaluator::on_victims(const ReviewPtr& review, const Result<std::string>& body, Now now) {
  if (!is_current(review)) return;
  const std::size_t extender = review->extenders[review->next++];
  const scheduling::BudgetsByNamespace budgets = budgets_now();
  const scheduling::PodsOn on = [this](const std::string& node) { return hooks_.pods_on(node); };
  const scheduling::PodVolumes pod_volumes(*review->pod, hooks_.volumes_now());
  const scheduling::VolumeFilter volumes = pod_volumes.filter();
  Result<std::vector<scheduling::PreemptionCandidate>> answer = review->candidates;
  if (!body) {
    answer = body.error();
  } else {
    answer = scheduling::read_preemption_answer(parts_.extender_calls[extender], *review->pod, review->candidates,
                                                {.nodes = parts_.placer.nodes(),
                                                 .pods_on = on,
                                                 .budgets = budgets,
                                                 .around = parts_.placer.surroundings(),
                                                 .volumes = volumes,
                                                 .profile = parts_.placer.profile_of(*review->pod),
                                                 .respects_budgets = respects_budgets_},
                                                *body);
    if (!answer) answer = parts_.extender_calls.disbelieve(extender, ExtenderVerb::kPreempt, answer.error());
  }
  if (answer) {
    review->candidates = *std::move(answer);
  } else if (!parts_.extender_calls[extender].ignorable) {
    reviews_.erase(review->pod->metadata.uid);
    const PodPtr pod = hooks_.still_waiting(review->pod);
    if (pod) conclude(pod, fmt::format("{} preemption: {}", review->message, answer.error().text()), {}, true, now);
    return;
  }
  ask_next(review, now);
}

bool PreemptionEvaluator::extended_holds(const api::Pod& asking, const Preemptor::Plan& plan) {
  const std::vector<PodPtr> there = hooks_.pods_on(plan.choice.node);
  const bool all_there = std::ranges::all_of(plan.choice.victims, [&there](const PodPtr& victim) {
    return std::ranges::any_of(there,
                               [&victim](const PodPtr& other) { return other->metadata.uid == victim->metadata.uid; });
  });
  if (!all_there) return false;
  const scheduling::BudgetsByNamespace budgets = budgets_now();
  const scheduling::PodsOn on = [this](const std::string& node) { return hooks_.pods_on(node); };
  const auto now = scheduling::candidate_of(plan.choice.node, plan.choice.victims, budgets);
  const scheduling::PodVolumes volumes(asking, hooks_.volumes_now());
  if (!volumes.problem().empty()) return false;  // no node has room, whichever pods are deleted
  return now.budget_violations <= plan.choice.budget_violations &&
         scheduling::frees_enough(asking, plan.choice,
                                  {.nodes = parts_.placer.nodes(),
                                   .pods_on = on,
                                   .budgets = budgets,
                                   .around = parts_.placer.surroundings(),
                                   .volumes = volumes.filter(),
                                   .profile = parts_.placer.profile_of(asking)});
}

}  // namespace spillway::controllers
