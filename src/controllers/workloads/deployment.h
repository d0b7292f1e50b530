// Carries Deployments from one pod template to the next: makes their ReplicaSets, scales them, keeps their history and
// writes the status. This class decides when a Deployment is synced; each sync is planned by
// policy/workloads/deployment_plan.h and carried out by deployment_sync.h.
// Thread: loop. Bounds: one sync of a Deployment at a time; retries back off to 60 s.
// Source: Kubernetes docs, "Deployments"; API reference DeploymentStatus; spec "Scheduler and workloads", 12.
#pragma once

#include "api/object/workload.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "policy/workloads/deployment_plan.h"
#include "telemetry/metrics.h"

#include <map>
#include <memory>
#include <string>

namespace spillway::controllers {

class DeploymentController {
 public:
  /// `pods`: by their owners, as the ReplicaSet controller keeps them.
  DeploymentController(Shared shared, client::Informer<api::Deployment>& deployments, const OwnedPods& pods,
                       telemetry::Registry& metrics);
  DeploymentController(const DeploymentController&) = delete;
  DeploymentController& operator=(const DeploymentController&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the Deployments that are due; called at the end of every step.
  void run(Now now);

 private:
  using DeploymentPtr = std::shared_ptr<const api::Deployment>;
  using SetPtr = workloads::ReplicaSetPtr;

  void on_deployment(const DeploymentPtr& before, const DeploymentPtr& after, Now now);
  void on_set(const SetPtr& before, const SetPtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void arm();
  void sync(const std::string& key, Now now);
  workloads::OldPods old_pods(const api::Deployment& deployment, const workloads::ReplicaSets& sets) const;

  Shared shared_;
  client::Informer<api::Deployment>& deployments_;
  const OwnedPods& pods_;
  OwnedReplicaSets sets_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  std::map<std::string, std::string> key_by_uid_;    // Deployments only
  std::map<std::string, std::string> owner_by_set_;  // the Deployment's uid by the ReplicaSet's
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
