// Scheduler: pods that concern extenders: filter, prioritize, preempt and bind calls.
#include "controllers/scheduling/scheduler.h"
#include "controllers/shared/paths.h"
#include "policy/scheduling/extender_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using scheduling::ExtenderVerb;

/// The time for which a binding reported by an extender counts as made.
constexpr Duration kBoundSightMax = seconds(30);

bool is_same_document(const Result<api::Json>& document, const api::Pod& pod) {
  return document && document->string_at({"metadata", "uid"}) == pod.metadata.uid;
}

}  // namespace

/// A pod, while extenders filter and score its nodes.
struct Scheduler::ExtenderRound {
  PodPtr pod;
  bool heeds_promise = true;
  bool promised_alone = false;  // only the node it is promised was filtered
  api::Json document;
  scheduling::Survey survey;       // `refused` alone is read
  std::vector<std::string> names;  // the nodes that are left, sorted
  std::vector<std::size_t> filters;
  std::size_t next_filter = 0;
  std::map<std::string, std::int64_t> points;
  std::size_t unanswered = 0;
};

/// A pod, while extenders choose its victims.
struct Scheduler::VictimRound {
  PodPtr pod;
  std::string message;  // the refusals of the nodes, as in its status
  api::Json document;
  std::vector<scheduling::PreemptionCandidate> candidates;
  std::vector<std::size_t> extenders;
  std::size_t next = 0;
};

void Scheduler::on_extender_answer(std::uint64_t id, const Result<api::Response>& response, Now now) {
  desk_.on_answer(id, response, now);
  client_.on_wakeup(now);
  schedule(now);
}

bool Scheduler::concerns_extenders(const api::Pod& pod) const {
  if (options_.extenders.empty()) return false;
  return !desk_.asked_for(ExtenderVerb::kFilter, pod).empty() ||
         !desk_.asked_for(ExtenderVerb::kPrioritize, pod).empty() || !desk_.asked_for(ExtenderVerb::kBind, pod).empty();
}

void Scheduler::line_up(const PodPtr& pod) {
  if (rounds_.contains(pod->metadata.uid)) return;
  line_.emplace(-static_cast<std::int64_t>(api::priority_of(*pod)), ++turns_, pod->key().text());
}

void Scheduler::begin_rounds(Now now) {
  while (rounds_.size() + extender_bindings_ < options_.extended_max && !line_.empty()) {
    const client::ObjectKey key = std::get<client::ObjectKey>(*line_.begin());
    line_.erase(line_.begin());
    const PodPtr pod = pods_.cache().find(key);
    if (!pod || !still_waiting(pod) || rounds_.contains(pod->metadata.uid)) continue;
    begin_round(pod, true, now);
  }
}

void Scheduler::begin_round(const PodPtr& pod, bool heeds_promise, Now now) {
  const client::ObjectKey key = pod->key().text();
  const scheduling::PodVolumes pod_volumes(*pod, volumes_now());
  if (!pod_volumes.problem().empty()) {
    claimants_.insert(key);
    return refuse(pod, scheduling::refuse_everywhere(pod_volumes.problem(), placer_.nodes().size()), {}, now);
  }
  api::Pod asking = *pod;
  if (!heeds_promise) asking.status.nominated_node_name.clear();
  const scheduling::Profile& profile = placer_.profile_of(*pod);
  const scheduling::VolumeFilter volumes = pod_volumes.filter();
  if (volumes) claimants_.insert(key);  // changes during the extenders' calls must requeue it
  const auto count = static_cast<std::int64_t>(placer_.nodes().size());
  auto round = std::make_shared<ExtenderRound>();
  round->survey = scheduling::survey_nodes(
      asking, placer_.nodes(), profile, volumes, placer_.surroundings(),
      {.first = next_node_,
       .enough = static_cast<std::size_t>(scheduling::feasible_nodes_enough(count, profile.share))});
  if (round->survey.fitting.empty()) {
    return refuse(pod, scheduling::refusal_of(std::move(round->survey), placer_.nodes().size()), volumes, now);
  }
  for (const scheduling::FittingNode& node : round->survey.fitting) round->names.push_back(*node.name);
  std::ranges::sort(round->names);
  const std::string& promised = asking.status.nominated_node_name;
  round->promised_alone = !promised.empty() && round->names == std::vector{promised};
  if (!round->promised_alone) next_node_ = (next_node_ + round->survey.looked_at) % placer_.nodes().size();
  round->survey.fitting.clear();  // nodes in it may be removed
  round->pod = pod;
  round->heeds_promise = heeds_promise;
  round->filters = desk_.asked_for(ExtenderVerb::kFilter, *pod);
  rounds_[pod->metadata.uid] = round;
  client_.get(pod_path(*pod), [this, round](const Result<api::Json>& document, Now then) {
    if (!is_current(round)) return;
    if (!is_same_document(document, *round->pod)) {
      rounds_.erase(round->pod->metadata.uid);
      return queue_.fail(round->pod->key().text(), then.mono);
    }
    round->document = *document;
    ask_next_filter(round, then);
  });
}

