// The state of a rollout, and the pods that it waits for. Thread: any (pure).
// Source: Kubernetes docs, "Deployments", failed deployment; the bounds are those of
// policy/workloads/deployment_plan.h.
#pragma once

#include "api/object/workload.h"
#include "policy/reason.h"
#include "policy/workloads/deployment_revisions.h"
#include "policy/workloads/pod_state.h"

#include <vector>

namespace spillway::workloads {

/// Candidates named in a decision; their total number is reported besides.
inline constexpr std::size_t kPodsNamedMax = 10;

/// `sets`: the ReplicaSets of the Deployment. `pods`: the pods of these sets. The reasons are in the order in which
/// they have to be resolved; the candidates are the pods of the present template that are not ready, with their own
/// problems.
policy::Decision explain_rollout(const api::Deployment& deployment, const ReplicaSets& sets,
                                 const std::vector<PodPtr>& pods, WallTime now);

}  // namespace spillway::workloads
