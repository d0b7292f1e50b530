#include "sim/invariants.h"

#include "api/object/kind_id.h"
#include "policy/workloads/replacement_first.h"
#include "sim/properties/object_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {
namespace {

/// The uid of the ReplicaSet that the pod belongs to; empty: none.
std::string owner_uid(const api::Pod& pod) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  return owner == nullptr || api::kind_of(*owner) != api::kind_of<api::ReplicaSet>() ? std::string() : owner->uid;
}

/// True if the pod collector ended it, because its node is deleted: the agent of that node may not know it yet, and
/// statuses that it sent before may arrive later. The pod is deleted whatever its phase.
bool was_collected(const api::Pod& pod) {
  const api::PodCondition* target = api::find_condition(pod.status.conditions, "DisruptionTarget");
  return target != nullptr && target->reason == "DeletionByPodGC";
}

bool counts_as_replica(const api::Pod& pod) {
  return !api::is_terminal(pod) && !pod.metadata.deletion_timestamp && !was_collected(pod) &&
         !workloads::is_being_replaced(pod);
}

}  // namespace

void Invariants::on_outage(bool begins, Now now) {
  outages_ += begins ? 1 : -1;
  calm_since_ = now.mono;
}

void Invariants::check(Now now) {
  if (outages_ > 0) return;
  check_lasting(surplus_, limits_.surplus_max, sim::violated(Property::kNoSurplus), "has more pods than its replicas",
                now);
  check_marks(now);
  check_lasting(stale_taints_, limits_.stale_taint_max, sim::violated(Property::kTaintsGo),
                "is Ready and keeps its NoExecute taint", now);
  check_lasting(late_content_, limits_.late_content_max, sim::violated(Property::kNamespacesEmpty),
                "is in a namespace that is gone", now);
}

void Invariants::on_late_content(const std::string& key, bool is_there, Now now) {
  if (is_there)
    late_content_.emplace(key, now.mono);
  else
    late_content_.erase(key);
}

void Invariants::check_lasting(Lasting& lasting, Duration most, const Violated& violated, std::string_view what,
                               Now now) {
  for (auto it = lasting.begin(); it != lasting.end();) {
    const Duration lasts = now.mono - std::max(it->second, calm_since_);
    if (lasts <= most) {
      ++it;
      continue;
    }
    violate(violated, now, fmt::format("{} {} for {} s", it->first, what, lasts / seconds(1)));
    it = lasting.erase(it);
  }
}

void Invariants::on_replica_set(const api::ReplicaSet* before, const api::ReplicaSet* after, Now now) {
  rollouts_.on_replica_set(before, after, now);
  if (before != nullptr && (after == nullptr || before->metadata.uid != after->metadata.uid)) {
    wanted_replicas_.erase(before->metadata.uid);
    surplus_.erase(before->metadata.uid);
  }
  if (after == nullptr) return;
  const auto [wanted, fresh] = wanted_replicas_.try_emplace(after->metadata.uid, after->replicas);
  if (!fresh && after->replicas < wanted->second) lowered_.insert_or_assign(after->metadata.uid, now.mono);
  wanted->second = after->replicas;
  check_surplus(after->metadata.uid, now);
}

/// A pod that stops being replaced is kept: its set has one too many, which no controller could know before.
void Invariants::mark_replaced(const api::Pod* before, const api::Pod* after, Now now) {
  const bool was = before != nullptr && workloads::is_being_replaced(*before);
  const bool is = after != nullptr && workloads::is_being_replaced(*after);
  if (is) replaced_.insert_or_assign(after->key().text(), after->spec.node_name);
  if (!was || is) return;
  replaced_.erase(before->key().text());
  stale_marks_.erase(before->key().text());
  if (after != nullptr) lowered_.insert_or_assign(owner_uid(*before), now.mono);
}

void Invariants::check_marks(Now now) {
  for (const auto& [pod, node] : replaced_) {
    if (silent_nodes_.contains(node)) {
      stale_marks_.erase(pod);
    } else {
      stale_marks_.emplace(pod, now.mono);
    }
  }
  check_lasting(stale_marks_, limits_.surplus_max, {Property::kNoSurplus, "Pod"},
                "is being replaced although its node is well", now);
}

void Invariants::count_replica(const api::Pod* before, const api::Pod* after, Now now) {
  for (const api::Pod* pod : {before, after}) {
    if (pod == nullptr) continue;
    const std::string set = owner_uid(*pod);
    if (set.empty()) continue;
    if (pod == after && counts_as_replica(*pod)) {
      active_[set].insert(pod->metadata.uid);
    } else {
      active_[set].erase(pod->metadata.uid);
    }
    check_surplus(set, now);
  }
}

void Invariants::check_surplus(const std::string& set, Now now) {
  const auto wanted = wanted_replicas_.find(set);
  const auto active = static_cast<std::int64_t>(active_[set].size());
  const auto lowered = lowered_.find(set);
  if (wanted == wanted_replicas_.end() || active <= wanted->second) {
    surplus_.erase(set);
  } else if (no_surplus_ && (lowered == lowered_.end() || now.mono - lowered->second > limits_.surplus_max)) {
    violate(Property::kNoSurplus, now, fmt::format("a ReplicaSet of {} has {} active pods", wanted->second, active));
  } else {
    surplus_.emplace(set, now.mono);
  }
}