bool Scheduler::is_current(const RoundPtr& round) const {
  const auto known = rounds_.find(round->pod->metadata.uid);
  return known != rounds_.end() && known->second == round;
}

std::vector<client::ObjectKey> Scheduler::keys_of_rounds() const {
  std::vector<client::ObjectKey> keys;
  for (const auto& [uid, round] : rounds_) keys.push_back(round->pod->key().text());
  return keys;
}

void Scheduler::ask_next_filter(const RoundPtr& round, Now now) {
  std::erase_if(round->names, [this](const std::string& name) { return !placer_.nodes().contains(name); });
  if (round->names.empty()) return refuse_round(round, now);
  if (round->next_filter == round->filters.size()) return ask_for_scores(round, now);
  const std::size_t extender = round->filters[round->next_filter];
  desk_.ask(extender, ExtenderVerb::kFilter,
            scheduling::node_question(desk_[extender], round->document, round->names, placer_.nodes()), now,
            [this, round](const Result<std::string>& body, Now then) { on_filtered(round, body, then); });
}

void Scheduler::on_filtered(const RoundPtr& round, const Result<std::string>& body, Now now) {
  if (!is_current(round)) return;
  const std::size_t extender = round->filters[round->next_filter++];
  Result<scheduling::FilterAnswer> answer = scheduling::FilterAnswer();
  if (!body) {
    answer = body.error();
  } else {
    answer = scheduling::read_filter_answer(desk_[extender], round->names, *body);
    if (!answer) answer = desk_.disbelieve(extender, ExtenderVerb::kFilter, answer.error());
  }
  if (!answer && !desk_[extender].ignorable) return fail_round(round, answer.error(), now);
  if (answer) {
    desk_.count_refusals(extender, answer->refused.size());
    for (const auto& [name, no] : answer->refused) {
      round->survey.refused.insert_or_assign(name, scheduling::Refusal{.filter = scheduling::Filter::kExtender,
                                                                       .misfits = {misfit_of(desk_[extender], no)},
                                                                       .hopeless = !no.resolvable});
    }
    round->names = std::move(answer->allowed);
  }
  ask_next_filter(round, now);
}

void Scheduler::ask_for_scores(const RoundPtr& round, Now now) {
  for (const std::string& name : round->names) round->points[name] = 0;
  const std::vector<std::size_t> extenders = desk_.asked_for(ExtenderVerb::kPrioritize, *round->pod);
  if (extenders.empty() || round->names.size() == 1) return end_round(round, now);
  round->unanswered = extenders.size();
  for (const std::size_t extender : extenders) {
    desk_.ask(
        extender, ExtenderVerb::kPrioritize,
        scheduling::node_question(desk_[extender], round->document, round->names, placer_.nodes()), now,
        [this, round, extender](const Result<std::string>& body, Now then) { on_scored(round, extender, body, then); });
  }
}

void Scheduler::on_scored(const RoundPtr& round, std::size_t extender, const Result<std::string>& body, Now now) {
  if (!is_current(round)) return;
  if (body) {
    const auto scores = scheduling::read_scores(desk_[extender], round->names, *body);
    if (!scores) {
      desk_.disbelieve(extender, ExtenderVerb::kPrioritize, scores.error());
    } else {
      for (const auto& [name, points] : *scores) round->points[name] += points;
    }
  }  // an extender without an answer has no preference
  if (--round->unanswered == 0) end_round(round, now);
}

