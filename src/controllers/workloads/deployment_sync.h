// One sync of a Deployment: the writes of its plan, one after the other. The order of its steps is at the top of
// deployment_sync.cc. Each write is guarded by the version that it was decided on; the first that is refused ends the
// sync.
// Thread: loop. Bounds: one call under way. Source: Kubernetes docs, "Deployments"; API reference DeploymentStatus;
// spec "Scheduler and workloads", 12.
#pragma once

#include "api/object/workload.h"
#include "client/work_queue.h"
#include "controllers/shared/shared.h"
#include "controllers/shared/step_run.h"
#include "policy/workloads/deployment_plan.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace spillway::controllers {

enum class DeploymentStep : std::uint8_t {
  kWrites,  // send the next write; back to kWrites until all have been sent
  kEnd,     // requeue the Deployment if the plan says so
  // Only after a write whose ReplicaSet was not created; each ends the sync.
  kNamesake,        // read the ReplicaSet that has the name of the new one
  kCollision,       // write the status that makes the next sync choose another name
  kFailedCreation,  // write the status that says why there is no ReplicaSet
};

class DeploymentSync final : public StepRun<DeploymentSync, DeploymentStep> {
 public:
  using DeploymentPtr = std::shared_ptr<const api::Deployment>;
  using Step = DeploymentStep;

  /// `queue` must outlive the sync.
  DeploymentSync(Shared shared, client::WorkQueue& queue, DeploymentPtr deployment, workloads::DeploymentPlan plan);

 private:
  Next run(Step step, Now now) override;

  Next send_next();
  Next send(const workloads::AdoptReplicaSet& write);
  Next send(const workloads::ReleaseReplicaSet& write);
  Next send(const workloads::CreateReplicaSet& write);
  Next on_created(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::UpdateReplicaSet& write);
  Next on_updated(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::DeleteReplicaSet& write);
  Next on_deleted(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::WriteDeploymentStatus& write);
  Next on_written(const std::string& uid, const Result<api::Json>& outcome, Now now);
  Next read_namesake();
  Next on_namesake(const Result<api::Json>& outcome, Now now);
  Next write_collision();
  Next on_collision_written(const Result<api::Json>& outcome, Now now);
  Next write_failed_creation(Now now);
  Next on_failure_written(const Result<api::Json>& outcome, Now now);
  Next end(Now now);

  /// Ends the sync and requeues the Deployment after its back-off.
  Next give_up(const Error& error, Now now);

  /// The write that was sent last.
  template <typename Write>
  const Write& sent() const {
    return std::get<Write>(plan_.writes[next_write_ - 1]);
  }

  void write_status(const api::DeploymentStatus& status, const std::optional<std::string>& revision,
                    client::ApiClient::Done done);
  void record_scaling(const api::ReplicaSet& set, std::int32_t from, Now now);
  /// The resource version of an object after the writes of this sync.
  std::string version_of(const api::ObjectMeta& metadata) const;

  Shared shared_;
  client::WorkQueue& queue_;
  DeploymentPtr deployment_;
  std::string key_;
  workloads::DeploymentPlan plan_;
  std::size_t next_write_ = 0;
  std::map<std::string, std::string> versions_;  // resourceVersions after this sync's writes, by UID
  std::optional<Error> failure_;                 // the error of a ReplicaSet's creation
};

}  // namespace spillway::controllers
