#include "agent/eviction/eviction_engine.h"

#include "agent/contract/blind_zone.h"
#include "agent/contract/kill_grace.h"
#include "agent/eviction/eviction_events.h"
#include "agent/eviction/fall_rate.h"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <utility>

namespace spillway::agent {
namespace {

/// An observation that is not answered by then is given up: the host may be stuck in a system call.
constexpr Duration kObserveTimeout = seconds(10);
/// The least interval between observations of disks and processes.
constexpr Duration kPassIntervalMin = seconds(1);

}  // namespace

EvictionEngine::EvictionEngine(AgentContext& context, eviction::PassConfig config, EvictablePods& pods,
                               DecisionLog& decisions, telemetry::Registry* metrics, Reaction* reaction,
                               EvictionWitness* witness)
    : context_(context),
      config_(std::move(config)),
      pods_(pods),
      decisions_(decisions),
      reaction_(reaction),
      witness_(witness),
      metrics_(metrics),
      readings_(context.options.eviction, config_.memory_estimator),
      victims_(context.options.eviction.cleanup_wait),
      executor_(context, pods, decisions, readings_, metrics_, victims_, witness),
      relief_(context, config_, decisions.acts() ? context.options.eviction.relief : eviction::Relief::kOff),
      log_(context.log) {
  postpone_layout(config_, state_);
}

void EvictionEngine::start(Now now) {
  const WitnessedStep step = take_down(EngineStarted{}, now);
  observe(ObserveDepth::kWhole, now);
}

void EvictionEngine::observe(ObserveDepth depth, Now now) {
  drop(timer_);
  in_flight_ = {++last_id_, depth};
  wake_pending_ = false;
  metrics_.observations.add();
  context_.host_commands.emplace_back(Observe{last_id_, depth});
  timer_ = set_timer(EngineTimer::kNoAnswer, now.mono + kObserveTimeout);
}

client::ApiClient::TimerId EvictionEngine::set_timer(EngineTimer timer, Instant due) {
  return context_.api.at(due, [this, timer](Now later) { on_timer(timer, later); });
}

void EvictionEngine::drop(std::optional<client::ApiClient::TimerId>& timer) {
  if (timer) context_.api.cancel(*std::exchange(timer, std::nullopt));
}

void EvictionEngine::on_timer(EngineTimer timer, Now now) {
  const WitnessedStep step = take_down(timer, now);
  switch (timer) {
    case EngineTimer::kObserve:
      drop(timer_);
      observe(needs_pass(now) ? ObserveDepth::kWhole : ObserveDepth::kNodeMemory, now);
      return;
    case EngineTimer::kNoAnswer:
      return give_up_observation(now);
    case EngineTimer::kReclaim:
      return give_up_reclaim(now);
    case EngineTimer::kPlan:
      drop(plan_timer_);
      if (claim()) publish_plan();
      return;
  }
}

void EvictionEngine::give_up_observation(Now now) {
  drop(timer_);
  metrics_.failed_observations.add();
  context_.log.warning("observation not answered", {{"id", last_id_}});
  const bool recheck = reclaim_ && reclaim_->recheck_id == last_id_;
  if (recheck) end_reclaim(nullptr, now);
  observe(ObserveDepth::kWhole, now);
}

void EvictionEngine::on_pressure_wake(const PressureWake& event, Now now) {
  const WitnessedStep step = take_down(&event, now);
  context_.log.debug("pressure wake", {{"source", event.source}});
  if (in_flight_) {
    wake_pending_ = true;
  } else {
    observe(ObserveDepth::kNodeMemory, now);
  }
}

void EvictionEngine::observe_everything(Now now) {
  const WitnessedStep step = take_down(ObserveEverything{}, now);
  pass_wanted_ = true;
  if (!in_flight_) observe(ObserveDepth::kWhole, now);
}

void EvictionEngine::on_observed(const Observed& event, Now now, std::shared_ptr<const api::Summary> summary) {
  const WitnessedStep step = take_down(&event, now);
  if (!in_flight_ || in_flight_->id != event.id) return;  // given up, or unasked
  const ObserveDepth asked = std::exchange(in_flight_, std::nullopt)->depth;
  drop(timer_);
  const bool recheck = reclaim_ && reclaim_->recheck_id == event.id;
  if (!event.summary) {
    metrics_.failed_observations.add();
    if (!std::exchange(last_failed_, true)) {
      context_.log.warning("observation failed", {{"error", event.summary.error().text()}});
    }
    if (recheck) end_reclaim(nullptr, now);
    schedule(now);
    return;
  }
  learn(event, now);
  executor_.hasten(state_.thresholds, now);
  if (executor_.check_overdue(now)) pass_wanted_ = true;
  if (relief_.waits(now) && readings_.is_emergency(kHardGrace, now.mono)) relief_.end_wait();
  if (reclaim_ &&
      std::ranges::any_of(readings_.memory_thresholds_met(state_.thresholds), &eviction::Threshold::is_hard))
    supersede_reclaim();
  if (event.depth == ObserveDepth::kWhole) {
    readings_.set_whole(summary ? std::move(summary) : std::make_shared<const api::Summary>(*event.summary));
    relieve(now);
    const bool is_waiting = reclaim_ || relief_.waits(now);
    if (recheck && reclaim_) {
      end_reclaim(&*event.summary, now);
    } else if (needs_pass(now) || (asked == ObserveDepth::kWhole && victims_.empty() && !is_waiting)) {
      run_pass(now);
    }
  } else if (needs_pass(now) || relief_.is_due(state_.thresholds, readings_.seen(), now)) {
    observe(ObserveDepth::kWhole, now);
  }
  observe_or_schedule(now);
}

/// Stores the observed numbers, before and independent of any decision.
void EvictionEngine::learn(const Observed& event, Now now) {
  last_failed_ = false;
  readings_.add(*event.summary, now.mono);
  log_.report_crossings(readings_.memory_thresholds_met(state_.thresholds));
  if (event.layout && !state_.layout) {
    const std::string warning = adopt_layout(config_, *event.layout, state_);
    if (!warning.empty()) context_.log.warning("eviction thresholds", {{"warning", warning}});
  }
  if (event.depth != ObserveDepth::kWhole) return;
  metrics_.set_estimates(eviction::memory_estimates(*event.summary, state_.thresholds), config_.memory_estimator);
  for (const eviction::Signal signal : eviction::kSignals) {
    if (const auto left = readings_.forecast().seconds_to_threshold(signal, state_.thresholds, now.mono)) {
      metrics_.set_forecast(signal, *left);
    }
  }
}

void EvictionEngine::observe_or_schedule(Now now) {
  if (in_flight_) return;
  if (reclaim_ && reclaim_->answered && !reclaim_->recheck_id) {
    observe(ObserveDepth::kWhole, now);
    reclaim_->recheck_id = last_id_;
  } else if (wake_pending_) {
    observe(ObserveDepth::kNodeMemory, now);
  } else {
    schedule(now);
  }
}

bool EvictionEngine::needs_pass(Now now) const {
  if (reclaim_ || relief_.waits(now)) return false;
  if (!victims_.empty()) {
    if (!victims_.give_way(hard_met(state_.thresholds, readings_.seen()), readings_.seen(), now.mono)) return false;
    return !last_pass_ || now.mono - *last_pass_ >= kHelplessInterval;
  }
  if (!last_pass_ || pass_wanted_) return true;
  if (now.mono - *last_pass_ >= pass_interval(now)) return true;
  const auto grace_end = state_.grace.next_end(*last_pass_);
  if (grace_end && *grace_end <= now.mono) return true;
  // Signals that were not observed this time count as unchanged.
  const auto is_observed = [this](const eviction::Threshold& threshold) {
    return readings_.seen()[threshold.signal].has_value();
  };
  if (!std::ranges::equal(thresholds_met(state_.thresholds, readings_.seen(), eviction::Reclaim::kWithout),
                          reached_at_pass_ | std::views::filter(is_observed), eviction::same_threshold))
    return true;
  return nobody_to_evict_ && now.mono - *last_pass_ >= kHelplessInterval;
}

Duration EvictionEngine::next_interval(Now now) const {
  const ObserveOptions& options = context_.options.eviction.observe;
  if (last_failed_) return options.interval_max;
  const std::optional<Bytes> headroom = readings_.memory_headroom(state_.thresholds);
  Duration interval = options.interval_max;
  if (headroom && !reaction_watches_) {
    interval = observe_interval(*headroom, readings_.fall().steepest_per_second(now.mono, kFallMemory), options);
  }
  // Disks and processes: at half the time in which they would run short.
  for (const eviction::Signal signal : eviction::kSignals) {
    if (is_memory(signal) || !readings_.seen()[signal]) continue;
    const auto left = readings_.forecast().seconds_to_threshold(signal, state_.thresholds, now.mono);
    if (!left || *left <= 0 || *left > 60) continue;
    const auto half = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*left / 2));
    interval = std::min(interval, std::max<Duration>(half, kHelplessInterval));
  }
  if (nobody_to_evict_) interval = std::max(interval, std::min(kHelplessInterval, options.interval_max));
  if (relief_.waits(now)) interval = kBusyInterval;
  if (!victims_.empty()) interval = std::max(std::min(interval, kBusyInterval), options.interval_min);
  return interval;
}

