#include "policy/eviction/decide.h"

#include "base/check.h"
#include "policy/eviction/local_storage.h"
#include "policy/eviction/memory_estimate.h"
#include "policy/eviction/message.h"
#include "policy/eviction/quiet_pass.h"
#include "policy/eviction/reasons.h"

#include <algorithm>

namespace spillway::eviction {
namespace {

using policy::Decision;
using policy::Reason;
using policy::ReasonCode;

std::int64_t grace_seconds_of(const Threshold& acting, const api::Pod& victim, const PassConfig& config) {
  if (acting.is_hard()) return kHardGraceSeconds;
  const std::optional<std::int64_t>& own = victim.spec.termination_grace_period_seconds;
  return own ? std::min(config.max_pod_grace_period_seconds, *own) : config.max_pod_grace_period_seconds;
}

constexpr std::string_view kPodFact = "pod";

void evict_storage_violators(PassResult& result, std::span<const MeasuredPod> pods) {
  for (StorageViolation& violation : find_storage_violations(pods, *result.state.layout)) {
    Reason reason{ReasonCode::kLocalStorageExceeded,
                  {{std::string(kPodFact), violation.pod->key().text()},
                   {"limit", std::string(violation.metric_label)},
                   {"used_bytes", violation.used.value()},
                   {"limit_bytes", violation.limit.value()}}};
    if (!violation.what.empty()) reason.facts.push_back({"of", violation.what});
    result.decision.reasons.push_back(std::move(reason));
    result.actions.push_back({.uid = violation.pod->metadata.uid,
                              .pod = violation.pod->key(),
                              .grace_period_seconds = kHardGraceSeconds,
                              .message = std::move(violation.message),
                              .annotations = {},
                              .disruption_target = false,
                              .metric_label = std::string(violation.metric_label)});
  }
  if (!result.actions.empty()) result.decision.verdict = policy::Verdict::kActs;
}

Decision begin_decision(const PassConfig& config, Now now) {
  Decision decision;
  decision.at = now.wall;
  decision.by = config.node;
  decision.area = policy::Area::kEviction;
  decision.action = "evict";
  decision.subject = {.kind = "Node", .ns = {}, .name = config.node, .uid = {}};
  return decision;
}

Reason about_signal(ReasonCode code, Signal signal) {
  return {code, {{"signal", std::string(to_string(signal))}}};
}

/// Records, for each threshold that is not reached, the reason.
void record_unmet(Decision& decision, const PassState& state, std::span<const Threshold> crossed,
                  const Observations& seen) {
  for (const Threshold& threshold : state.thresholds) {
    if (contains(crossed, threshold)) continue;
    const ReasonCode code = seen[threshold.signal] ? ReasonCode::kThresholdNotMet : ReasonCode::kObservationMissing;
    decision.reasons.push_back(threshold_reason(code, threshold, seen));
  }
}

/// While the layout is unknown, disks cannot be evaluated.
void record_postponed(Decision& decision, const PassConfig& config, const PassState& state) {
  if (state.layout) return;
  for (const Threshold& threshold : config.thresholds) {
    if (condition_of(threshold.signal) != Condition::kDiskPressure) continue;
    decision.reasons.push_back(threshold_reason(ReasonCode::kObservationMissing, threshold, Observations{}));
  }
}

enum class Estimates { kAll, kThatDisagree };

/// Records the readings of the other estimators of memory, and which of them would have decided otherwise.
void record_estimates(Decision& decision, const PassConfig& config, const PassState& state, const api::Summary& summary,
                      Estimates which) {
  const std::vector<MemoryEstimate> estimates = memory_estimates(summary, state.thresholds);
  const auto chosen = std::ranges::find(estimates, config.memory_estimator, &MemoryEstimate::by);
  if (chosen == estimates.end()) return;
  for (const MemoryEstimate& each : estimates) {
    const bool disagrees = each.pressure != chosen->pressure;
    if (each.by == chosen->by || (which == Estimates::kThatDisagree && !disagrees)) continue;
    decision.reasons.push_back({disagrees ? ReasonCode::kEstimateDisagrees : ReasonCode::kEstimateAgrees,
                                {{"estimator", std::string(to_string(each.by))},
                                 {"estimate_bytes", each.available_bytes},
                                 {"chosen", std::string(to_string(chosen->by))},
                                 {"difference_bytes", each.available_bytes - chosen->available_bytes},
                                 {"pressure", std::string(each.pressure ? "yes" : "no")}}});
  }
}

}  // namespace

std::string adopt_layout(const PassConfig& config, StorageLayout layout, PassState& state) {
  DerivedThresholds derived = derive_containerfs(config.thresholds, layout);
  state.layout = layout;
  state.thresholds = std::move(derived.thresholds);
  return std::move(derived.warning);
}

void postpone_layout(const PassConfig& config, PassState& state) {
  state.thresholds = config.thresholds;
  std::erase_if(state.thresholds,
                [](const Threshold& threshold) { return condition_of(threshold.signal) == Condition::kDiskPressure; });
}

namespace {

/// observe_pressure with pods and statistics joined already.
PassResult observe_pressure_of(const PassConfig& config, PassState previous, const api::Summary& summary,
                               std::span<const MeasuredPod> pods, Now now) {
  PassResult result;
  result.state = std::move(previous);
  result.decision = begin_decision(config, now);
  PassState& state = result.state;

  // 1. The met thresholds: those that are crossed now, and those crossed before until their minimum is reclaimed too.
  const Observations seen = observe(summary, config.memory_estimator);
  std::vector<Threshold> crossed = thresholds_met(state.thresholds, seen, Reclaim::kWithout);
  if (!state.crossed_before.empty()) {
    crossed = merge_thresholds(std::move(crossed), thresholds_met(state.crossed_before, seen, Reclaim::kWithMinimum));
  }

  // 2. What follows for the node at once: graces of soft thresholds begin and end, conditions begin, and end only after
  //    the transition period.
  state.grace.update(crossed, now.mono);
  state.condition_clock.observe(conditions_of(crossed), now.mono);
  state.conditions = state.condition_clock.reported(now.mono, config.pressure_transition_period);
  result.past_grace = state.grace.past_grace(crossed, now.mono);
  state.crossed_before = result.past_grace;

  // 3. Thresholds may act if their grace is over, and they have been observed anew since the last eviction. The
  // decision has a reason for every threshold, whether it acts or not.
  std::vector<Threshold> fresh;
  for (const Threshold& threshold : crossed) {
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
  record_unmet(result.decision, state, crossed, seen);
  record_postponed(result.decision, config, state);
  record_estimates(result.decision, config, state, summary, Estimates::kThatDisagree);
  if (!crossed.empty()) result.decision.verdict = policy::Verdict::kWaits;

  // 4. Pods beyond their own limits of local storage go first, without ranking; a pass with such a victim ends here.
  if (config.local_storage_limits == LocalStorageLimits::kEnforced && state.layout) {
    evict_storage_violators(result, pods);
    if (!result.actions.empty()) return result;
  }
  // 5. The most urgent threshold acts alone. The node frees what it can for it before choose_victim() takes a pod.
  if (fresh.empty()) {
    if (crossed.empty()) result.decision.reasons.push_back({ReasonCode::kNoThresholdMet, {}});
    return result;
  }
  std::ranges::sort(fresh, [&](const Threshold& a, const Threshold& b) { return urgency(a, b, seen) < 0; });
  PendingEviction pending{.acting = fresh.front(), .fresh = {}, .seen = seen, .reclaim = {}, .since = now.mono};
  pending.reclaim = reclaim_actions(pending.acting.signal, state.layout.value_or(StorageLayout{}));
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
  Decision& decision = result.decision;
  if (after != nullptr) {
    const Observations seen = observe(*after, config.memory_estimator);
    const std::vector<Threshold> crossed = thresholds_met(result.state.thresholds, seen, Reclaim::kWithMinimum);
    if (crossed.empty()) {
      decision.reasons.push_back(about_signal(ReasonCode::kReclaimSufficed, signal));
      decision.verdict = policy::Verdict::kActs;
      decision.action = "reclaim";
      return;
    }
    for (const Threshold& threshold : crossed) {
      decision.reasons.push_back(threshold_reason(ReasonCode::kReclaimFellShort, threshold, seen));
    }
  }
  if (pods.empty()) {
    decision.reasons.push_back(about_signal(ReasonCode::kNoCandidate, signal));
    return;
  }
  EvaluatedRanking ranking =
      evaluate_ranking(signal, result.state.layout.value_or(StorageLayout{}), pods, kCandidatesMax);
  decision.candidates = std::move(ranking.candidates);
  decision.candidates_total = static_cast<std::int64_t>(pods.size());
  for (const Threshold& threshold : pending.fresh) {
    if (const auto& time = pending.seen[threshold.signal]->time) {
      result.stats_ages.emplace_back(threshold.signal, now.wall - *time);
    }
  }
  if (ranking.victim.pod == nullptr) {
    decision.reasons.push_back(about_signal(ReasonCode::kNoCandidate, signal));
    return;
  }
  const api::Pod& pod = *ranking.victim.pod;
  EvictionMessage message = eviction_message(resource_of(signal), ranking.victim, pending.fresh, pending.seen);
  decision.verdict = policy::Verdict::kActs;
  decision.subject = subject_of(pod);
  decision.message = message.text;
  decision.reasons.push_back(about_signal(ReasonCode::kRankedFirst, signal));
  result.actions.push_back({.uid = pod.metadata.uid,
                            .pod = pod.key(),
                            .grace_period_seconds = grace_seconds_of(pending.acting, pod, config),
                            .message = std::move(message.text),
                            .annotations = std::move(message.annotations),
                            .disruption_target = true,
                            .metric_label = std::string(to_string(signal))});
  decision.cost.push_back({"grace_seconds", result.actions.back().grace_period_seconds});
}

}  // namespace

PassResult observe_pressure(const PassConfig& config, PassState state, const api::Summary& summary,
                            std::span<const api::Pod* const> active, Now now) {
  return observe_pressure_of(config, std::move(state), summary, join_stats(active, summary.pods), now);
}

bool pass_quietly(const PassConfig& config, PassState& state, const Observations& seen, const api::Summary& summary,
                  std::span<const api::Pod* const> active, Now now) {
  const auto crossed = [&](const Threshold& threshold) { return is_met(threshold, seen, Reclaim::kWithout); };
  if (!state.crossed_before.empty() || std::ranges::any_of(state.thresholds, crossed)) return false;
  if (state.condition_clock.reported(now.mono, config.pressure_transition_period) != state.conditions) return false;
  if (config.local_storage_limits == LocalStorageLimits::kEnforced && state.layout &&
      !find_storage_violations(join_stats(active, summary.pods), *state.layout).empty()) {
    return false;
  }
  state.grace.update({}, now.mono);
  state.last = seen;
  return true;
}

void choose_victim(const PassConfig& config, PassResult& result, const api::Summary& summary,
                   std::span<const api::Pod* const> active, const api::Summary* after, Now now) {
  choose_victim_of(config, result, join_stats(active, summary.pods), after, now);
}

Decision decision_about(const EvictPod& action, const Decision& pass) {
  Decision decision = pass;
  decision.subject = {.kind = "Pod", .ns = action.pod.ns, .name = action.pod.name, .uid = action.uid};
  decision.message = action.message;
  std::erase_if(decision.reasons, [&](const Reason& reason) {
    const auto of = std::ranges::find(reason.facts, kPodFact, &policy::Fact::name);
    return of != reason.facts.end() && of->value != decltype(of->value)(action.pod.text());
  });
  if (decision.cost.empty()) decision.cost.push_back({"grace_seconds", action.grace_period_seconds});
  return decision;
}

Decision current_decision(const PassConfig& config, const PassState& state, const api::Summary& summary,
                          std::span<const api::Pod* const> active, Signal signal, Now now) {
  Decision decision = begin_decision(config, now);
  const Observations seen = observe(summary, config.memory_estimator);
  const std::vector<Threshold> crossed = thresholds_met(state.thresholds, seen, Reclaim::kWithout);
  for (const Threshold& threshold : crossed) {
    const bool past = state.grace.past_grace(std::span(&threshold, 1), now.mono).size() == 1;
    decision.reasons.push_back(
        threshold_reason(past ? ReasonCode::kThresholdMet : ReasonCode::kGraceNotOver, threshold, seen));
  }
  record_unmet(decision, state, crossed, seen);
  record_postponed(decision, config, state);
  record_estimates(decision, config, state, summary, Estimates::kAll);
  if (crossed.empty()) decision.reasons.push_back({ReasonCode::kNoThresholdMet, {}});
  decision.verdict = crossed.empty() ? policy::Verdict::kRests : policy::Verdict::kWaits;
  const std::vector<MeasuredPod> pods = join_stats(active, summary.pods);
  decision.candidates = evaluate_ranking(signal, state.layout.value_or(StorageLayout{}), pods, pods.size()).candidates;
  decision.candidates_total = static_cast<std::int64_t>(pods.size());
  return decision;
}

}  // namespace spillway::eviction
