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

/// Times by the oldest of the readings that the decision is based on; nullopt: the time of measurement is unknown.
std::optional<EvictionTimes> times_of(const eviction::PassResult& result, std::optional<Duration> reading_to_signal,
                                      Now now) {
  if (result.stats_ages.empty()) return std::nullopt;
  Duration age{};
  for (const auto& [signal, of_signal] : result.stats_ages) age = std::max(age, of_signal);
  return EvictionTimes{.reading = now.wall - std::chrono::duration_cast<microseconds>(age),
                       .reading_to_signal = reading_to_signal};
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

void EvictionEngine::record(JournalEntry entry) {
  if (witness_ != nullptr) witness_->on_decision(entry);
  decisions_.record(std::move(entry));
}

std::vector<const api::Pod*> EvictionEngine::candidates() const {
  std::vector<const api::Pod*> pods = active();
  std::erase_if(pods, [&](const api::Pod* pod) { return victims_.is_known(pod->metadata.uid); });
  return pods;
}

void EvictionEngine::run_pass(Now now) {
  if (reaction_ != nullptr && !claim()) return;  // Reacted is on its way, and a pass with it
  reaction_watches_ = false;
  metrics_.passes.add();
  pass_wanted_ = false;
  last_pass_ = now.mono;
  const std::vector<const api::Pod*> candidates = this->candidates();
  // The pass uses the last observation.
  if (pass_quietly(config_, state_, seen_, *last_summary_, candidates, now)) {
    met_at_pass_.clear();
    nobody_to_evict_ = false;
    return publish_plan();
  }
  const eviction::ConditionSet before = state_.conditions;
  eviction::PassResult result = judge(*last_summary_, candidates, OnPressure::kMayRelieve, now);
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
    settle(result, now);
  }
  publish_plan();
}

