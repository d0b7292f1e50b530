// Pods that no node takes: their status, and the choice of victims for them.
#include "api/text/time_text.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/shared/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

/// Nodes that are tried, the cheapest first, while brakes hold the preemption.
constexpr int kBrakedTriesMax = 20;

/// Writes of the condition of a pod that no node takes: the first and its repetitions, a second apart.
constexpr int kRefusalWriteTries = 4;
constexpr Duration kRefusalWriteWait = seconds(1);

std::string render_refusals(const std::vector<policy::Reason>& reasons) {
  std::string text;
  for (const policy::Reason& reason : reasons) text += (text.empty() ? "" : "; ") + policy::render(reason);
  return text;
}

api::Json unscheduled_condition(const api::Pod& pod, const std::string& message, std::string_view reason, Now now) {
  const api::PodCondition* condition = api::find_condition(pod.status.conditions, "PodScheduled");
  const bool was_false = condition != nullptr && condition->status == "False";
  api::Json report =
      api::Json::object({{"type", "PodScheduled"}, {"status", "False"}, {"reason", reason}, {"message", message}});
  if (!was_false) report["lastTransitionTime"] = api::format_time(now.wall);
  if (pod.metadata.generation != 0) report["observedGeneration"] = pod.metadata.generation;
  return report;
}

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
         has_more_names(before.status.disrupted_pods, after.status.disrupted_pods);  // evictions granted already
}

}  // namespace

void Scheduler::refuse(const PodPtr& pod, const scheduling::Placement& placement,
                       const scheduling::VolumeFilter& volumes, Now now) {
  const client::ObjectKey key = pod->key().text();
  queue_.refuse(key, now.mono, placement.refused_by);
  scheduler_metrics_.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kUnschedulable,
                                   queue_.course_of(key), now.mono);
  const bool sampled = timings_.next_is_sampled();
  const scheduling::FilterSet by = placement.refused_by;
  if (by.contains(scheduling::Filter::kPodTopologySpread) || by.contains(scheduling::Filter::kInterPodAffinity) ||
      by.contains(scheduling::Filter::kExtender)) {
    related_.insert(key);
  }
  arm_retry();
  const std::string& uid = pod->metadata.uid;
  if (preemptor_.is_under_way(uid) || victim_rounds_.contains(uid)) {  // its reported reason is kept
    refused_.try_emplace(key);
    return;
  }
  preemptor_.count_attempt();
  const std::optional<Instant> begin = timings_.read();
  const scheduling::Preemption decided = decide(*pod, placement, volumes);
  if (const auto took = timings_.since(begin)) {
    using Status = SchedulerTimings::Status;
    timings_.note_point(SchedulerTimings::Point::kPostFilter,
                        decided.choice() != nullptr ? Status::kSuccess : Status::kUnschedulable,
                        pod->spec.scheduler_name, sampled, *took);
  }
  if (decided.choice() && ask_about_victims(pod, placement.message, decided, now)) return;
  const std::string message = decided.message.empty() ? placement.message : placement.message + " " + decided.message;
  if (refused_.try_emplace(key).first->second != message) {
    log_.info("pod fits nowhere",
              {{"pod", key}, {"message", message}, {"reasons", render_refusals(placement.reasons)}});
  }
  conclude(pod, message, decided, false, now);
}

void Scheduler::conclude(const PodPtr& pod, const std::string& message, const scheduling::Preemption& decided,
                         bool by_extenders, Now now) {
  if (decided.choice() == nullptr) {
    const bool loses = !decided.not_eligible && !pod->status.nominated_node_name.empty();
    report(pod, message, loses ? std::optional(std::string()) : std::nullopt, now);
    return;
  }
  std::vector<scheduling::PreemptionCandidate> candidates = decided.candidates;
  std::optional<std::size_t> chosen = decided.chosen;
  std::optional<lifecycle::Brakes::Answer> held;  // the brake of the cheapest candidate
  for (int tries = 0; chosen && tries < kBrakedTriesMax; ++tries) {
    const scheduling::PreemptionCandidate& choice = candidates[*chosen];
    Preemptor::Plan plan{pod, choice, scheduling::writes_for(*pod, choice, placer_.surroundings()), by_extenders};
    auto brake = preemptor_.find_brake(plan, now);
    if (!brake) {
      preemptor_.note_brake(*pod, std::nullopt, now);
      return begin_preemption(std::move(plan), message, now);
    }
    if (!held) held = std::move(brake);
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(*chosen));
    chosen = scheduling::cheapest_of(candidates);
  }
  preemptor_.note_brake(*pod, held, now);
  report(pod, fmt::format("{} preemption: held back: {}", message, policy::render(*held->held)), std::nullopt, now);
  client_.at(held->ask_again, [this, key = pod->key().text()](Now) { queue_.wake(key); });
}

void Scheduler::begin_preemption(Preemptor::Plan plan, const std::string& message, Now now) {
  const PodPtr pod = plan.pod;
  report(pod, message, plan.choice.node, now);
  for (const scheduling::PreemptionWrite& write : plan.writes) {
    if (write.kind == scheduling::PreemptionWrite::Kind::kClearNomination) {
      promise_node({}, write.pod, plan.choice.node);
    }
  }
  promise_node(plan.choice.node, pod);
  preemptor_.begin(std::move(plan), unscheduled_condition(*pod, message, "Unschedulable", now), now);
}

