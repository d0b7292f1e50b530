// Where a rollout stands, and what it waits for if it does. Thread: any (pure).
// Source: Kubernetes docs, "Deployments", failed deployment; the bounds are those of
// policy/workloads/deployment_plan.h.
#pragma once

#include "api/object/workload.h"
#include "policy/reason.h"
#include "policy/workloads/deployment_revisions.h"
#include "policy/workloads/pod_state.h"

#include <vector>

namespace spillway::workloads {

/// Candidates named in a decision; how many there are is said besides.
inline constexpr std::size_t kPodsNamedMax = 10;

/// `sets`: those the Deployment owns. `pods`: those of these sets. The reasons come in the order in which they have to
/// go; the candidates are the pods of the present template that are not ready, with what they say of themselves.
policy::Decision explain_rollout(const api::Deployment& deployment, const ReplicaSets& sets,
                                 const std::vector<PodPtr>& pods, WallTime now);

}  // namespace spillway::workloads
