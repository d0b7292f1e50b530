#include "agent/eviction_engine.h"

#include "api/codec.h"
#include "api/event.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::agent {
namespace {

/// An observation that is not answered by then is given up: the host may be stuck in a system call.
constexpr Duration kObserveTimeout = seconds(10);
/// At least that long between two looks while a victim is dying, or while nobody can be evicted.
constexpr Duration kBusyInterval = milliseconds(10);
constexpr Duration kHelplessInterval = milliseconds(100);
/// What a kill itself takes, on top of the grace.
constexpr Duration kKillMargin = milliseconds(200);
constexpr Duration kRecentFall = seconds(2);
constexpr Duration kFallMemory = seconds(10);
/// Pods that come together make one plan.
constexpr Duration kPlanDelay = milliseconds(20);
constexpr std::string_view kComponent = "kubelet";

std::string rendered(const std::vector<policy::Reason>& reasons) {
  std::string text;
  for (const policy::Reason& reason : reasons) {
    if (!text.empty()) text += "; ";
    text += policy::render(reason);
  }
  return text;
}

}  // namespace

EvictionMetrics::EvictionMetrics(telemetry::Registry* target) : registry(target) {
  if (registry == nullptr) return;
  passes = registry->counter("spillway_eviction_passes_total", "Eviction passes over a whole observation");
  observations = registry->counter("spillway_observations_total", "Observations of the node");
  failed_observations = registry->counter("spillway_observation_failures_total", "Observations that failed");
  emergencies = registry->counter("spillway_emergency_evictions_total", "Evictions without grace");
}

void EvictionMetrics::count_eviction(const std::string& signal) {
  if (registry == nullptr) return;
  registry
      ->counter("kubelet_evictions", "Cumulative number of pod evictions by eviction signal",
                {{"eviction_signal", signal}})
      .add();
}