void Scheduler::report(const PodPtr& pod, const std::string& message, std::optional<std::string> promise, Now now,
                       std::string_view reason) {
  std::string& known = refused_[pod->key().text()];
  const bool says_anything = known != message;
  known = message;
  if (says_anything) {
    events_of(*pod).record(client::reference_to(*pod), client::EventType::kWarning, "FailedScheduling", message, now);
  }
  const bool is_promised = promise && !promise->empty();
  if (is_promised || (!says_anything && !promise)) return;  // a promise is written with its condition
  api::Json status =
      api::Json::object({{"conditions", api::Json::array({unscheduled_condition(*pod, message, reason, now)})}});
  if (promise) {
    status["nominatedNodeName"] = api::Json();
    promise_node({}, pod);
  }
  const api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", pod->metadata.uid}})}, {"status", std::move(status)}});
  write_refusal(pod, message, patch, kRefusalWriteTries);
}

void Scheduler::write_refusal(const PodPtr& pod, const std::string& message, const api::Json& patch, int tries) {
  client_.patch(pod_path(*pod, "status"), client::PatchType::kStrategicMerge, patch,
                [this, pod, message, patch, tries](const Result<api::Json>& outcome, Now now) {
                  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
                  log_.warning("the condition of a pod was not written",
                               {{"pod", pod->key().text()}, {"error", outcome.error().text()}});
                  if (!still_waits(*pod, message)) return;
                  if (tries <= 1) return refused_[pod->key().text()].clear();
                  client_.at(now.mono + kRefusalWriteWait, [this, pod, message, patch, tries](Now) {
                    if (still_waits(*pod, message)) write_refusal(pod, message, patch, tries - 1);
                  });
                });
}

bool Scheduler::still_waits(const api::Pod& pod, const std::string& message) const {
  const client::ObjectKey key = pod.key().text();
  const PodPtr known = pods_.cache().find(key);
  const auto refused = refused_.find(key);
  return known && known->metadata.uid == pod.metadata.uid && refused != refused_.end() && refused->second == message &&
         !preemptor_.is_under_way(pod.metadata.uid);
}

scheduling::BudgetsByNamespace Scheduler::budgets_now() const {
  scheduling::BudgetsByNamespace budgets;
  for (const auto& [key, budget] : budgets_.cache().all()) budgets[budget->metadata.ns].push_back(budget);
  return budgets;
}

void Scheduler::on_budget(const BudgetPtr& before, const BudgetPtr& after) {
  if (!before) return;
  if (!after) return try_all_again("PodDisruptionBudgetDelete");
  if (allows_more(*before, *after)) try_all_again("PodDisruptionBudgetUpdate");
}

scheduling::Preemption Scheduler::decide(const api::Pod& pod, const scheduling::Placement& refused,
                                         const scheduling::VolumeFilter& volumes) {
  const scheduling::BudgetsByNamespace budgets = budgets_now();
  const scheduling::PodsOn on = [this](const std::string& node) { return pods_on(node); };
  const scheduling::Profile& profile = placer_.profile_of(pod);
  const auto potential = static_cast<std::int64_t>(refused.resolvable.size());
  const bool searches = scheduling::candidates_enough(potential, profile.preemption) < potential;
  return scheduling::decide_preemption(
      pod, refused,
      {.nodes = placer_.nodes(),
       .pods_on = on,
       .budgets = budgets,
       .around = placer_.surroundings(),
       .volumes = volumes,
       .profile = profile,
       .first_node = searches ? static_cast<std::size_t>(search_.below(static_cast<std::uint64_t>(potential))) : 0,
       .respects_budgets = options_.respect_budgets});
}

bool Scheduler::preemption_holds(const Preemptor::Plan& plan) {
  const PodPtr pod = still_waiting(plan.pod);
  if (!pod || rounds_.contains(pod->metadata.uid)) return false;  // perhaps about to get a free node
  if (!placer_.nodes().contains(plan.choice.node)) return false;
  api::Pod asking = *pod;
  asking.status.nominated_node_name.clear();  // the promise is ours
  if (plan.by_extenders) return extended_preemption_holds(asking, plan);
  scheduling::Placement refused;
  refused.resolvable = {plan.choice.node};
  const scheduling::PodVolumes volumes(asking, volumes_now());
  if (!volumes.problem().empty()) return false;  // no node takes it, whichever pods are deleted
  const scheduling::Preemption now = decide(asking, refused, volumes.filter());
  return now.chosen && now.choice()->budget_violations <= plan.choice.budget_violations &&
         std::ranges::equal(
             now.choice()->victims, plan.choice.victims, {}, [](const PodPtr& victim) { return victim->metadata.uid; },
             [](const PodPtr& victim) { return victim->metadata.uid; });
}

void Scheduler::on_preemption_withdrawn(const Preemptor::Plan& plan, Now now) {
  promise_node({}, plan.pod);
  for (const scheduling::PreemptionWrite& write : plan.writes) {
    if (write.kind != scheduling::PreemptionWrite::Kind::kClearNomination) continue;
    const PodPtr other = pods_.cache().find(write.pod->key().text());
    if (other) note_promise(other, other);  // if its status still has the promise
  }
  queue_.fail(plan.pod->key().text(), now.mono);
}

}  // namespace spillway::controllers
