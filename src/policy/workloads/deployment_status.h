// The status of a Deployment: its counts, and the conditions about the rollout's progress. Thread: any (pure). Source:
// API reference, DeploymentStatus; spec "Scheduler and workloads", 12; vectors workloads/deployment_rollout.
#pragma once

#include "api/object/workload.h"
#include "policy/workloads/deployment_revisions.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {

inline constexpr std::string_view kProgressing = "Progressing";
inline constexpr std::string_view kAvailable = "Available";
inline constexpr std::string_view kReplicaFailure = "ReplicaFailure";
inline constexpr std::string_view kNewReplicaSetAvailable = "NewReplicaSetAvailable";
inline constexpr std::string_view kProgressDeadlineExceeded = "ProgressDeadlineExceeded";
inline constexpr std::string_view kDeploymentPaused = "DeploymentPaused";

/// False: the Deployment waits for ever.
bool has_progress_deadline(const api::Deployment& deployment);

/// nullptr: there is no condition of that type.
const api::WorkloadCondition* find_condition(const std::vector<api::WorkloadCondition>& conditions,
                                             std::string_view type);

/// Puts it last, unless status and reason are what they were; its time of transition is kept with its status.
void set_condition(std::vector<api::WorkloadCondition>& conditions, api::WorkloadCondition condition);
void remove_condition(std::vector<api::WorkloadCondition>& conditions, std::string_view type);

/// Progressing, as of now.
api::WorkloadCondition progress_condition(std::string status, std::string_view reason, std::string message,
                                          WallTime now);

/// Every pod is of the present template and available, and none is left of an earlier one.
bool is_complete(const api::Deployment& deployment, const api::DeploymentStatus& status);

/// Sets the counts and the condition Available; other conditions are unchanged. `latest` may be null.
api::DeploymentStatus counted_status(const api::Deployment& deployment, const ReplicaSets& old,
                                     const ReplicaSetPtr& latest, WallTime now);

/// The status while a rollout may be under way: complete, progressing or timed out; and the cause that keeps pods from
/// being created.
api::DeploymentStatus rollout_status(const api::Deployment& deployment, const ReplicaSets& old,
                                     const ReplicaSetPtr& latest, WallTime now);

/// The time until the deadline has to be checked again; nullopt: not before something changes.
std::optional<Duration> until_deadline(const api::Deployment& deployment, const api::DeploymentStatus& status,
                                       WallTime now);

}  // namespace spillway::workloads
