#include "policy/workloads/deployment_status.h"

#include "policy/workloads/rollout_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace spillway::workloads {

namespace {

constexpr std::string_view kTrue = "True";

struct ProgressWord {
  std::string_view reason;
  std::string_view status;
  std::string_view what;
};

constexpr ProgressWord kSucceeded{kNewReplicaSetAvailable, kTrue, "has successfully progressed."};
constexpr ProgressWord kMoving{"ReplicaSetUpdated", kTrue, "is progressing."};
constexpr ProgressWord kTimedOut{kProgressDeadlineExceeded, "False", "has timed out progressing."};

api::WorkloadCondition progress_of(const ProgressWord& word, const api::Deployment& deployment,
                                   const ReplicaSetPtr& latest, WallTime now) {
  std::string message = latest ? fmt::format("ReplicaSet \"{}\" {}", latest->metadata.name, word.what)
                               : fmt::format("Deployment \"{}\" {}", deployment.metadata.name, word.what);
  return progress_condition(std::string(word.status), word.reason, std::move(message), now);
}

bool has_moved(const api::DeploymentStatus& before, const api::DeploymentStatus& now) {
  return now.updated_replicas > before.updated_replicas ||
         now.replicas - now.updated_replicas < before.replicas - before.updated_replicas ||
         now.ready_replicas > before.ready_replicas || now.available_replicas > before.available_replicas;
}

bool has_timed_out(const api::Deployment& deployment, const api::DeploymentStatus& status, WallTime now) {
  const api::WorkloadCondition* condition = find_condition(status.conditions, kProgressing);
  if (condition == nullptr || condition->reason == kNewReplicaSetAvailable) return false;
  if (condition->reason == kProgressDeadlineExceeded) return true;
  const WallTime since = condition->last_update_time.value_or(WallTime());
  return since + seconds(*deployment.progress_deadline_seconds) < now;
}

const api::WorkloadCondition* failure_of(const ReplicaSetPtr& set) {
  return set ? find_condition(set->conditions, kReplicaFailure) : nullptr;
}

/// The ReplicaFailure condition of the new ReplicaSet, else that of the oldest one that has it.
const api::WorkloadCondition* replica_failure(const ReplicaSets& old, const ReplicaSetPtr& latest) {
  if (const api::WorkloadCondition* failure = failure_of(latest)) return failure;
  for (const ReplicaSetPtr& set : old) {
    if (const api::WorkloadCondition* failure = failure_of(set)) return failure;
  }
  return nullptr;
}

void mark_progress(const api::Deployment& deployment, api::DeploymentStatus& status, const ReplicaSetPtr& latest,
                   WallTime now) {
  const api::WorkloadCondition* present = find_condition(deployment.status.conditions, kProgressing);
  const bool was_complete =
      status.replicas == status.updated_replicas && present != nullptr && present->reason == kNewReplicaSetAvailable;
  if (was_complete) return;
  if (is_complete(deployment, status)) {
    set_condition(status.conditions, progress_of(kSucceeded, deployment, latest, now));
  } else if (has_moved(deployment.status, status)) {
    // Set also if it was progressing before: the time of the last progress is renewed.
    api::WorkloadCondition moving = progress_of(kMoving, deployment, latest, now);
    if (present != nullptr && present->status == kTrue) moving.last_transition_time = present->last_transition_time;
    remove_condition(status.conditions, kProgressing);
    set_condition(status.conditions, std::move(moving));
  } else if (has_timed_out(deployment, status, now)) {
    set_condition(status.conditions, progress_of(kTimedOut, deployment, latest, now));
  }
}

}  // namespace

bool has_progress_deadline(const api::Deployment& deployment) {
  return deployment.progress_deadline_seconds &&
         *deployment.progress_deadline_seconds != std::numeric_limits<std::int32_t>::max();
}