void Scheduler::end_round(const RoundPtr& round, Now now) {
  rounds_.erase(round->pod->metadata.uid);
  const PodPtr pod = still_waiting(round->pod);
  if (!pod) return;
  const scheduling::PodVolumes volumes(*pod, volumes_now());
  scheduling::Placement placement;
  if (volumes.problem().empty()) {
    placement = scheduling::place_among(*pod, round->points, placer_.nodes(), placer_.profile_of(*pod),
                                        volumes.filter(), placer_.surroundings());
  }
  if (placement.node) return settle(pod, placement, volumes, now);
  log_.info("extenders rejected all nodes", {{"pod", pod->key().text()}});
  queue_.fail(pod->key().text(), now.mono);
}

void Scheduler::refuse_round(const RoundPtr& round, Now now) {
  rounds_.erase(round->pod->metadata.uid);
  const PodPtr pod = still_waiting(round->pod);
  if (!pod) return;
  if (round->promised_alone) return begin_round(pod, false, now);  // others may take it
  const scheduling::PodVolumes pod_volumes(*pod, volumes_now());
  const scheduling::VolumeFilter volumes = pod_volumes.filter();
  if (volumes) claimants_.insert(pod->key().text());
  refuse(pod, scheduling::refusal_of(std::move(round->survey), placer_.nodes().size()), volumes, now);
}

void Scheduler::fail_round(const RoundPtr& round, const Error& error, Now now) {
  rounds_.erase(round->pod->metadata.uid);
  const PodPtr pod = still_waiting(round->pod);
  if (!pod) return;
  scheduler_metrics_.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kError,
                                   queue_.course_of(pod->key().text()), now.mono);
  report(pod, error.text(), std::nullopt, now, "SchedulerError");
  queue_.fail(pod->key().text(), now.mono);
}

void Scheduler::bind_by_extender(std::size_t extender, const PodPtr& pod, const std::string& node, Now now) {
  // The pod takes a place among those that wait for extenders, so that a slow extender delays no others.
  --bindings_;
  ++extender_bindings_;
  desk_.ask(extender, ExtenderVerb::kBind, scheduling::binding_question(*pod, node), now,
            [this, extender, pod, node](const Result<std::string>& body, Now then) {
              --extender_bindings_;
              ++bindings_;
              Outcome outcome = body ? scheduling::read_binding_answer(*body) : Outcome(body.error());
              if (body && !outcome) outcome = desk_.disbelieve(extender, ExtenderVerb::kBind, outcome.error());
              if (!outcome && desk_[extender].ignorable) return bind_by_api(pod, node, then);
              on_bound(pod, node, outcome, then);
              if (!outcome) return;
              client_.at(then.mono + kBoundSightMax, [this, pod, node](Now later) {
                if (!assumed_.contains(pod->metadata.uid)) return;
                log_.warning("an extender has bound no pod that it says it has",
                             {{"pod", pod->key().text()}, {"node", node}});
                give_up(pod, node, later);
              });
            });
}

bool Scheduler::ask_about_victims(const PodPtr& pod, const std::string& message, const scheduling::Preemption& decided,
                                  Now /*now*/) {
  std::vector<std::size_t> extenders = desk_.asked_for(ExtenderVerb::kPreempt, *pod);
  if (extenders.empty()) return false;
  refused_.try_emplace(pod->key().text());
  auto round = std::make_shared<VictimRound>();
  round->pod = pod;
  round->message = message;
  round->candidates = decided.candidates;
  round->extenders = std::move(extenders);
  victim_rounds_[pod->metadata.uid] = round;
  client_.get(pod_path(*pod), [this, round](const Result<api::Json>& document, Now then) {
    if (!is_same_document(document, *round->pod)) {
      victim_rounds_.erase(round->pod->metadata.uid);
      queue_.wake(round->pod->key().text());
      return;
    }
    round->document = *document;
    ask_next_about_victims(round, then);
  });
  return true;
}

