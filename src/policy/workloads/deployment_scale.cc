#include "policy/workloads/deployment_plan.h"
#include "policy/workloads/rollout_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace spillway::workloads {

namespace {

std::int64_t asked_for(const ReplicaSets& sets) {
  std::int64_t sum = 0;
  for (const ReplicaSetPtr& set : sets) sum += set->replicas;
  return sum;
}

/// All that are wanted are there, of this template, and the number of them is what it was made for.
bool is_saturated(const api::Deployment& deployment, const ReplicaSetPtr& set) {
  return set && set->replicas == deployment.replicas && set->status.available_replicas == deployment.replicas &&
         number_on(set->metadata, kDesiredReplicas) == deployment.replicas;
}

/// The change of a ReplicaSet's size if all change alike.
std::int64_t share_of(const api::ReplicaSet& set, const api::Deployment& deployment) {
  if (deployment.replicas == 0) return -set.replicas;
  const std::int64_t most = deployment.replicas + rollout_bounds(deployment).surge_max;
  std::int64_t before = number_on(set.metadata, kMaxReplicas).value_or(0);
  if (before == 0) before = deployment.status.replicas;
  if (before == 0) return 0;
  const double size = static_cast<double>(set.replicas) * static_cast<double>(most) / static_cast<double>(before);
  return std::llround(size) - set.replicas;
}

/// The available pods that are left when the ReplicaSet has `size` pods.
std::int64_t available_at(const api::ReplicaSet& set, std::int64_t size) {
  return std::min<std::int64_t>(set.status.available_replicas, size);
}

class ProportionalScale {
 public:
  ProportionalScale(const api::Deployment& deployment, ReplicaSets active)
      : deployment_(deployment), active_(std::move(active)) {
    const std::int64_t allowed =
        deployment.replicas > 0 ? deployment.replicas + rollout_bounds(deployment).surge_max : 0;
    to_add_ = allowed - asked_for(active_);
  }

  std::vector<std::pair<ReplicaSetPtr, std::int64_t>> sizes(Shares shares) {
    sort();
    std::vector<std::pair<ReplicaSetPtr, std::int64_t>> sizes;
    std::int64_t added = 0;
    for (const ReplicaSetPtr& set : active_) {
      std::int64_t share = 0;
      if (set->replicas != 0 && to_add_ != added) {
        share = share_of(*set, deployment_);
        share = to_add_ > 0 ? std::min(share, to_add_ - added) : std::max(share, to_add_ - added);
      }
      if (to_add_ == 0) share = 0;
      added += share;
      sizes.emplace_back(set, set->replicas + share);
    }
    // The largest ReplicaSet gets the remainder of the rounding.
    if (to_add_ != 0 && !sizes.empty()) {
      sizes.front().second = std::max<std::int64_t>(sizes.front().second + to_add_ - added, 0);
    }
    if (to_add_ < 0 && shares == Shares::kPromised) keep_promise(sizes);
    return sizes;
  }

 private:
  /// Proportion alone may remove pods that serve and keep others that do not. As far as fewer would be available than
  /// the Deployment promises at its new size, pods are removed from ReplicaSets with unavailable pods.
  void keep_promise(std::vector<std::pair<ReplicaSetPtr, std::int64_t>>& sizes) const {
    std::int64_t before = 0;
    std::int64_t after = 0;
    for (const auto& [set, size] : sizes) {
      before += available_at(*set, set->replicas);
      after += available_at(*set, size);
    }
    std::int64_t lacking = std::min(rollout_bounds(deployment_).available_min, before) - after;
    for (auto& [set, size] : sizes) {
      const std::int64_t back = std::min(lacking, available_at(*set, set->replicas) - available_at(*set, size));
      if (back <= 0) continue;
      const std::int64_t given = take_idle(sizes, back);
      size += given;
      lacking -= given;
    }
  }

  /// Removes up to so many pods from ReplicaSets whose size is above their available pods; returns the number.
  static std::int64_t take_idle(std::vector<std::pair<ReplicaSetPtr, std::int64_t>>& sizes, std::int64_t most) {
    std::int64_t taken = 0;
    for (auto& [set, size] : sizes) {
      const std::int64_t idle = std::clamp<std::int64_t>(size - available_at(*set, size), 0, most - taken);
      size -= idle;
      taken += idle;
    }
    return taken;
  }

  /// The largest first; of equals newer ones gain before, and older ones lose before.
  void sort() {
    if (to_add_ == 0) return;
    std::ranges::sort(active_, [this](const ReplicaSetPtr& a, const ReplicaSetPtr& b) {
      if (a->replicas != b->replicas) return a->replicas > b->replicas;
      return to_add_ > 0 ? older(*b, *a) : older(*a, *b);
    });
  }

  const api::Deployment& deployment_;
  ReplicaSets active_;
  std::int64_t to_add_ = 0;
};

void resize(std::vector<UpdateReplicaSet>& updates, const api::Deployment& deployment, const ReplicaSetPtr& set,
            std::int64_t size) {
  UpdateReplicaSet update{*set, std::nullopt};
  update.set.replicas = static_cast<std::int32_t>(size);
  const bool recorded = record_scale(update.set, deployment);
  if (set->replicas != size) update.scaled_from = set->replicas;
  if (recorded || update.scaled_from) updates.push_back(std::move(update));
}

}  // namespace

std::string scaling_message(const api::ReplicaSet& set, std::int32_t from) {
  return fmt::format("Scaled {} replica set {} from {} to {}", set.replicas > from ? "up" : "down", set.metadata.name,
                     from, set.replicas);
}

Result<std::int32_t> new_size(const api::Deployment& deployment, const ReplicaSets& all,
                              const api::ReplicaSet& latest) {
  if (deployment.strategy != kRollingUpdate) return deployment.replicas;
  const auto surge = scaled_value(deployment.max_surge, deployment.replicas, Round::kUp);
  if (!surge) return surge.error();
  const std::int64_t room = deployment.replicas + *surge - asked_for(all);
  if (room <= 0) return latest.replicas;
  return static_cast<std::int32_t>(latest.replicas +
                                   std::min<std::int64_t>(room, deployment.replicas - latest.replicas));
}

std::vector<UpdateReplicaSet> plan_scale(const api::Deployment& deployment, const ReplicaSetPtr& latest,
                                         const ReplicaSets& old, Shares shares) {
  std::vector<UpdateReplicaSet> updates;
  if (const ReplicaSetPtr only = active_or_latest(latest, old)) {
    // A ReplicaSet of the right size may still carry the annotation of the size before, if a write was lost; until that
    // is mended, nothing is rolled out. A paused Deployment rolls out nothing anyway.
    const bool repairs = shares == Shares::kPromised && !deployment.paused;
    if (repairs || only->replicas != deployment.replicas) resize(updates, deployment, only, deployment.replicas);
    return updates;
  }
  ReplicaSets newest_first = old;
  std::ranges::sort(newest_first, [](const auto& a, const auto& b) { return older(*b, *a); });
  if (is_saturated(deployment, latest)) {
    for (const ReplicaSetPtr& set : active_of(newest_first)) resize(updates, deployment, set, 0);
    return updates;
  }
  if (deployment.strategy != kRollingUpdate) return updates;
  newest_first.push_back(latest);
  for (const auto& [set, size] : ProportionalScale(deployment, active_of(newest_first)).sizes(shares)) {
    resize(updates, deployment, set, size);
  }
  return updates;
}

}  // namespace spillway::workloads