eviction::PassResult EvictionEngine::judge(const api::Summary& summary, std::span<const api::Pod* const> active,
                                           OnPressure then, Now now) {
  eviction::PassResult result = observe_pressure(config_, std::move(state_), summary, active, now);
  const bool by_memory = result.pending && is_memory(result.pending->acting.signal);
  const bool may_wait = then == OnPressure::kMayRelieve && by_memory && victims_.empty();
  if (may_wait && !emergency_with(kHardGrace, now) && relief_.wait(result, summary, active, last_id_, now)) {
    pass_wanted_ = true;
  } else if (result.pending && result.pending->reclaim.empty()) {
    choose_victim(config_, result, summary, active, nullptr, now);
  }
  state_ = result.state;
  met_at_pass_ = thresholds_met(state_.thresholds, eviction::observe(summary, config_.memory_estimator),
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
void EvictionEngine::settle(eviction::PassResult& result, Now now) {
  nobody_to_evict_ = !result.past_grace.empty() && result.actions.empty();
  for (const auto& [signal, age] : result.stats_ages) metrics_.record_stats_age(signal, age);
  for (const eviction::EvictPod& action : result.actions) carry_out(action, result, std::nullopt, now);
}

void EvictionEngine::begin_reclaim(eviction::PassResult result, Now now) {
  metrics_.reclaims.add();
  nobody_to_evict_ = false;
  reclaim_ = PendingReclaim{
      .id = ++last_id_, .result = std::move(result), .summary = last_summary_, .answered = false, .recheck_id = {}};
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
  if (!in_flight_) look_again(now);
}

void EvictionEngine::relieve(Now now) {
  if (!relief_.is_on() || !victims_.empty()) return;
  const bool could_wait = relief_.may_wait();
  relief_.begin(state_.thresholds, *last_summary_, candidates(), last_id_, now);
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
  if (done->is_worth_recording) record({.decision = done->decision, .eviction = {}});
  // An eviction waits for the answer: the reading that decides is taken now, not one that began before.
  if (waited) observe(ObserveDepth::kWhole, now);
}

/// `after`: what was seen since the node freed what it could; null: nothing.
void EvictionEngine::end_reclaim(const api::Summary* after, Now now) {
  PendingReclaim done = *std::exchange(reclaim_, std::nullopt);
  if (reaction_ != nullptr && !claim()) {
    pass_wanted_ = true;
    return;
  }
  reaction_watches_ = false;
  choose_victim(config_, done.result, *done.summary, candidates(), after, now);
  settle(done.result, now);
  const policy::Decision& decision = done.result.decision;
  if (decision.verdict == policy::Verdict::kActs && done.result.actions.empty()) {
    record({.decision = decision, .eviction = {}});
  }
  publish_plan();
}

/// Memory does not wait for a disk: the pass about the disk is dropped and repeated later.
void EvictionEngine::supersede_reclaim() {
  context_.log.info("memory is short: pods are evicted without waiting for the node's cleanup", {{"id", reclaim_->id}});
  policy::Decision& decision = reclaim_->result.decision;
  decision.reasons.insert(decision.reasons.begin(), {policy::ReasonCode::kReclaimSuperseded, {}});
  record({.decision = std::move(decision), .eviction = {}});
  reclaim_.reset();
  drop(reclaim_timer_);
  pass_wanted_ = true;
}

void EvictionEngine::carry_out(const eviction::EvictPod& action, const eviction::PassResult& result,
                               std::optional<Done> done, Now now) {
  const auto signal = eviction::parse_signal(action.metric_label);
  const bool by_memory = signal && is_memory(*signal);
  const Duration grace = seconds(std::max(action.grace_period_seconds, kStopSecondsMin));
  const bool lasts = !emergency_with(std::min<Duration>(grace, seconds(kStopSecondsMin)), now);
  const Urgency judged = by_memory && !lasts ? Urgency::kEmergency : Urgency::kGrace;
  const Urgency urgency = done ? done->urgency : judged;
  const bool emergency = urgency == Urgency::kEmergency;
  JournalEntry entry{.decision = decision_about(action, result.decision),
                     .eviction = action,
                     .emergency = emergency,
                     .times = times_of(result, done ? std::optional(done->took) : std::nullopt, now)};
  if (emergency) {
    entry.decision.reasons.push_back({policy::ReasonCode::kEmergency, {}});
    entry.decision.cost = {{"grace_seconds", std::int64_t{0}}};
  }
  context_.log.warning(decisions_.acts() ? "evicting pod" : "would evict pod",
                       {{"node", entry.decision.by},
                        {"pod", action.pod.text()},
                        {"signal", action.metric_label},
                        {"emergency", emergency ? "true" : "false"},
                        {"reasons", policy::render(entry.decision.reasons)}});
  record(std::move(entry));
  if (witness_ != nullptr) witness_->on_ending();
  pods_.evict(action, urgency, now);
  Victim victim{.action = action,
                .since = now.mono,
                .grace_end = now.mono + grace,
                .killed = emergency,
                .frees_memory = by_memory && action.grace_period_seconds <= eviction::kHardGraceSeconds,
                .available_then = {}};
  if (const auto& observation = seen_[victim.signal()]) victim.available_then = observation->available;
  victims_.add(std::move(victim));
  if (decisions_.acts()) metrics_.count_eviction(action.metric_label);
  if (decisions_.acts() && emergency) metrics_.emergencies.add();
  if (decisions_.acts()) post_evicted_event(context_, action, now);
}

void EvictionEngine::resume(const JournalEntry& decided, Now now) {
  const WitnessedStep step = take_down(&decided, now);
  if (!decided.eviction) return;
  const auto signal = eviction::parse_signal(decided.eviction->metric_label);
  const std::int64_t grace = std::max(decided.eviction->grace_period_seconds, kStopSecondsMin);
  victims_.add({.action = *decided.eviction,
                .since = now.mono,
                .grace_end = now.mono + seconds(grace),
                .killed = false,
                .frees_memory = signal && is_memory(*signal) &&
                                decided.eviction->grace_period_seconds <= eviction::kHardGraceSeconds,
                .available_then = {}});
}

void EvictionEngine::on_reacted(const Reacted& event, Now now) {
  const WitnessedStep step = take_down(&event, now);
  if (event.escalated) {
    for (Victim& victim : victims_.dying()) {
      if (victim.action.uid == event.uid && !victim.killed) take_grace(victim);
    }
    return;
  }
  in_flight_.reset();
  relief_.end_wait();
  drop(timer_);
  if (reclaim_) supersede_reclaim();
  reaction_watches_ = false;
  pass_wanted_ = false;
  last_pass_ = now.mono;
  last_summary_ = std::make_shared<const api::Summary>(summary_at(event, *last_summary_));
  seen_ = eviction::observe(*last_summary_, config_.memory_estimator);
  metrics_.passes.add();
  metrics_.observations.add();
  const Done done{event.emergency ? Urgency::kEmergency : Urgency::kGrace, event.took};
  const eviction::ConditionSet before = state_.conditions;
  const eviction::PassState state_before = state_;
  const std::vector<const api::Pod*> pods = active();
  eviction::PassResult result = judge(*last_summary_, pods, OnPressure::kChoose, now);
  bool accounted = false;
  for (const eviction::EvictPod& action : result.actions) {
    const bool acted_on = action.uid == event.uid;
    accounted = accounted || acted_on;
    const bool by_storage = !result.pending && result.decision.candidates.empty();
    if (acted_on || by_storage) carry_out(action, result, acted_on ? std::optional(done) : std::nullopt, now);
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
    result = judge(*last_summary_, only, OnPressure::kChoose, now);
    config_ = whole;
    for (const eviction::EvictPod& action : result.actions) carry_out(action, result, done, now);
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
  if (reaction_ == nullptr || plan_timer_ || !last_summary_) return;
  plan_timer_ = set_timer(EngineTimer::kPlan, now.mono + kPlanDelay);
}

void EvictionEngine::publish_plan() {
  if (reaction_ == nullptr || !last_summary_) return;
  ReactionPlan plan = plan_reaction(context_.options, state_, *last_summary_, candidates());
  if (victims_.any_frees_memory()) plan.act.clear();  // one at a time
  relief_.add_triggers(plan, state_.thresholds, seen_);
  if (relief_.may_wait()) {
    plan.look.insert(plan.look.end(), plan.act.begin(), plan.act.end());
    plan.act.clear();
  }
  reaction_watches_ = !plan.act.empty();
  reaction_->publish(std::move(plan));
}

}  // namespace spillway::agent