const api::WorkloadCondition* find_condition(const std::vector<api::WorkloadCondition>& conditions,
                                             std::string_view type) {
  const auto found = std::ranges::find(conditions, type, &api::WorkloadCondition::type);
  return found == conditions.end() ? nullptr : &*found;
}

void set_condition(std::vector<api::WorkloadCondition>& conditions, api::WorkloadCondition condition) {
  if (const api::WorkloadCondition* present = find_condition(conditions, condition.type)) {
    if (present->status == condition.status && present->reason == condition.reason) return;
    if (present->status == condition.status) condition.last_transition_time = present->last_transition_time;
  }
  remove_condition(conditions, condition.type);
  conditions.push_back(std::move(condition));
}

void remove_condition(std::vector<api::WorkloadCondition>& conditions, std::string_view type) {
  std::erase_if(conditions, [type](const api::WorkloadCondition& condition) { return condition.type == type; });
}

api::WorkloadCondition progress_condition(std::string status, std::string_view reason, std::string message,
                                          WallTime now) {
  return {std::string(kProgressing), std::move(status), std::string(reason), std::move(message), now, now};
}

bool is_complete(const api::Deployment& deployment, const api::DeploymentStatus& status) {
  return status.updated_replicas == deployment.replicas && status.replicas == deployment.replicas &&
         status.available_replicas == deployment.replicas &&
         status.observed_generation >= deployment.metadata.generation;
}

api::DeploymentStatus counted_status(const api::Deployment& deployment, const ReplicaSets& old,
                                     const ReplicaSetPtr& latest, WallTime now) {
  api::DeploymentStatus status;
  status.observed_generation = deployment.metadata.generation;
  status.collision_count = deployment.status.collision_count;
  status.conditions = deployment.status.conditions;
  std::int32_t asked_for = 0;
  ReplicaSets all = old;
  if (latest) all.push_back(latest);
  for (const ReplicaSetPtr& set : all) {
    asked_for += set->replicas;
    status.replicas += set->status.replicas;
    status.ready_replicas += set->status.ready_replicas;
    status.available_replicas += set->status.available_replicas;
  }
  if (latest) status.updated_replicas = latest->status.replicas;
  status.unavailable_replicas = std::max(asked_for - status.available_replicas, 0);
  if (status.available_replicas >= rollout_bounds(deployment).available_min) {
    set_condition(status.conditions, {std::string(kAvailable), "True", "MinimumReplicasAvailable",
                                      "Deployment has minimum availability.", now, now});
  } else {
    set_condition(status.conditions, {std::string(kAvailable), "False", "MinimumReplicasUnavailable",
                                      "Deployment does not have minimum availability.", now, now});
  }
  return status;
}

api::DeploymentStatus rollout_status(const api::Deployment& deployment, const ReplicaSets& old,
                                     const ReplicaSetPtr& latest, WallTime now) {
  api::DeploymentStatus status = counted_status(deployment, old, latest, now);
  if (has_progress_deadline(deployment)) {
    mark_progress(deployment, status, latest, now);
  } else {
    remove_condition(status.conditions, kProgressing);
  }
  if (const api::WorkloadCondition* failure = replica_failure(old, latest)) {
    api::WorkloadCondition copy = *failure;
    copy.last_update_time = copy.last_transition_time;
    set_condition(status.conditions, std::move(copy));
  } else {
    remove_condition(status.conditions, kReplicaFailure);
  }
  return status;
}

std::optional<Duration> until_deadline(const api::Deployment& deployment, const api::DeploymentStatus& status,
                                       WallTime now) {
  const api::WorkloadCondition* present = find_condition(status.conditions, kProgressing);
  if (!has_progress_deadline(deployment) || present == nullptr) return std::nullopt;
  if (is_complete(deployment, status) || present->reason == kProgressDeadlineExceeded) return std::nullopt;
  const WallTime deadline =
      present->last_update_time.value_or(WallTime()) + seconds(*deployment.progress_deadline_seconds);
  return std::max<Duration>(deadline - now, Duration::zero()) + seconds(1);
}

}  // namespace spillway::workloads