/// The time between two whole passes: the monitoring interval, or half the time in which a disk or the processes would
/// run short.
Duration EvictionEngine::pass_interval(Now now) const {
  const Duration longest = context_.options.eviction.monitoring_interval;
  Duration interval = longest;
  for (const eviction::Signal signal : eviction::kSignals) {
    if (is_memory(signal)) continue;
    const auto left = readings_.forecast().seconds_to_threshold(signal, state_.thresholds, now.mono);
    if (!left || *left <= 0 || *left / 2 >= std::chrono::duration<double>(longest).count()) continue;
    interval = std::min(interval, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*left / 2)));
  }
  return std::clamp(interval, std::min(kPassIntervalMin, longest), longest);
}

void EvictionEngine::schedule(Now now) {
  Instant due = now.mono + next_interval(now);
  if (const auto wait_ends = relief_.wait_ends(now)) due = std::min(due, *wait_ends);
  if (last_pass_ && !last_failed_ && victims_.empty() && !reclaim_ && !relief_.waits(now)) {
    due = std::min(due, std::max(now.mono, *last_pass_ + pass_interval(now)));
    if (const auto grace_end = state_.grace.next_end(now.mono)) due = std::min(due, *grace_end);
  }
  timer_ = set_timer(EngineTimer::kObserve, due);
}

