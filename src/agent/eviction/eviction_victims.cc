#include "agent/eviction/eviction_victims.h"

#include "agent/contract/kill_grace.h"
#include "policy/eviction/cleanup_wait.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::agent {
namespace {

/// A pod whose grace is over for that long without giving anything back holds up nothing urgent.
constexpr Duration kOverdue = seconds(3);

bool is_of_disk(eviction::Signal signal) {
  return eviction::condition_of(signal) == eviction::Condition::kDiskPressure;
}

}  // namespace

HardMet hard_met(std::span<const eviction::Threshold> thresholds, const eviction::Observations& seen) {
  HardMet reached = HardMet::kNone;
  for (const eviction::Threshold& threshold : thresholds) {
    if (!threshold.is_hard() || !is_met(threshold, seen, eviction::Reclaim::kWithout)) continue;
    if (!is_of_disk(threshold.signal)) return HardMet::kOthers;
    reached = HardMet::kDisksOnly;
  }
  return reached;
}

eviction::Signal Victim::signal() const {
  return eviction::parse_signal(action.metric_label).value_or(eviction::Signal::kMemoryAvailable);
}

Instant Victim::kill_deadline() const {
  const auto grace = std::chrono::floor<seconds>(grace_end - since);
  return since + seconds(kill_wait_seconds({.override_seconds = grace.count()}));
}

void Victims::add(Victim victim) {
  std::erase_if(dying_, [&](const Victim& each) { return each.action.uid == victim.action.uid; });
  given_up_.erase(victim.action.uid);
  dying_.push_back(std::move(victim));
}

std::optional<Victim> Victims::finish(const std::string& uid) {
  given_up_.erase(uid);
  const auto found = std::ranges::find_if(dying_, [&](const Victim& each) { return each.action.uid == uid; });
  if (found == dying_.end()) return std::nullopt;
  Victim victim = std::move(*found);
  dying_.erase(found);
  return victim;
}

bool Victims::any_frees_memory() const {
  return std::ranges::any_of(dying_, &Victim::frees_memory);
}

bool Victims::give_way(HardMet reached, const eviction::Observations& seen, Instant now) const {
  if (reached == HardMet::kNone) return false;
  return std::ranges::all_of(dying_, [&](const Victim& victim) {
    if (reached == HardMet::kDisksOnly && is_of_disk(victim.signal())) return false;
    if (now < victim.grace_end + kOverdue) return false;
    const auto& observation = seen[victim.signal()];
    return !victim.available_then || !observation || observation->available <= *victim.available_then;
  });
}

std::vector<Victim> Victims::take_exceeded(Instant now) {
  std::vector<Victim> exceeded;
  for (Victim& victim : dying_) {
    if (victim.exceeded_grace || now < victim.kill_deadline()) continue;
    victim.exceeded_grace = true;
    exceeded.push_back(victim);
  }
  return exceeded;
}

std::size_t Victims::give_up(Instant now) {
  return std::erase_if(dying_, [&](const Victim& victim) {
    const eviction::CleanupWait wait{.since = victim.kill_deadline(), .limit = cleanup_wait_};
    if (wait.evaluate(eviction::Cleanup::kUnfinished, now) != eviction::WaitState::kTimedOut) return false;
    given_up_.insert(victim.action.uid);
    return true;
  });
}

bool Victims::is_known(const std::string& uid) const {
  return given_up_.contains(uid) ||
         std::ranges::any_of(dying_, [&](const Victim& victim) { return victim.action.uid == uid; });
}

}  // namespace spillway::agent
