#include "policy/eviction/decide.h"

#include "api/pod_requests.h"
#include "base/check.h"
#include "policy/eviction/local_storage.h"
#include "policy/eviction/message.h"

#include <algorithm>

namespace spillway::eviction {
namespace {

using policy::Fact;
using policy::Reason;
using policy::ReasonCode;

/// Amounts that are whole print as numbers, so that facts can be compared.
Fact amount_fact(std::string name, const api::Quantity& amount) {
  return {std::move(name), amount.value()};
}

Reason threshold_reason(ReasonCode code, const Threshold& threshold, const Observations& seen) {
  Reason reason{code, {{"signal", std::string(to_string(threshold.signal))}}};
  if (const std::optional<Observation>& observation = seen[threshold.signal]) {
    reason.facts.push_back({"available", observation->available});
    reason.facts.push_back({"capacity", observation->capacity});
    if (const auto limit = amount_of(threshold.value, observation->capacity)) {
      reason.facts.push_back(amount_fact("threshold", *limit));
    }
  }
  if (!threshold.is_hard()) {
    reason.facts.push_back({"grace_seconds", std::chrono::duration_cast<seconds>(threshold.grace_period).count()});
  }
  return reason;
}

Reason pod_reason(ReasonCode code, const MeasuredPod& measured, Signal signal) {
  const api::Pod& pod = *measured.pod;
  Reason reason{code,
                {{"pod", pod.key().text()},
                 {"signal", std::string(to_string(signal))},
                 {"priority", std::int64_t{api::priority_of(pod)}}}};
  if (measured.stats == nullptr) {
    reason.facts.push_back({"stats", std::string("missing")});
  } else if (is_memory(signal)) {
    const api::Quantity request = api::agent_request(pod.spec, "memory");
    reason.facts.push_back({"request_bytes", request.value()});
    if (measured.stats->memory && measured.stats->memory->working_set_bytes) {
      const auto bytes = static_cast<std::int64_t>(*measured.stats->memory->working_set_bytes);
      reason.facts.push_back({"working_set_bytes", bytes});
      reason.facts.push_back({"above_request_bytes", bytes - request.value()});
    }
  } else if (signal == Signal::kPidAvailable && measured.stats->process_count) {
    reason.facts.push_back({"processes", static_cast<std::int64_t>(*measured.stats->process_count)});
  } else if (measured.stats->ephemeral_storage && measured.stats->ephemeral_storage->used_bytes) {
    reason.facts.push_back({"used_bytes", static_cast<std::int64_t>(*measured.stats->ephemeral_storage->used_bytes)});
  }
  return reason;
}

std::int64_t grace_seconds_of(const Threshold& acting, const api::Pod& victim, const PassConfig& config) {
  if (acting.is_hard()) return kHardGraceSeconds;
  const std::optional<std::int64_t>& own = victim.spec.termination_grace_period_seconds;
  return own ? std::min(config.max_pod_grace_period_seconds, *own) : config.max_pod_grace_period_seconds;
}

void evict_storage_violators(PassResult& result, std::span<const MeasuredPod> pods) {
  for (StorageViolation& violation : find_storage_violations(pods, *result.state.layout)) {
    result.decision.reasons.push_back(
        {ReasonCode::kLocalStorageExceeded,
         {{"pod", violation.pod->key().text()}, {"limit", std::string(violation.metric_label)}}});
    result.decision.actions.push_back({.uid = violation.pod->metadata.uid,
                                       .pod = violation.pod->key(),
                                       .grace_period_seconds = kHardGraceSeconds,
                                       .message = std::move(violation.message),
                                       .annotations = {},
                                       .disruption_target = false,
                                       .metric_label = std::string(violation.metric_label)});
  }
}

void record_missing(PassResult& result, const Observations& seen) {
  for (const Threshold& threshold : result.state.thresholds) {
    if (!seen[threshold.signal]) {
      result.decision.reasons.push_back(threshold_reason(ReasonCode::kObservationMissing, threshold, seen));
    }
  }
}

}  // namespace

std::string adopt_layout(const PassConfig& config, StorageLayout layout, PassState& state) {
  DerivedThresholds derived = derive_containerfs(config.thresholds, layout);
  state.layout = layout;
  state.thresholds = std::move(derived.thresholds);
  return std::move(derived.warning);
}

namespace {

/// observe_pressure with pods and statistics joined already.
PassResult observe_pressure_of(const PassConfig& config, PassState previous, const api::Summary& summary,
                               std::span<const MeasuredPod> pods, Now now) {
  SPILLWAY_CHECK(previous.layout);
  PassResult result;
  result.state = std::move(previous);
  PassState& state = result.state;

  const Observations seen = observe(summary);
  record_missing(result, seen);
  std::vector<Threshold> met = thresholds_met(state.thresholds, seen, Reclaim::kWithout);
  if (!state.met_before.empty()) {
    met = merge_thresholds(std::move(met), thresholds_met(state.met_before, seen, Reclaim::kWithMinimum));
  }
  state.grace.update(met, now.mono);
  state.condition_clock.observe(conditions_of(met), now.mono);
  state.conditions = state.condition_clock.reported(now.mono, config.pressure_transition_period);
  result.past_grace = state.grace.past_grace(met, now.mono);
  state.met_before = result.past_grace;

  std::vector<Threshold> fresh;
  for (const Threshold& threshold : met) {
    if (!contains(result.past_grace, threshold)) {
      result.decision.reasons.push_back(threshold_reason(ReasonCode::kGraceNotOver, threshold, seen));
    } else if (!is_fresh(threshold.signal, seen, state.last)) {
      result.decision.reasons.push_back(threshold_reason(ReasonCode::kObservationStale, threshold, seen));
    } else {
      result.decision.reasons.push_back(threshold_reason(ReasonCode::kThresholdMet, threshold, seen));
      fresh.push_back(threshold);
    }
  }
  state.last = seen;

  if (config.local_storage_limits == LocalStorageLimits::kEnforced) {
    evict_storage_violators(result, pods);
    if (!result.decision.actions.empty()) return result;
  }
  if (fresh.empty()) {
    if (met.empty()) result.decision.reasons.push_back({ReasonCode::kNoThresholdMet, {}});
    return result;
  }
  std::ranges::sort(fresh, [&](const Threshold& a, const Threshold& b) { return urgency(a, b, seen) < 0; });
  PendingEviction pending{.acting = fresh.front(), .fresh = {}, .seen = seen, .reclaim = {}, .since = now.mono};
  pending.reclaim = reclaim_actions(pending.acting.signal, *state.layout);
  pending.fresh = std::move(fresh);
  result.node_event = "Attempting to reclaim " + std::string(resource_of(pending.acting.signal));
  result.pending = std::move(pending);
  return result;
}

/// choose_victim with pods and statistics joined already.
void choose_victim_of(const PassConfig& config, PassResult& result, std::span<const MeasuredPod> pods,
                      const api::Summary* after, Now now) {
  SPILLWAY_CHECK(result.pending);
  const PendingEviction pending = *std::exchange(result.pending, std::nullopt);
  const Signal signal = pending.acting.signal;
  if (after != nullptr && thresholds_met(result.state.thresholds, observe(*after), Reclaim::kWithMinimum).empty()) {
    result.decision.reasons.push_back({ReasonCode::kReclaimSufficed, {{"signal", std::string(to_string(signal))}}});
    return;
  }
  if (pods.empty()) {
    result.decision.reasons.push_back({ReasonCode::kNoCandidate, {{"signal", std::string(to_string(signal))}}});
    return;
  }
  const std::vector<MeasuredPod> ranked = rank_for(signal, *result.state.layout, pods);
  for (const Threshold& threshold : pending.fresh) {
    if (const auto& time = pending.seen[threshold.signal]->time) {
      result.stats_ages.emplace_back(threshold.signal, now.wall - *time);
    }
  }
  for (const MeasuredPod& measured : ranked) {
    const api::Pod& pod = *measured.pod;
    const bool spared = api::is_critical(pod);
    const bool chosen = !spared && result.decision.actions.empty();
    if (result.candidates.size() >= kCandidatesMax && !chosen) continue;
    const ReasonCode code =
        spared ? ReasonCode::kCriticalPodSpared : (chosen ? ReasonCode::kRankedFirst : ReasonCode::kRankedLater);
    result.candidates.push_back({pod.key(), pod_reason(code, measured, signal)});
    if (!chosen) continue;
    EvictionMessage message = eviction_message(resource_of(signal), measured, pending.fresh, pending.seen);
    result.decision.reasons.push_back(result.candidates.back().reason);
    result.decision.actions.push_back({.uid = pod.metadata.uid,
                                       .pod = pod.key(),
                                       .grace_period_seconds = grace_seconds_of(pending.acting, pod, config),
                                       .message = std::move(message.text),
                                       .annotations = std::move(message.annotations),
                                       .disruption_target = true,
                                       .metric_label = std::string(to_string(signal))});
  }
  if (result.decision.actions.empty()) {
    result.decision.reasons.push_back({ReasonCode::kNoCandidate, {{"signal", std::string(to_string(signal))}}});
  }
}

}  // namespace

PassResult observe_pressure(const PassConfig& config, PassState state, const api::Summary& summary,
                            std::span<const api::Pod* const> active, Now now) {
  return observe_pressure_of(config, std::move(state), summary, join_stats(active, summary.pods), now);
}

void choose_victim(const PassConfig& config, PassResult& result, const api::Summary& summary,
                   std::span<const api::Pod* const> active, const api::Summary* after, Now now) {
  choose_victim_of(config, result, join_stats(active, summary.pods), after, now);
}

PassResult decide_eviction(const PassConfig& config, PassState state, const api::Summary& summary,
                           std::span<const api::Pod* const> active, Now now) {
  const std::vector<MeasuredPod> pods = join_stats(active, summary.pods);
  PassResult result = observe_pressure_of(config, std::move(state), summary, pods, now);
  if (result.pending) choose_victim_of(config, result, pods, nullptr, now);
  return result;
}

}  // namespace spillway::eviction