void EvictionEngine::on_pod_finished(const std::string& uid, Now now) {
  const WitnessedStep step = take_down(PodFinished{uid}, now);
  if (!executor_.finish(uid, now) || !victims_.empty()) return;
  pass_wanted_ = true;
  // An observation under way may show the node as it was while the pod lived: its answer is not awaited.
  const bool recheck = reclaim_ && in_flight_ && reclaim_->recheck_id == in_flight_->id;
  observe(ObserveDepth::kWhole, now);
  if (recheck) reclaim_->recheck_id = last_id_;
}

std::optional<policy::Decision> EvictionEngine::current_decision(Now now) const {
  if (!readings_.summary()) return std::nullopt;
  const auto acting =
      state_.crossed_before.empty() ? eviction::Signal::kMemoryAvailable : state_.crossed_before.front().signal;
  policy::Decision decision =
      eviction::current_decision(config_, state_, *readings_.summary(), pods_.active(), acting, now);
  if (!victims_.empty()) {
    decision.verdict = policy::Verdict::kWaits;
    decision.reasons.insert(decision.reasons.begin(), {policy::ReasonCode::kEvictionInProgress, {}});
  }
  relief_.add_to(decision, now);
  const EvictionOptions& options = context_.options.eviction;
  for (const BlindThreshold& each : thresholds_in_blind_zone(state_.thresholds, context_.machine.memory, options)) {
    decision.reasons.push_back(blind_zone_reason(each));
  }
  for (const eviction::Signal signal : eviction::kSignals) {
    const auto left = readings_.forecast().seconds_to_threshold(signal, state_.thresholds, now.mono);
    for (policy::Reason& reason : decision.reasons) {
      if (!left || *left <= 0 || *left > 1e9 || reason.code != policy::ReasonCode::kThresholdNotMet) continue;
      if (policy::text_fact(reason, "signal") != to_string(signal)) continue;
      reason.facts.push_back({"forecast_seconds", *left});
    }
  }
  return decision;
}

api::Json EvictionEngine::state(Now now) const {
  api::Json conditions = api::Json::array();
  for (const eviction::Condition each : state_.conditions.list()) conditions.if_array()->emplace_back(to_string(each));
  api::Json reached = api::Json::array();
  for (const eviction::Threshold& each : reached_at_pass_) reached.if_array()->emplace_back(to_string(each.signal));
  api::Json victims = api::Json::array();
  for (const Victim& each : victims_.dying()) {
    victims.if_array()->push_back(api::Json::object({{"killed", each.killed},
                                                     {"pod", each.action.pod.text()},
                                                     {"signal", to_string(each.signal())},
                                                     {"sinceSeconds", age_of(each.since, now)}}));
  }
  api::Json state = api::Json::object({{"conditions", std::move(conditions)},
                                       {"observing", in_flight_.has_value()},
                                       {"passAgeSeconds", age_of(last_pass_, now)},
                                       {"reclaiming", reclaim_.has_value()},
                                       {"relieving", relief_.is_under_way()},
                                       {"thresholdsMet", std::move(reached)},
                                       {"victims", std::move(victims)},
                                       {"watchedByThread", reaction_watches_}});
  if (readings_.summary() && readings_.summary()->node.memory && readings_.summary()->node.memory->time) {
    state["observationAgeSeconds"] =
        std::chrono::duration<double>(now.wall - *readings_.summary()->node.memory->time).count();
  }
  return state;
}

}  // namespace spillway::agent
