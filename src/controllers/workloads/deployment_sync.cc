#include "controllers/workloads/deployment_sync.h"

#include "api/codec/codec.h"
#include "controllers/shared/owned_pods.h"
#include "policy/workloads/pod_template.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr std::array kDeploymentSteps = {
    DeploymentStep::kWrites,         DeploymentStep::kEnd, DeploymentStep::kNamesake, DeploymentStep::kCollision,
    DeploymentStep::kFailedCreation,
};

Owner owner_of(const api::Deployment& deployment) {
  return {api::Deployment::kApiVersion, api::Deployment::kKind, deployment.metadata};
}

std::string set_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::ReplicaSet::kApiVersion, "replicasets", neighbour.ns, name);
}

api::Json set_document(const api::Deployment& deployment, const workloads::CreateReplicaSet& creation) {
  const api::ReplicaSet& set = creation.set;
  return api::Json::object(
      {{"apiVersion", api::ReplicaSet::kApiVersion},
       {"kind", api::ReplicaSet::kKind},
       {"metadata",
        api::Json::object({{"name", set.metadata.name},
                           {"namespace", set.metadata.ns},
                           {"labels", json_of(set.metadata.labels)},
                           {"annotations", json_of(set.metadata.annotations)},
                           {"ownerReferences", api::Json::array({owner_reference(owner_of(deployment))})}})},
       {"spec", api::Json::object({{"replicas", set.replicas},
                                   {"minReadySeconds", set.min_ready_seconds},
                                   {"selector", creation.selector},
                                   {"template", creation.pod_template}})}});
}

/// Every member of the status, null for absent ones, so that a patch removes them.
api::Json deployment_status_document(const api::DeploymentStatus& status) {
  api::Deployment bare;
  bare.status = status;
  const api::Json written = api::encode(bare);
  api::Json document = api::Json::object();
  for (const std::string_view field : {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas",
                                       "availableReplicas", "unavailableReplicas", "collisionCount", "conditions"}) {
    const api::Json* value = written.at({"status", field});
    document[field] = value != nullptr ? *value : api::Json();
  }
  return document;
}

}  // namespace

DeploymentSync::DeploymentSync(Shared shared, client::WorkQueue& queue, DeploymentPtr deployment,
                               workloads::DeploymentPlan plan)
    : StepRun(kDeploymentSteps),
      shared_(shared),
      queue_(queue),
      deployment_(std::move(deployment)),
      key_(client::key_of(deployment_->metadata)),
      plan_(std::move(plan)) {}

Next DeploymentSync::run(Step step, Now now) {
  switch (step) {
    case Step::kWrites:
      return send_next();
    case Step::kEnd:
      return end(now);
    case Step::kNamesake:
      return read_namesake();
    case Step::kCollision:
      return write_collision();
    case Step::kFailedCreation:
      return write_failed_creation(now);
  }
  return Next::kEnd;
}

Next DeploymentSync::send_next() {
  if (next_write_ == plan_.writes.size()) return Next::kStep;
  steps_.go_to(Step::kWrites);
  return std::visit([this](const auto& write) { return send(write); }, plan_.writes[next_write_++]);
}

Next DeploymentSync::send(const workloads::AdoptReplicaSet& write) {
  const api::ObjectMeta& set = write.set->metadata;
  shared_.client.patch(set_path(set, set.name), client::PatchType::kStrategicMerge,
                       adoption_patch(owner_of(*deployment_), set), then(&DeploymentSync::on_written, set.uid));
  return Next::kWait;
}

Next DeploymentSync::send(const workloads::ReleaseReplicaSet& write) {
  const api::ObjectMeta& set = write.set->metadata;
  shared_.client.patch(set_path(set, set.name), client::PatchType::kStrategicMerge,
                       release_patch(deployment_->metadata, set), then(&DeploymentSync::on_written, set.uid));
  return Next::kWait;
}

/// After a write of an object: later writes of it are guarded by its new version.
Next DeploymentSync::on_written(const std::string& uid, const Result<api::Json>& outcome, Now now) {
  if (!outcome) return give_up(outcome.error(), now);
  versions_[uid] = std::string(outcome->string_at({"metadata", "resourceVersion"}));
  return Next::kStep;
}

Next DeploymentSync::send(const workloads::CreateReplicaSet& write) {
  shared_.client.create(set_path(deployment_->metadata), set_document(*deployment_, write),
                        then(&DeploymentSync::on_created));
  return Next::kWait;
}

Next DeploymentSync::on_created(const Result<api::Json>& outcome, Now now) {
  const api::ReplicaSet& set = sent<workloads::CreateReplicaSet>().set;
  if (outcome) {
    if (set.replicas > 0) record_scaling(set, 0, now);
    return Next::kStep;
  }
  if (outcome.error().code == ErrorCode::kAlreadyExists) {
    steps_.go_to(Step::kNamesake);
    return Next::kStep;
  }
  // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
  if (outcome.error().code == ErrorCode::kNotFound) return give_up(outcome.error(), now);
  failure_ = outcome.error();
  steps_.go_to(Step::kFailedCreation);
  return Next::kStep;
}