/// The status of a pod does not go back.
void Invariants::check_status(const api::Pod& before, const api::Pod& after, Now now) {
  if (before.status.phase == "Running" && (after.status.phase == "Pending" || after.status.phase.empty())) {
    violate(Property::kPodsEndOnce, now,
            fmt::format("pod {} went back from Running to \"{}\"", after.key().text(), after.status.phase));
  }
  for (const api::ContainerStatus& old : before.status.container_statuses) {
    for (const api::ContainerStatus& container : after.status.container_statuses) {
      if (container.name != old.name || container.restart_count >= old.restart_count) continue;
      violate(Property::kPodsEndOnce, now,
              fmt::format("pod {}: container {} went back from {} restarts to {}", after.key().text(), old.name,
                          old.restart_count, container.restart_count));
    }
  }
}

bool Invariants::is_wall_steady(Now now) {
  const Duration offset = now.wall.time_since_epoch() - now.mono.time_since_epoch();
  if (!wall_offset_) wall_offset_ = offset;
  wall_jumped_ = wall_jumped_ || std::chrono::abs(offset - *wall_offset_) > milliseconds(1);
  return !wall_jumped_;
}

void Invariants::on_lease(const LeaseRenewal* before, const LeaseRenewal* after, Now now) {
  if (!is_wall_steady(now)) return;
  if (after != nullptr && unsteady_nodes_.contains(after->name)) return;
  if (before == nullptr || after == nullptr || before->uid != after->uid) return;
  if (before->renew_time && after->renew_time && *after->renew_time < *before->renew_time) {
    violate({Property::kNewerStatus, "Lease"}, now,
            fmt::format("lease {} was overwritten by an older one", after->name));
  }
}

void Invariants::on_pod(const api::Pod* before, const api::Pod* after, Now now) {
  mark_replaced(before, after, now);
  count_replica(before, after, now);
  budgets_.on_pod(before, after, now);
  rollouts_.on_pod(before, after, now);
  const std::string name = (after != nullptr ? *after : *before).key().text();
  if (after != nullptr && gone_uids_.contains(after->metadata.uid)) {
    violate(Property::kPodsEndOnce, now, fmt::format("pod {} came back with the uid of a deleted pod", name));
  }
  if (after == nullptr) gone_uids_.insert(before->metadata.uid);
  if (before == nullptr || after == nullptr || before->metadata.uid != after->metadata.uid) return;
  if (!before->spec.node_name.empty() && before->spec.node_name != after->spec.node_name) {
    violate(Property::kOneMachine, now,
            fmt::format("pod {} was moved from {} to {}", name, before->spec.node_name, after->spec.node_name));
  }
  check_status(*before, *after, now);
  if (api::is_terminal(*before) && !api::is_terminal(*after) && !was_collected(*before)) {
    violate(Property::kPodsEndOnce, now,
            fmt::format("pod {} left phase {} for {}", name, before->status.phase, after->status.phase));
  }
  if (before->metadata.deletion_timestamp && !after->metadata.deletion_timestamp) {
    violate(Property::kPodsEndOnce, now, fmt::format("deletion of pod {} was undone", name));
  }
  evictions_.on_pod(*before, *after, now);
  acts_.on_pod(*before, *after, now);
}

void Invariants::on_node(const api::Node* before, const api::Node* after, Now now) {
  if (after == nullptr) {
    if (before == nullptr) return;
    stale_taints_.erase(before->metadata.name);
    silent_nodes_.insert(before->metadata.name);  // the node was deleted: its pods are collected
    return;
  }
  const bool is_tainted = has_silence_taint(*after);
  if (is_tainted) {
    silent_nodes_.insert(after->metadata.name);
  } else {
    silent_nodes_.erase(after->metadata.name);
  }
  if (is_tainted && is_ready(*after)) {
    stale_taints_.emplace(after->metadata.name, now.mono);
  } else {
    stale_taints_.erase(after->metadata.name);
  }
  const bool same = before != nullptr && before->metadata.uid == after->metadata.uid;
  acts_.on_node(before, *after, now);
  if (!is_wall_steady(now) || !same || unsteady_nodes_.contains(after->metadata.name)) return;
  for (const api::NodeCondition& old : before->status.conditions) {
    const api::NodeCondition* condition = api::find_condition(after->status.conditions, old.type);
    if (condition == nullptr || !old.last_heartbeat_time || !condition->last_heartbeat_time) continue;
    if (*condition->last_heartbeat_time >= *old.last_heartbeat_time) continue;
    violate(Property::kNewerStatus, now,
            fmt::format("node {}: condition {} was overwritten by an older one", after->metadata.name, old.type));
  }
}

void Invariants::on_budget(const api::PodDisruptionBudget* before, const api::PodDisruptionBudget* after, Now now) {
  budgets_.on_budget(before, after, now);
}

void Invariants::on_start(const std::string& node, const std::string& uid, Now now) {
  evictions_.on_start(uid, now);
  const auto [known, fresh] = node_of_uid_.emplace(uid, node);
  if (!fresh && known->second != node) {
    violate(Property::kOneMachine, now, fmt::format("pod {} runs on {} and on {}", uid, known->second, node));
  }
}

}  // namespace spillway::sim