void EvictionMetrics::record_stats_age(eviction::Signal signal, Duration age) {
  if (registry == nullptr) return;
  registry
      ->histogram("kubelet_eviction_stats_age_seconds",
                  "Time between when stats are collected, and when pod is evicted based on those stats",
                  {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, {{"eviction_signal", to_string(signal)}})
      .observe(std::chrono::duration<double>(age).count());
}

EvictionEngine::EvictionEngine(AgentContext& context, eviction::PassConfig config, PodWorkers& workers,
                               Journal* journal, telemetry::Registry* metrics, Reaction* reaction)
    : context_(context),
      config_(std::move(config)),
      workers_(workers),
      journal_(journal),
      reaction_(reaction),
      metrics_(metrics) {
  const std::string warning = adopt_layout(config_, {}, state_);
  if (!warning.empty()) context_.log.warning("eviction thresholds", {{"warning", warning}});
}

void EvictionEngine::start(Now now) {
  observe(ObserveDepth::kWhole, now);
}

void EvictionEngine::observe(ObserveDepth depth, Now now) {
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  in_flight_ = {++last_id_, depth};
  wake_pending_ = false;
  metrics_.observations.add();
  context_.host_commands.emplace_back(Observe{last_id_, depth});
  timer_ = context_.api.at(now.mono + kObserveTimeout, [this](Now later) {
    timer_.reset();
    metrics_.failed_observations.add();
    context_.log.warning("observation not answered", {{"id", last_id_}});
    observe(ObserveDepth::kWhole, later);
  });
}

void EvictionEngine::on_pressure_wake(const PressureWake& event, Now now) {
  context_.log.debug("pressure wake", {{"source", event.source}});
  if (in_flight_) {
    wake_pending_ = true;
  } else {
    observe(ObserveDepth::kNodeMemory, now);
  }
}

void EvictionEngine::on_observed(const Observed& event, Now now) {
  if (!in_flight_ || in_flight_->id != event.id) return;  // given up, or unasked
  const ObserveDepth asked = std::exchange(in_flight_, std::nullopt)->depth;
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  if (!event.summary) {
    metrics_.failed_observations.add();
    if (!std::exchange(last_failed_, true)) {
      context_.log.warning("observation failed", {{"error", event.summary.error().text()}});
    }
    schedule(now);
    return;
  }
  last_failed_ = false;
  seen_ = eviction::observe(*event.summary);
  if (const auto& memory = seen_[eviction::Signal::kMemoryAvailable]) fall_.add(Bytes{memory->available}, now.mono);
  escalate(now);
  give_up_waiting(now);
  if (event.depth == ObserveDepth::kWhole) {
    last_summary_ = std::make_shared<const api::Summary>(*event.summary);
    if (victims_.empty() && (asked == ObserveDepth::kWhole || needs_pass(now))) run_pass(now);
  } else if (needs_pass(now)) {
    observe(ObserveDepth::kWhole, now);
  }
  if (in_flight_) return;
  if (wake_pending_) {
    observe(ObserveDepth::kNodeMemory, now);
  } else {
    schedule(now);
  }
}

bool EvictionEngine::needs_pass(Now now) const {
  if (!victims_.empty()) return false;
  if (!last_pass_ || pass_wanted_) return true;
  if (now.mono - *last_pass_ >= context_.options.eviction.monitoring_interval) return true;
  const auto grace_end = state_.grace.next_end(*last_pass_);
  if (grace_end && *grace_end <= now.mono) return true;
  const std::vector<eviction::Threshold> met = memory_thresholds_met();
  if (!std::ranges::equal(met, met_at_pass_, eviction::same_threshold)) return true;
  return nobody_to_evict_ && now.mono - *last_pass_ >= kHelplessInterval;
}

std::vector<eviction::Threshold> EvictionEngine::memory_thresholds_met() const {
  std::vector<eviction::Threshold> met = thresholds_met(state_.thresholds, seen_, eviction::Reclaim::kWithout);
  std::erase_if(met, [](const eviction::Threshold& threshold) { return !is_memory(threshold.signal); });
  return met;
}

Duration EvictionEngine::next_interval(Now now) const {
  const ObserveOptions& options = context_.options.eviction.observe;
  if (last_failed_) return options.interval_max;
  std::optional<Bytes> headroom;
  for (const eviction::Threshold& threshold : state_.thresholds) {
    const auto& observation = seen_[threshold.signal];
    if (!is_memory(threshold.signal) || !observation) continue;
    const auto limit = amount_of(threshold.value, observation->capacity);
    if (!limit) continue;
    const Bytes left = Bytes{observation->available} - limit->bytes();
    if (left >= Bytes{0}) headroom = std::min(left, headroom.value_or(left));
  }
  Duration interval = options.interval_max;
  if (headroom && !reaction_watches_) {
    interval = observe_interval(*headroom, fall_.steepest_per_second(now.mono, kFallMemory), options);
  }
  if (nobody_to_evict_) interval = std::max(interval, std::min(kHelplessInterval, options.interval_max));
  if (!victims_.empty()) interval = std::max(std::min(interval, kBusyInterval), options.interval_min);
  return interval;
}

void EvictionEngine::schedule(Now now) {
  Instant due = now.mono + next_interval(now);
  if (last_pass_ && !last_failed_ && victims_.empty()) {
    due = std::min(due, std::max(now.mono, *last_pass_ + context_.options.eviction.monitoring_interval));
    if (const auto grace_end = state_.grace.next_end(now.mono)) due = std::min(due, *grace_end);
  }
  timer_ = context_.api.at(due, [this](Now later) {
    timer_.reset();
    observe(needs_pass(later) ? ObserveDepth::kWhole : ObserveDepth::kNodeMemory, later);
  });
}

void EvictionEngine::run_pass(Now now) {
  if (reaction_ != nullptr && !reaction_->claim()) return;  // Reacted is on its way, and a pass with it
  reaction_watches_ = false;
  metrics_.passes.add();
  pass_wanted_ = false;
  last_pass_ = now.mono;
  const eviction::ConditionSet before = state_.conditions;
  const eviction::PassResult result = judge(*last_summary_, workers_.active(), now);
  for (const eviction::EvictPod& action : result.actions) carry_out(action, result, std::nullopt, now);
  conclude(result, before, now);
  publish_plan();
}

eviction::PassResult EvictionEngine::judge(const api::Summary& summary, std::span<const api::Pod* const> active,
                                           Now now) {
  eviction::PassResult result = decide_eviction(config_, std::move(state_), summary, active, now);
  state_ = std::move(result.state);
  met_at_pass_ = memory_thresholds_met();
  nobody_to_evict_ = !result.past_grace.empty() && result.actions.empty();
  for (const auto& [signal, age] : result.stats_ages) metrics_.record_stats_age(signal, age);
  if (!result.node_event.empty() && !result.actions.empty()) {
    context_.events.record(node_reference(context_.options.node_name), client::EventType::kWarning,
                           "EvictionThresholdMet", result.node_event, now);
  }
  return result;
}

void EvictionEngine::conclude(const eviction::PassResult& result, const eviction::ConditionSet& before, Now now) {
  if (state_.conditions == before) return;
  context_.log.info("pressure conditions changed", {{"reasons", rendered(result.decision.reasons)}});
  if (on_conditions_) on_conditions_(now);
}

void EvictionEngine::on_reacted(const Reacted& event, Now now) {
  if (event.escalated) {
    for (Victim& victim : victims_) {
      if (victim.uid == event.uid && !victim.killed) take_grace(victim);
    }
    return;
  }
  in_flight_.reset();
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  reaction_watches_ = false;
  pass_wanted_ = false;
  last_pass_ = now.mono;
  last_summary_ = std::make_shared<const api::Summary>(summary_at(event, *last_summary_));
  seen_ = eviction::observe(*last_summary_);
  metrics_.passes.add();
  metrics_.observations.add();
  const Urgency urgency = event.emergency ? Urgency::kEmergency : Urgency::kGrace;
  const eviction::ConditionSet before = state_.conditions;
  const eviction::PassState state_before = state_;
  const std::vector<const api::Pod*> active = workers_.active();
  eviction::PassResult result = judge(*last_summary_, active, now);
  bool accounted = false;
  for (const eviction::EvictPod& action : result.actions) {
    const bool acted_on = action.uid == event.uid;
    accounted = accounted || acted_on;
    const bool by_storage = !result.pending && result.decision.candidates.empty();
    if (acted_on || by_storage) carry_out(action, result, acted_on ? std::optional(urgency) : std::nullopt, now);
  }
  const auto victim = std::ranges::find_if(active, [&](const api::Pod* pod) { return pod->metadata.uid == event.uid; });
  if (!accounted && victim != active.end()) {
    // The pods changed under the plan, or local storage came first: this pod was ended all the same.
    context_.log.warning("the pod ended by the watch is not the one this pass chose",
                         {{"pod", (*victim)->key().text()}});
    state_ = state_before;
    const eviction::PassConfig whole = config_;
    config_.local_storage_limits = eviction::LocalStorageLimits::kIgnored;
    const api::Pod* const only[] = {*victim};
    result = judge(*last_summary_, only, now);
    config_ = whole;
    for (const eviction::EvictPod& action : result.actions) carry_out(action, result, urgency, now);
  }
  context_.log.info(
      "memory watch acted",
      {{"pod_uid", event.uid}, {"micros_to_signal", std::chrono::duration_cast<microseconds>(event.took).count()}});
  conclude(result, before, now);
  publish_plan();
  schedule(now);
}

void EvictionEngine::on_pods_changed(Now now) {
  if (reaction_ == nullptr || plan_timer_ || !last_summary_) return;
  plan_timer_ = context_.api.at(now.mono + kPlanDelay, [this](Now) {
    plan_timer_.reset();
    if (reaction_->claim()) publish_plan();
  });
}

void EvictionEngine::publish_plan() {
  if (reaction_ == nullptr || !last_summary_) return;
  ReactionPlan plan = plan_reaction(context_.options, state_, *last_summary_, workers_.active());
  if (std::ranges::any_of(victims_, &Victim::frees_memory)) plan.act.clear();  // one at a time
  reaction_watches_ = !plan.act.empty();
  reaction_->publish(std::move(plan));
}

bool EvictionEngine::emergency_with(Duration grace, Now now) const {
  const auto& memory = seen_[eviction::Signal::kMemoryAvailable];
  if (!memory) return false;
  const Bytes fall = fall_.steepest_per_second(now.mono, kRecentFall);
  return is_emergency(Bytes{memory->available}, context_.options.eviction.blind_zone, fall, grace + kKillMargin);
}

void EvictionEngine::carry_out(const eviction::EvictPod& action, const eviction::PassResult& result,
                               std::optional<Urgency> done, Now now) {
  const auto signal = eviction::parse_signal(action.metric_label);
  const bool by_memory = signal && is_memory(*signal);
  const Duration grace = seconds(std::max<std::int64_t>(action.grace_period_seconds, 1));
  const Urgency judged = by_memory && emergency_with(grace, now) ? Urgency::kEmergency : Urgency::kGrace;
  const Urgency urgency = done.value_or(judged);
  const bool emergency = urgency == Urgency::kEmergency;
  JournalEntry entry{.decision = decision_about(action, result.decision), .eviction = action, .emergency = emergency};
  if (emergency) entry.decision.reasons.push_back({policy::ReasonCode::kEmergency, {}});
  context_.log.warning("evicting pod", {{"node", entry.decision.by},
                                        {"pod", action.pod.text()},
                                        {"signal", action.metric_label},
                                        {"emergency", emergency ? "true" : "false"},
                                        {"reasons", rendered(entry.decision.reasons)}});
  if (journal_ != nullptr) journal_->append(entry);
  workers_.evict(action, urgency, now);
  victims_.push_back({.uid = action.uid,
                      .since = now.mono,
                      .grace_end = now.mono + grace,
                      .killed = emergency,
                      .frees_memory = by_memory && action.grace_period_seconds <= eviction::kHardGraceSeconds});
  metrics_.count_eviction(action.metric_label);
  if (emergency) metrics_.emergencies.add();
  post_evicted_event(action, now);
}

void EvictionEngine::escalate(Now now) {
  for (Victim& victim : victims_) {
    if (!victim.killed && emergency_with(std::max(Duration{}, victim.grace_end - now.mono), now)) take_grace(victim);
  }
}

void EvictionEngine::take_grace(Victim& victim) {
  victim.killed = true;
  metrics_.emergencies.add();
  context_.log.warning("taking the grace from a pod being evicted", {{"pod_uid", victim.uid}});
  workers_.kill_now(victim.uid);
}

void EvictionEngine::give_up_waiting(Now now) {
  const Duration limit = context_.options.eviction.cleanup_wait;
  const auto gave_up = std::erase_if(victims_, [&](const Victim& victim) { return now.mono - victim.since >= limit; });
  if (gave_up == 0) return;
  context_.log.warning("evicted pod is not gone in time", {{"pods", gave_up}});
  if (victims_.empty()) pass_wanted_ = true;
}

void EvictionEngine::on_pod_finished(const std::string& uid, Now now) {
  if (std::erase_if(victims_, [&](const Victim& victim) { return victim.uid == uid; }) == 0) return;
  if (!victims_.empty()) return;
  pass_wanted_ = true;
  if (!in_flight_) observe(ObserveDepth::kWhole, now);
}

void EvictionEngine::post_evicted_event(const eviction::EvictPod& action, Now now) {
  const std::string name = fmt::format("{}.{:016x}", action.pod.name, now.wall.time_since_epoch().count() * 1000);
  api::Event event;
  event.metadata.ns = action.pod.ns;
  event.metadata.name = name;
  event.metadata.annotations = action.annotations;
  event.involved_object = {.kind = "Pod",
                           .api_version = "v1",
                           .ns = action.pod.ns,
                           .name = action.pod.name,
                           .uid = action.uid,
                           .resource_version = {},
                           .field_path = {}};
  event.type = "Warning";
  event.reason = "Evicted";
  event.message = action.message;
  event.source_component = kComponent;
  event.source_host = context_.options.node_name;
  event.reporting_component = kComponent;
  event.reporting_instance = context_.options.node_name;
  event.first_timestamp = now.wall;
  event.last_timestamp = now.wall;
  event.count = 1;
  context_.api.create(client::object_path("v1", "events", action.pod.ns), api::encode(event),
                      [log = context_.log](const Result<api::Json>& outcome, Now) {
                        if (!outcome) log.warning("eviction event not written", {{"error", outcome.error().text()}});
                      });
}

}  // namespace spillway::agent