Next DeploymentSync::send(const workloads::UpdateReplicaSet& write) {
  const api::ObjectMeta& metadata = write.set.metadata;
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid},
                                       {"resourceVersion", version_of(metadata)},
                                       {"annotations", json_of(metadata.annotations)}})},
       {"spec",
        api::Json::object({{"replicas", write.set.replicas}, {"minReadySeconds", write.set.min_ready_seconds}})}});
  shared_.client.patch(set_path(metadata, metadata.name), client::PatchType::kMerge, patch,
                       then(&DeploymentSync::on_updated));
  return Next::kWait;
}

Next DeploymentSync::on_updated(const Result<api::Json>& outcome, Now now) {
  const auto& write = sent<workloads::UpdateReplicaSet>();
  if (outcome && write.scaled_from) record_scaling(write.set, *write.scaled_from, now);
  return on_written(write.set.metadata.uid, outcome, now);
}

Next DeploymentSync::send(const workloads::DeleteReplicaSet& write) {
  const api::ObjectMeta& metadata = write.set->metadata;
  shared_.client.remove(set_path(metadata, metadata.name), delete_options(metadata), then(&DeploymentSync::on_deleted));
  return Next::kWait;
}

Next DeploymentSync::on_deleted(const Result<api::Json>& outcome, Now now) {
  const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
  return outcome || gone ? Next::kStep : give_up(outcome.error(), now);
}

Next DeploymentSync::send(const workloads::WriteDeploymentStatus& write) {
  write_status(write.status, write.revision, then(&DeploymentSync::on_written, deployment_->metadata.uid));
  return Next::kWait;
}

Next DeploymentSync::end(Now now) {
  queue_.done(key_);
  queue_.forget(key_);
  if (plan_.requeue_after) queue_.add(key_, now.mono + *plan_.requeue_after);
  return Next::kEnd;
}

/// The name of the new ReplicaSet is taken by one of ours that the cache does not show yet, or by another one: the next
/// name differs then.
Next DeploymentSync::read_namesake() {
  const api::ObjectMeta& wanted = sent<workloads::CreateReplicaSet>().set.metadata;
  shared_.client.get(set_path(wanted, wanted.name), then(&DeploymentSync::on_namesake));
  return Next::kWait;
}

Next DeploymentSync::on_namesake(const Result<api::Json>& outcome, Now now) {
  const auto set = outcome ? api::decode<api::ReplicaSet>(*outcome) : Result<api::ReplicaSet>(outcome.error());
  if (!set) return give_up(set.error(), now);
  const api::OwnerReference* owner = api::controller_of(set->metadata);
  const bool ours = owner != nullptr && owner->uid == deployment_->metadata.uid;
  if (ours && workloads::same_template(workloads::template_document(deployment_->pod_template),
                                       workloads::template_document(set->pod_template))) {
    return give_up(make_error(ErrorCode::kConflict, "its ReplicaSet is there"), now);
  }
  steps_.go_to(Step::kCollision);
  return Next::kStep;
}

Next DeploymentSync::write_collision() {
  write_status(workloads::after_collision(*deployment_), std::nullopt, then(&DeploymentSync::on_collision_written));
  return Next::kWait;
}

Next DeploymentSync::on_collision_written(const Result<api::Json>& /*outcome*/, Now now) {
  return give_up(make_error(ErrorCode::kConflict, "the name of its ReplicaSet is taken"), now);
}

Next DeploymentSync::write_failed_creation(Now now) {
  const std::string message = fmt::format("Failed to create new replica set \"{}\": {}",
                                          sent<workloads::CreateReplicaSet>().set.metadata.name, failure_->message);
  shared_.events.record(client::reference_to(*deployment_), client::EventType::kWarning, "ReplicaSetCreateError",
                        message, now);
  const auto status = workloads::after_failed_creation(*deployment_, message, now.wall);
  if (!status || *status == deployment_->status) return give_up(*failure_, now);
  write_status(*status, std::nullopt, then(&DeploymentSync::on_failure_written));
  return Next::kWait;
}

Next DeploymentSync::on_failure_written(const Result<api::Json>& /*outcome*/, Now now) {
  return give_up(*failure_, now);
}

void DeploymentSync::write_status(const api::DeploymentStatus& status, const std::optional<std::string>& revision,
                                  client::ApiClient::Done done) {
  const api::ObjectMeta& metadata = deployment_->metadata;
  api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", version_of(metadata)}})},
       {"status", deployment_status_document(status)}});
  if (revision) patch.make({"metadata", "annotations"})[workloads::kRevision] = *revision;
  shared_.client.patch(
      client::object_path(api::Deployment::kApiVersion, "deployments", metadata.ns, metadata.name, "status"),
      client::PatchType::kMerge, std::move(patch), std::move(done));
}

Next DeploymentSync::give_up(const Error& error, Now now) {
  // Another client wrote first, or the object is gone: the watch reports both. Not found is also the answer where
  // writes are off.
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    shared_.log.warning("deployment sync failed", {{"deployment", key_}, {"error", error.text()}});
  }
  queue_.done(key_);
  queue_.retry(key_, now.mono);
  return Next::kEnd;
}

void DeploymentSync::record_scaling(const api::ReplicaSet& set, std::int32_t from, Now now) {
  shared_.events.record(client::reference_to(*deployment_), client::EventType::kNormal, "ScalingReplicaSet",
                        workloads::scaling_message(set, from), now);
}

std::string DeploymentSync::version_of(const api::ObjectMeta& metadata) const {
  const auto written = versions_.find(metadata.uid);
  return written != versions_.end() ? written->second : metadata.resource_version;
}

}  // namespace spillway::controllers
