#include "agent/eviction/eviction_executor.h"

#include "agent/contract/kill_grace.h"
#include "agent/eviction/eviction_events.h"
#include "policy/eviction/reasons.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::agent {
namespace {

/// Times by the oldest of the readings that the decision is based on; nullopt: the time of measurement is unknown.
std::optional<EvictionTimes> times_of(const eviction::PassResult& result, std::optional<Duration> reading_to_signal,
                                      Now now) {
  if (result.stats_ages.empty()) return std::nullopt;
  Duration age{};
  for (const auto& [signal, of_signal] : result.stats_ages) age = std::max(age, of_signal);
  return EvictionTimes{.reading = now.wall - std::chrono::duration_cast<microseconds>(age),
                       .reading_to_signal = reading_to_signal};
}

bool is_by_memory(const eviction::EvictPod& action) {
  const auto signal = eviction::parse_signal(action.metric_label);
  return signal && is_memory(*signal);
}

/// An eviction that begins now.
Victim victim_of(const eviction::EvictPod& action, Now now) {
  return {.action = action,
          .since = now.mono,
          .grace_end = now.mono + seconds(std::max(action.grace_period_seconds, kStopSecondsMin)),
          .killed = false,
          .frees_memory = is_by_memory(action) && action.grace_period_seconds <= eviction::kHardGraceSeconds,
          .available_then = {}};
}

}  // namespace

void EvictionExecutor::record(JournalEntry entry) {
  if (witness_ != nullptr) witness_->on_decision(entry);
  decisions_.record(std::move(entry));
}

void EvictionExecutor::evict(const eviction::EvictPod& action, const eviction::PassResult& result,
                             std::optional<Done> done, Now now) {
  const Duration grace = seconds(std::max(action.grace_period_seconds, kStopSecondsMin));
  const bool lasts = !readings_.is_emergency(std::min<Duration>(grace, seconds(kStopSecondsMin)), now.mono);
  const Urgency decided = is_by_memory(action) && !lasts ? Urgency::kEmergency : Urgency::kGrace;
  const Urgency urgency = done ? done->urgency : decided;
  const bool emergency = urgency == Urgency::kEmergency;
  JournalEntry entry = entry_for(action, result, urgency, done, now);
  context_.log.warning(decisions_.acts() ? "evicting pod" : "would evict pod",
                       {{"node", entry.decision.by},
                        {"pod", action.pod.text()},
                        {"signal", action.metric_label},
                        {"emergency", emergency ? "true" : "false"},
                        {"reasons", policy::render(entry.decision.reasons)}});
  record(std::move(entry));
  if (witness_ != nullptr) witness_->on_ending();
  pods_.evict(action, urgency, now);
  Victim victim = victim_of(action, now);
  victim.killed = emergency;
  if (const auto& observation = readings_.seen()[victim.signal()]) victim.available_then = observation->available;
  victims_.add(std::move(victim));
  if (decisions_.acts()) metrics_.count_eviction(action.metric_label);
  if (decisions_.acts() && emergency) metrics_.emergencies.add();
  if (decisions_.acts()) post_evicted_event(context_, action, now);
}

JournalEntry EvictionExecutor::entry_for(const eviction::EvictPod& action, const eviction::PassResult& result,
                                         Urgency urgency, std::optional<Done> done, Now now) const {
  JournalEntry entry{.decision = decision_about(action, result.decision),
                     .eviction = action,
                     .emergency = urgency == Urgency::kEmergency,
                     .times = times_of(result, done ? std::optional(done->took) : std::nullopt, now)};
  if (entry.emergency) {
    entry.decision.reasons.push_back({policy::ReasonCode::kEmergency, {}});
    entry.decision.cost = {{"grace_seconds", std::int64_t{0}}};
  }
  return entry;
}

void EvictionExecutor::resume(const eviction::EvictPod& action, Now now) {
  victims_.add(victim_of(action, now));
}

/// A long grace is cut by a hard threshold first; SIGKILL at once is for memory that does not last a hard one's grace.
void EvictionExecutor::hasten(std::span<const eviction::Threshold> thresholds, Now now) {
  for (Victim& victim : victims_.dying()) {
    const Duration left = std::clamp<Duration>(victim.grace_end - now.mono, Duration{}, kHardGrace);
    if (!victim.killed && readings_.is_emergency(left, now.mono)) take_grace(victim);
  }
  if (victims_.empty() || hard_met(thresholds, readings_.seen()) == HardMet::kNone) return;
  for (Victim& victim : victims_.dying()) {
    if (!victim.killed && victim.grace_end > now.mono + kHardGrace) shorten_grace(victim, now);
  }
}

void EvictionExecutor::take_grace(Victim& victim) {
  victim.killed = true;
  metrics_.emergencies.add();
  context_.log.warning("taking the grace from a pod being evicted", {{"pod_uid", victim.action.uid}});
  if (witness_ != nullptr) witness_->on_ending();
  pods_.kill_now(victim.action.uid);
}

void EvictionExecutor::take_grace(const std::string& uid) {
  for (Victim& victim : victims_.dying()) {
    if (victim.action.uid == uid && !victim.killed) take_grace(victim);
  }
}

/// A hard threshold does not wait for the long grace of a soft eviction.
void EvictionExecutor::shorten_grace(Victim& victim, Now now) {
  victim.grace_end = now.mono + kHardGrace;
  victim.action.grace_period_seconds = eviction::kHardGraceSeconds;
  victim.frees_memory = is_memory(victim.signal());
  metrics_.shortened_graces.add();
  context_.log.warning("a hard threshold shortens the grace of a soft eviction",
                       {{"pod", victim.action.pod.text()}, {"pod_uid", victim.action.uid}});
  decisions_.add_aftermath(
      {.uid = victim.action.uid, .at = now.wall, .facts = {{"grace_shortened_to_seconds", kStopSecondsMin}}});
  if (witness_ != nullptr) witness_->on_ending();
  pods_.evict(victim.action, Urgency::kGrace, now);
}

bool EvictionExecutor::check_overdue(Now now) {
  for (const Victim& victim : victims_.take_exceeded(now.mono)) {
    if (decisions_.acts()) record_exceeded_grace(context_, victim.action, now);
  }
  const std::size_t gave_up = victims_.give_up(now.mono);
  if (gave_up == 0) return false;
  context_.log.warning("evicted pod did not end in time", {{"pods", gave_up}});
  return victims_.empty();
}

bool EvictionExecutor::finish(const std::string& uid, Now now) {
  const std::optional<Victim> victim = victims_.finish(uid);
  if (!victim) return false;
  if (!decisions_.acts()) return true;
  decisions_.add_aftermath(
      {.uid = uid,
       .at = now.wall,
       .facts = {{std::string(kGoneAfterFact), std::chrono::duration<double>(now.mono - victim->since).count()}}});
  return true;
}

}  // namespace spillway::agent
