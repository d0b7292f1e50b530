// One sync of a Deployment: the writes in their order, and the time of the next sync. The plan assumes that each write
// succeeds; its executor stops at the first failure and requeues the Deployment. Thread: any (pure). Bounds: every
// write is to the Deployment or to one of its ReplicaSets, at most three to each. Source: Kubernetes docs,
// "Deployments"; spec "Scheduler and workloads", 12; vectors workloads/deployment_rollout, workloads/fenceposts.
// Differs from upstream: one sync writes a change of the new ReplicaSet once.
#pragma once

#include "api/object/workload.h"
#include "policy/workloads/deployment_revisions.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spillway::workloads {

/// Pods of its ReplicaSets that have not ended. Only a Deployment that recreates its pods asks.
enum class OldPods { kNone, kRunning };

struct DeploymentView {
  const api::Deployment& deployment;
  ReplicaSets sets;                   // ReplicaSets of the namespace: those it owns, and those without a controller
  OldPods old_pods = OldPods::kNone;  // pods of other ReplicaSets than the new one
};

/// An orphan that the selector matches.
struct AdoptReplicaSet {
  ReplicaSetPtr set;
};

/// Release of a ReplicaSet that the selector no longer matches.
struct ReleaseReplicaSet {
  ReplicaSetPtr set;
};

struct CreateReplicaSet {
  api::ReplicaSet set;
  api::Json selector;      // selector as in the spec
  api::Json pod_template;  // pod template as in the spec
};

/// Replicas, annotations, minReadySeconds. `scaled_from`: the former size, if it changes.
struct UpdateReplicaSet {
  api::ReplicaSet set;
  std::optional<std::int32_t> scaled_from;
};

struct DeleteReplicaSet {
  ReplicaSetPtr set;
};

/// Also writes the revision annotation of the Deployment; nullopt: that is unchanged.
struct WriteDeploymentStatus {
  api::DeploymentStatus status;
  std::optional<std::string> revision;
};

using DeploymentWrite = std::variant<AdoptReplicaSet, ReleaseReplicaSet, CreateReplicaSet, UpdateReplicaSet,
                                     DeleteReplicaSet, WriteDeploymentStatus>;

struct DeploymentPlan {
  std::vector<DeploymentWrite> writes;
  bool selects_everything = false;        // an empty selector: nothing is done but a warning event
  std::optional<Duration> requeue_after;  // for the progress deadline
};

/// kInvalid: a bound of the strategy that cannot be read.
Result<DeploymentPlan> plan_deployment(const DeploymentView& view, WallTime now);

/// "Scaled up replica set web-6f49 from 0 to 3".
std::string scaling_message(const api::ReplicaSet& set, std::int32_t from);

/// The status after the name of a new ReplicaSet was found to be taken by another one.
api::DeploymentStatus after_collision(const api::Deployment& deployment);
/// The status after a ReplicaSet could not be created; nullopt: unchanged, as there is no deadline.
std::optional<api::DeploymentStatus> after_failed_creation(const api::Deployment& deployment,
                                                           const std::string& message, WallTime now);

/// The number of pods that the new ReplicaSet may have now.
Result<std::int32_t> new_size(const api::Deployment& deployment, const ReplicaSets& all, const api::ReplicaSet& latest);

/// The division of a change of the number of pods in the middle of a rollout. kProportional: each ReplicaSet gets its
/// share, as upstream. kPromised: the same, but if a smaller Deployment would have fewer available pods than it
/// promises at its new size, ReplicaSets with unavailable pods are reduced before those that serve.
enum class Shares { kProportional, kPromised };

/// The new sizes after a change of the Deployment's number of pods in the middle of a rollout, in the order of their
/// writes.
std::vector<UpdateReplicaSet> plan_scale(const api::Deployment& deployment, const ReplicaSetPtr& latest,
                                         const ReplicaSets& old, Shares shares);

}  // namespace spillway::workloads