void Scheduler::ask_next_about_victims(const VictimRoundPtr& round, Now now) {
  const std::string& uid = round->pod->metadata.uid;
  const auto known = victim_rounds_.find(uid);
  if (known == victim_rounds_.end() || known->second != round) return;
  if (round->next < round->extenders.size() && !round->candidates.empty()) {
    const std::size_t extender = round->extenders[round->next];
    return desk_.ask(extender, ExtenderVerb::kPreempt,
                     scheduling::preemption_question(desk_[extender], round->document, round->candidates), now,
                     [this, round](const Result<std::string>& body, Now then) { on_victims(round, body, then); });
  }
  victim_rounds_.erase(uid);
  const PodPtr pod = still_waiting(round->pod);
  if (!pod || rounds_.contains(pod->metadata.uid)) return;  // a later attempt decides
  scheduling::Preemption decided;
  decided.candidates = std::move(round->candidates);
  decided.chosen = scheduling::cheapest_of(decided.candidates);
  const std::string none = decided.chosen ? "" : " preemption: no victims that the extenders agree to.";
  conclude(pod, round->message + none, decided, true, now);
}

void Scheduler::on_victims(const VictimRoundPtr& round, const Result<std::string>& body, Now now) {
  const auto known = victim_rounds_.find(round->pod->metadata.uid);
  if (known == victim_rounds_.end() || known->second != round) return;
  const std::size_t extender = round->extenders[round->next++];
  const scheduling::BudgetsByNamespace budgets = budgets_now();
  const scheduling::PodsOn on = [this](const std::string& node) { return pods_on(node); };
  const scheduling::PodVolumes pod_volumes(*round->pod, volumes_now());
  const scheduling::VolumeFilter volumes = pod_volumes.filter();
  Result<std::vector<scheduling::PreemptionCandidate>> answer = round->candidates;
  if (!body) {
    answer = body.error();
  } else {
    answer = scheduling::read_preemption_answer(desk_[extender], *round->pod, round->candidates,
                                                {.nodes = placer_.nodes(),
                                                 .pods_on = on,
                                                 .budgets = budgets,
                                                 .around = placer_.surroundings(),
                                                 .volumes = volumes,
                                                 .profile = placer_.profile_of(*round->pod),
                                                 .respects_budgets = options_.respect_budgets},
                                                *body);
    if (!answer) answer = desk_.disbelieve(extender, ExtenderVerb::kPreempt, answer.error());
  }
  if (answer) {
    round->candidates = *std::move(answer);
  } else if (!desk_[extender].ignorable) {
    victim_rounds_.erase(round->pod->metadata.uid);
    const PodPtr pod = still_waiting(round->pod);
    if (pod) conclude(pod, fmt::format("{} preemption: {}", round->message, answer.error().text()), {}, true, now);
    return;
  }
  ask_next_about_victims(round, now);
}

bool Scheduler::extended_preemption_holds(const api::Pod& asking, const Preemptor::Plan& plan) {
  const std::vector<PodPtr> there = pods_on(plan.choice.node);
  const bool all_there = std::ranges::all_of(plan.choice.victims, [&there](const PodPtr& victim) {
    return std::ranges::any_of(there,
                               [&victim](const PodPtr& other) { return other->metadata.uid == victim->metadata.uid; });
  });
  if (!all_there) return false;
  const scheduling::BudgetsByNamespace budgets = budgets_now();
  const scheduling::PodsOn on = [this](const std::string& node) { return pods_on(node); };
  const auto now = scheduling::candidate_of(plan.choice.node, plan.choice.victims, budgets);
  const scheduling::PodVolumes volumes(asking, volumes_now());
  if (!volumes.problem().empty()) return false;  // no node takes it, whichever pods are deleted
  return now.budget_violations <= plan.choice.budget_violations &&
         scheduling::frees_enough(asking, plan.choice,
                                  {.nodes = placer_.nodes(),
                                   .pods_on = on,
                                   .budgets = budgets,
                                   .around = placer_.surroundings(),
                                   .volumes = volumes.filter(),
                                   .profile = placer_.profile_of(asking)});
}

}  // namespace spillway::controllers
