// Passes of the eviction engine, and what follows from them.
#include "agent/contract/kill_grace.h"
#include "agent/eviction/eviction_engine.h"
#include "agent/eviction/eviction_events.h"
#include "policy/eviction/quiet_pass.h"
#include "policy/eviction/reasons.h"

#include <algorithm>

namespace spillway::agent {
namespace {

/// Pods that arrive together lead to one plan.
constexpr Duration kPlanDelay = milliseconds(20);
/// The interval between equal events: one of upstream's passes.
constexpr Duration kThresholdEventInterval = seconds(10);

policy::Reason reclaimed_reason(const ReclaimOutcome& outcome) {
  policy::Reason reason{policy::ReasonCode::kReclaimed,
                        {{"what", std::string(to_string(outcome.action))},
                         {"deleted", outcome.deleted},
                         {"freed_bytes", outcome.freed.count()}}};
  if (!outcome.problem.empty()) reason.facts.push_back({"problem", outcome.problem});
  return reason;
}

}  // namespace

std::vector<const api::Pod*> EvictionEngine::active() const {
  std::vector<const api::Pod*> pods = pods_.active();
  if (witness_ != nullptr) witness_->on_pods(pods);
  return pods;
}

bool EvictionEngine::claim() {
  const bool claimed = reaction_->claim();
  if (witness_ != nullptr) witness_->on_claim(claimed);
  return claimed;
}

std::vector<const api::Pod*> EvictionEngine::candidates() const {
  std::vector<const api::Pod*> pods = active();
  std::erase_if(pods, [&](const api::Pod* pod) { return victims_.is_known(pod->metadata.uid); });
  return pods;
}

void EvictionEngine::run_pass(Now now) {
  if (reaction_ != nullptr && !claim()) return;  // Reacted will arrive, and cause the next pass
  reaction_watches_ = false;
  metrics_.passes.add();
  pass_wanted_ = false;
  last_pass_ = now.mono;
  const std::vector<const api::Pod*> candidates = this->candidates();
  // The pass uses the last observation.
  if (pass_quietly(config_, state_, readings_.seen(), *readings_.summary(), candidates, now)) {
    reached_at_pass_.clear();
    nobody_to_evict_ = false;
    return publish_plan();
  }
  const eviction::ConditionSet before = state_.conditions;
  eviction::PassResult result = evaluate(*readings_.summary(), candidates, OnPressure::kMayRelieve, now);
  for (const Victim& victim : victims_.dying()) {
    result.decision.reasons.push_back(
        {policy::ReasonCode::kVictimOverdue, {{"overdue_pod", victim.action.pod.text()}}});
  }
  conclude(result, before, now);
  if (result.pending) {
    begin_reclaim(std::move(result), now);
  } else if (relief_.waits(now)) {
    nobody_to_evict_ = false;
  } else {
    execute(result, now);
  }
  publish_plan();
}

eviction::PassResult EvictionEngine::evaluate(const api::Summary& summary, std::span<const api::Pod* const> active,
                                              OnPressure then, Now now) {
  eviction::PassResult result = observe_pressure(config_, std::move(state_), summary, active, now);
  const bool by_memory = result.pending && is_memory(result.pending->acting.signal);
  const bool may_wait = then == OnPressure::kMayRelieve && by_memory && victims_.empty();
  if (may_wait && !readings_.is_emergency(kHardGrace, now.mono) &&
      relief_.wait(result, summary, active, last_id_, now)) {
    pass_wanted_ = true;
  } else if (result.pending && result.pending->reclaim.empty()) {
    choose_victim(config_, result, summary, active, nullptr, now);
  }
  state_ = result.state;
  reached_at_pass_ = thresholds_met(state_.thresholds, eviction::observe(summary, config_.memory_estimator),
                                    eviction::Reclaim::kWithout);
  const bool due = !threshold_event_at_ || now.mono - *threshold_event_at_ >= kThresholdEventInterval;
  if (!result.node_event.empty() && (due || !result.actions.empty())) {
    threshold_event_at_ = now.mono;
    if (decisions_.acts()) record_threshold_met(context_, result.node_event, now);
  }
  return result;
}

void EvictionEngine::conclude(const eviction::PassResult& result, const eviction::ConditionSet& before, Now now) {
  if (state_.conditions == before) return;
  log_.on_conditions_changed();
  context_.log.info("pressure conditions changed", {{"reasons", policy::render(result.decision.reasons)}});
  if (witness_ != nullptr) witness_->on_conditions(state_.conditions);
  if (on_conditions_) on_conditions_(now);
}

/// Executes the decision of a pass.
void EvictionEngine::execute(eviction::PassResult& result, Now now) {
  nobody_to_evict_ = !result.past_grace.empty() && result.actions.empty();
  for (const auto& [signal, age] : result.stats_ages) metrics_.record_stats_age(signal, age);
  for (const eviction::EvictPod& action : result.actions) executor_.evict(action, result, std::nullopt, now);
}

void EvictionEngine::begin_reclaim(eviction::PassResult result, Now now) {
  metrics_.reclaims.add();
  nobody_to_evict_ = false;
  reclaim_ = PendingReclaim{.id = ++last_id_,
                            .result = std::move(result),
                            .summary = readings_.summary(),
                            .answered = false,
                            .recheck_id = {}};
  context_.host_commands.emplace_back(ReclaimNode{reclaim_->id, reclaim_->result.pending->reclaim});
  drop(reclaim_timer_);
  reclaim_timer_ = set_timer(EngineTimer::kReclaim, now.mono + kReclaimTimeout);
}

void EvictionEngine::give_up_reclaim(Now now) {
  drop(reclaim_timer_);
  if (!reclaim_ || reclaim_->answered) return;
  context_.log.warning("the node has not freed anything in time", {{"id", reclaim_->id}});
  end_reclaim(nullptr, now);
}

void EvictionEngine::on_reclaimed(const Reclaimed& event, Now now) {
  const WitnessedStep step = take_down(&event, now);
  if (!reclaim_ || reclaim_->id != event.id) return;  // given up, or superseded
  drop(reclaim_timer_);
  reclaim_->answered = true;
  for (const ReclaimOutcome& outcome : event.outcomes) {
    reclaim_->result.decision.reasons.push_back(reclaimed_reason(outcome));
    log_.report_reclaimed(outcome);
  }
  if (!in_flight_) observe_or_schedule(now);
}

void EvictionEngine::relieve(Now now) {
  if (!relief_.is_on() || !victims_.empty()) return;
  const bool could_wait = relief_.may_wait();
  relief_.begin(state_.thresholds, *readings_.summary(), candidates(), last_id_, now);
  if (reaction_ == nullptr || relief_.may_wait() == could_wait || !claim()) return;
  reaction_watches_ = false;
  publish_plan();
}

void EvictionEngine::on_relieved(const Relieved& event, Now now) {
  const WitnessedStep step = take_down(&event, now);
  const bool waited = relief_.waits(now);
  const std::optional<ReliefResult> done = relief_.on_relieved(event, now);
  if (!done) return;  // given up
  metrics_.relieved_bytes.add(static_cast<double>(done->freed.count()));
  if (done->is_worth_recording) executor_.record({.decision = done->decision, .eviction = {}});
  // An eviction waits for the answer: the reading that decides is taken now, not one that began before.
  if (waited) observe(ObserveDepth::kWhole, now);
}

/// `after`: the observation after a reclaim; null: there was no reclaim.
void EvictionEngine::end_reclaim(const api::Summary* after, Now now) {
  PendingReclaim done = *std::exchange(reclaim_, std::nullopt);
  if (reaction_ != nullptr && !claim()) {
    pass_wanted_ = true;
    return;
  }
  reaction_watches_ = false;
  choose_victim(config_, done.result, *done.summary, candidates(), after, now);
  execute(done.result, now);
  const policy::Decision& decision = done.result.decision;
  if (decision.verdict == policy::Verdict::kActs && done.result.actions.empty()) {
    executor_.record({.decision = decision, .eviction = {}});
  }
  publish_plan();
}

/// Memory does not wait for a disk: the pass about the disk is dropped and repeated later.
void EvictionEngine::supersede_reclaim() {
  context_.log.info("memory is short: pods are evicted without waiting for the node's cleanup", {{"id", reclaim_->id}});
  policy::Decision& decision = reclaim_->result.decision;
  decision.reasons.insert(decision.reasons.begin(), {policy::ReasonCode::kReclaimSuperseded, {}});
  executor_.record({.decision = std::move(decision), .eviction = {}});
  reclaim_.reset();
  drop(reclaim_timer_);
  pass_wanted_ = true;
}

void EvictionEngine::resume(const JournalEntry& decided, Now now) {
  const WitnessedStep step = take_down(&decided, now);
  if (!decided.eviction) return;
  executor_.resume(*decided.eviction, now);
}

void EvictionEngine::on_reacted(const Reacted& event, Now now) {
  const WitnessedStep step = take_down(&event, now);
  if (event.escalated) {
    executor_.take_grace(event.uid);
    return;
  }
  in_flight_.reset();
  relief_.end_wait();
  drop(timer_);
  if (reclaim_) supersede_reclaim();
  reaction_watches_ = false;
  pass_wanted_ = false;
  last_pass_ = now.mono;
  readings_.replace(std::make_shared<const api::Summary>(summary_at(event, *readings_.summary())));
  metrics_.passes.add();
  metrics_.observations.add();
  const EvictionExecutor::Done done{event.emergency ? Urgency::kEmergency : Urgency::kGrace, event.took};
  const eviction::ConditionSet before = state_.conditions;
  const eviction::PassState state_before = state_;
  const std::vector<const api::Pod*> pods = active();
  eviction::PassResult result = evaluate(*readings_.summary(), pods, OnPressure::kChoose, now);
  bool accounted = false;
  for (const eviction::EvictPod& action : result.actions) {
    const bool acted_on = action.uid == event.uid;
    accounted = accounted || acted_on;
    const bool by_storage = !result.pending && result.decision.candidates.empty();
    if (acted_on || by_storage) executor_.evict(action, result, acted_on ? std::optional(done) : std::nullopt, now);
  }
  const auto victim = std::ranges::find_if(pods, [&](const api::Pod* pod) { return pod->metadata.uid == event.uid; });
  if (!accounted && victim != pods.end()) {
    // The pods changed under the plan, or local storage took precedence: this pod was ended all the same.
    context_.log.warning("the pod ended by the watch is not the one this pass chose",
                         {{"pod", (*victim)->key().text()}});
    state_ = state_before;
    const eviction::PassConfig whole = config_;
    config_.local_storage_limits = eviction::LocalStorageLimits::kIgnored;
    const api::Pod* const only[] = {*victim};
    result = evaluate(*readings_.summary(), only, OnPressure::kChoose, now);
    config_ = whole;
    for (const eviction::EvictPod& action : result.actions) executor_.evict(action, result, done, now);
  }
  nobody_to_evict_ = !result.past_grace.empty() && result.actions.empty();
  context_.log.info(
      "memory watch acted",
      {{"pod_uid", event.uid}, {"micros_to_signal", std::chrono::duration_cast<microseconds>(event.took).count()}});
  conclude(result, before, now);
  publish_plan();
  schedule(now);
}

void EvictionEngine::on_pods_changed(Now now) {
  const WitnessedStep step = take_down(PodsChanged{}, now);
  if (reaction_ == nullptr || plan_timer_ || !readings_.summary()) return;
  plan_timer_ = set_timer(EngineTimer::kPlan, now.mono + kPlanDelay);
}

void EvictionEngine::publish_plan() {
  if (reaction_ == nullptr || !readings_.summary()) return;
  ReactionPlan plan = plan_reaction(context_.options, state_, *readings_.summary(), candidates());
  if (victims_.any_frees_memory()) plan.act.clear();  // at most one pod per pass
  relief_.add_triggers(plan, state_.thresholds, readings_.seen());
  if (relief_.may_wait()) {
    plan.wake.insert(plan.wake.end(), plan.act.begin(), plan.act.end());
    plan.act.clear();
  }
  reaction_watches_ = !plan.act.empty();
  reaction_->publish(std::move(plan));
}

}  // namespace spillway::agent
