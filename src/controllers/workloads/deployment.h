// Carries Deployments from one pod template to the next: makes their ReplicaSets, scales them, keeps their history and
// writes the status. Each sync is planned by policy/workloads/deployment_plan.h; its writes are sent one after the
// other, each guarded by the version it was decided on, and the first refused one ends the sync. Thread: loop. Bounds:
// one sync of a Deployment at a time, one call of it under way; retries back off to 60 s.
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
#include <optional>
#include <string>

namespace spillway::controllers {

class DeploymentController {
 public:
  /// `pods`: by their owners, as the ReplicaSet controller keeps them.
  DeploymentController(Shared shared, client::Informer<api::Deployment>& deployments, const OwnedPods& pods,
                       telemetry::Registry& metrics);
  DeploymentController(const DeploymentController&) = delete;
  DeploymentController& operator=(const DeploymentController&) = delete;

  /// Once the caches are filled.
  void start(Now now);
  /// Works off what is due; called at the end of every step.
  void run(Now now);

 private:
  using DeploymentPtr = std::shared_ptr<const api::Deployment>;
  using SetPtr = workloads::ReplicaSetPtr;
  struct Look;

  void on_deployment(const DeploymentPtr& before, const DeploymentPtr& after, Now now);
  void on_set(const SetPtr& before, const SetPtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void arm();
  void look(const std::string& key, Now now);
  workloads::OldPods old_pods(const api::Deployment& deployment, const workloads::ReplicaSets& sets) const;
  void carry_on(const std::shared_ptr<Look>& look, Now now);
  void send(const std::shared_ptr<Look>& look, const workloads::AdoptReplicaSet& adopt);
  void send(const std::shared_ptr<Look>& look, const workloads::ReleaseReplicaSet& release);
  void send(const std::shared_ptr<Look>& look, const workloads::CreateReplicaSet& creation);
  void send(const std::shared_ptr<Look>& look, const workloads::UpdateReplicaSet& update);
  void send(const std::shared_ptr<Look>& look, const workloads::DeleteReplicaSet& removal);
  void send(const std::shared_ptr<Look>& look, const workloads::WriteDeploymentStatus& status);
  void patch_set(const std::shared_ptr<Look>& look, const api::ObjectMeta& set, api::Json patch,
                 client::PatchType type);
  void write_status(const std::shared_ptr<Look>& look, const api::DeploymentStatus& status,
                    const std::optional<std::string>& revision, client::ApiClient::Done done);
  void on_name_taken(const std::shared_ptr<Look>& look, const workloads::CreateReplicaSet& creation, Now now);
  void on_creation_failed(const std::shared_ptr<Look>& look, const workloads::CreateReplicaSet& creation,
                          const Error& error, Now now);
  void on_answer(const std::shared_ptr<Look>& look, const std::string& written, const Result<api::Json>& outcome,
                 Now now);
  void tell_scaling(const Look& look, const api::ReplicaSet& set, std::int32_t from, Now now);
  void give_up(const Look& look, const Error& error, Now now);

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
