#include "sim/properties/rollout_audit.h"

#include "api/object/kind_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace spillway::sim {
namespace {

bool is_available(const api::Pod& pod) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  return ready != nullptr && ready->status == "True" && !pod.metadata.deletion_timestamp && !api::is_terminal(pod);
}

enum class Share { kDown, kUp };

/// "25%" or a number of `whole` pods.
std::int64_t share_of(const api::Json& bound, std::int64_t whole, Share share) {
  if (const auto number = bound.if_int64()) return *number;
  const std::string_view text = bound.string_at({});
  std::int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  return (percent * whole + (share == Share::kUp ? 99 : 0)) / 100;
}

std::int64_t least_available(const api::Deployment& deployment) {
  const std::int64_t replicas = deployment.replicas;
  const std::int64_t surge = share_of(deployment.max_surge, replicas, Share::kUp);
  const std::int64_t missing = share_of(deployment.max_unavailable, replicas, Share::kDown);
  return std::max<std::int64_t>(replicas - (surge == 0 && missing == 0 ? 1 : missing), 0);
}

std::string set_of(const api::Pod& pod) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  return owner == nullptr || api::kind_of(*owner) != api::kind_of<api::ReplicaSet>() ? std::string() : owner->uid;
}

/// Deployments with minReadySeconds are not checked: their pods are ready for a while before they count.
bool is_rolled(const api::Deployment& deployment) {
  return deployment.strategy == "RollingUpdate" && deployment.min_ready_seconds == 0 &&
         !deployment.metadata.deletion_timestamp;
}

}  // namespace

std::int64_t RolloutAudit::Rollout::least_of_all() const {
  std::int64_t lowest = least;
  for (const auto& [until, promised] : earlier) lowest = std::min(lowest, promised);
  return lowest;
}

void RolloutAudit::on_deployment(const api::Deployment* before, const api::Deployment* after, Now now) {
  if (before != nullptr && (after == nullptr || after->metadata.uid != before->metadata.uid))
    rollouts_.erase(before->metadata.uid);
  if (after == nullptr) return;
  const auto [found, fresh] = rollouts_.try_emplace(after->metadata.uid);
  Rollout& rollout = found->second;
  const std::int64_t least = least_available(*after);
  if (!fresh && least != rollout.least) rollout.earlier.emplace_back(now.mono, rollout.least);
  rollout.name = fmt::format("{}/{}", after->metadata.ns, after->metadata.name);
  rollout.is_rolling = is_rolled(*after);
  rollout.wanted = after->replicas;
  rollout.least = least;
  count(found->first, By::kOthers, now);
}

void RolloutAudit::on_replica_set(const api::ReplicaSet* before, const api::ReplicaSet* after, Now now) {
  if (before != nullptr && (after == nullptr || after->metadata.uid != before->metadata.uid)) {
    if (const auto gone = sets_.extract(before->metadata.uid)) count(gone.mapped().rollout, By::kControllers, now);
  }
  if (after == nullptr) return;
  const api::OwnerReference* owner = api::controller_of(after->metadata);
  if (owner == nullptr || api::kind_of(*owner) != api::kind_of<api::Deployment>()) return;
  Set& set = sets_[after->metadata.uid];
  set.name = after->metadata.name;
  set.rollout = owner->uid;
  set.replicas = after->replicas;
  set.available_said = after->status.available_replicas;
  count(set.rollout, By::kControllers, now);
}

void RolloutAudit::on_pod(const api::Pod* before, const api::Pod* after, Now now) {
  if (sets_.empty()) return;
  if (before != nullptr && after != nullptr && before->metadata.uid != after->metadata.uid) {
    on_pod(before, nullptr, now);
    before = nullptr;
  }
  const api::Pod& pod = after != nullptr ? *after : *before;
  const auto found = sets_.find(set_of(pod));
  if (found == sets_.end()) return;
  Set& set = found->second;
  const std::string& uid = pod.metadata.uid;
  const bool was_available = set.available.contains(uid);
  const bool is_there = after != nullptr && is_available(*after);
  if (is_there == was_available) return;
  const auto rollout = rollouts_.find(set.rollout);
  if (is_there) {
    set.available.insert(uid);
    if (rollout != rollouts_.end() && rollout->second.lost.contains(uid)) rollout->second.lost[uid] = now.mono;
    return count(set.rollout, By::kOthers, now);
  }
  set.available.erase(uid);
  const By by = before == nullptr ? By::kOthers : taker_of(*before, after);
  if (by == By::kOthers && rollout != rollouts_.end()) rollout->second.lost[uid] = now.mono;
  count(set.rollout, by, now);
}

RolloutAudit::By RolloutAudit::taker_of(const api::Pod& before, const api::Pod* after) {
  const bool by_hand = removed_by_hand_.erase(before.key()) > 0;
  const api::Pod& pod = after != nullptr ? *after : before;
  if (by_hand || api::is_terminal(pod)) return By::kOthers;
  if (after != nullptr && !after->metadata.deletion_timestamp) return By::kOthers;
  const api::PodCondition* target = api::find_condition(pod.status.conditions, "DisruptionTarget");
  return target != nullptr && target->status == "True" ? By::kOthers : By::kControllers;
}

void RolloutAudit::count(const std::string& uid, By by, Now now) {
  const auto found = rollouts_.find(uid);
  if (found == rollouts_.end()) return;
  Rollout& rollout = found->second;
  if (rollout.is_whole) {  // until now
    const auto is_old = [now](Instant then) { return now.mono - then > kObservesWithin; };
    std::erase_if(rollout.lost, [&is_old](const auto& each) { return is_old(each.second); });
    std::erase_if(rollout.earlier, [&is_old](const auto& each) { return is_old(each.first); });
  }
  std::int64_t kept = 0;
  bool is_said = true;  // every status has the true number
  std::string sets;
  for (const auto& [of, set] : sets_) {
    if (set.rollout != uid) continue;
    const auto available = static_cast<std::int64_t>(set.available.size());
    kept += std::min(available, std::max<std::int64_t>(set.replicas, 0));
    is_said = is_said && set.available_said == available;
    sets += fmt::format("; {}: {} of {}", set.name, available, set.replicas);
  }
  const auto lost = static_cast<std::int64_t>(rollout.lost.size());
  if (rollout.is_rolling && by == By::kControllers && kept < rollout.kept && kept + lost < rollout.least_of_all()) {
    verdicts_.violate(Property::kRolloutAvailability, now,
                      fmt::format("controllers leave {} available pods of Deployment {}, which promises {}, with {} "
                                  "lost to others{}",
                                  kept, rollout.name, rollout.least_of_all(), lost, sets));
  }
  rollout.kept = kept;
  rollout.is_whole = is_said && kept >= rollout.wanted;
}

}  // namespace spillway::sim
