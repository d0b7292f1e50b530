#include "controllers/workloads/deployment.h"

#include "api/codec/codec.h"
#include "controllers/shared/paths.h"
#include "controllers/shared/sync_slice.h"
#include "policy/workloads/pod_template.h"
#include "policy/workloads/rollout_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace spillway::controllers {

namespace {

using workloads::AdoptReplicaSet;
using workloads::CreateReplicaSet;
using workloads::DeleteReplicaSet;
using workloads::ReleaseReplicaSet;
using workloads::UpdateReplicaSet;
using workloads::WriteDeploymentStatus;

Owner owner_of(const api::Deployment& deployment) {
  return {api::Deployment::kApiVersion, api::Deployment::kKind, deployment.metadata};
}

std::string set_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::ReplicaSet::kApiVersion, "replicasets", neighbour.ns, name);
}

api::Json set_document(const api::Deployment& deployment, const CreateReplicaSet& creation) {
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
api::Json status_document(const api::DeploymentStatus& status) {
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

/// The writes of one sync, and its progress.
struct DeploymentController::Look {
  DeploymentPtr deployment;
  std::string key;
  workloads::DeploymentPlan plan;
  std::size_t next = 0;
  std::map<std::string, std::string> versions;  // resource versions after this sync's writes, by UID

  std::string version_of(const api::ObjectMeta& metadata) const {
    const auto written = versions.find(metadata.uid);
    return written != versions.end() ? written->second : metadata.resource_version;
  }
};

DeploymentController::DeploymentController(Shared shared, client::Informer<api::Deployment>& deployments,
                                           const OwnedPods& pods, telemetry::Registry& metrics)
    : shared_(shared), deployments_(deployments), pods_(pods), queue_metrics_(metrics, "deployment") {
  deployments_.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_deployment(before, after, now); }});
  shared_.replica_sets.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_set(before, after, now); }});
  shared_.pods.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
}

void DeploymentController::start(Now now) {
  started_ = true;
  for (const auto& [key, deployment] : deployments_.cache().all()) enqueue(key, now);
}

void DeploymentController::on_deployment(const DeploymentPtr& before, const DeploymentPtr& after, Now now) {
  if (before && (!after || after->metadata.uid != before->metadata.uid)) key_by_uid_.erase(before->metadata.uid);
  if (after) key_by_uid_[after->metadata.uid] = client::key_of(after->metadata);
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

void DeploymentController::on_set(const SetPtr& before, const SetPtr& after, Now now) {
  sets_.on_change(before, after);
  if (before) owner_by_set_.erase(before->metadata.uid);
  for (const SetPtr& set : {before, after}) {
    const api::OwnerReference* owner = set ? api::controller_of(set->metadata) : nullptr;
    if (owner == nullptr) continue;
    if (set == after) owner_by_set_[set->metadata.uid] = owner->uid;
    const auto key = key_by_uid_.find(owner->uid);
    if (key != key_by_uid_.end()) enqueue(key->second, now);
  }
  if (!after || api::controller_of(after->metadata) != nullptr) return;
  // A Deployment may want to adopt it.
  visit_namespace(deployments_.cache().all(), after->metadata.ns,
                  [&](const std::string& key, const DeploymentPtr& each) {
                    if (each->selector.matches(after->metadata.labels)) enqueue(key, now);
                  });
}

/// A pod causes a sync only by its end, and only in a Deployment that waits for its old pods to end (Recreate).
void DeploymentController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  if (!before || (after && !api::is_terminal(*after))) return;
  const api::OwnerReference* owner = api::controller_of(before->metadata);
  const auto deployment = owner != nullptr ? owner_by_set_.find(owner->uid) : owner_by_set_.end();
  const auto key = deployment != owner_by_set_.end() ? key_by_uid_.find(deployment->second) : key_by_uid_.end();
  if (key == key_by_uid_.end()) return;
  const DeploymentPtr found = deployments_.cache().find(key->second);
  if (found && found->strategy == workloads::kRecreate) enqueue(key->second, now);
}

void DeploymentController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

void DeploymentController::run(Now now) {
  if (!started_) return;
  SyncSlice slice;
  while (slice.has_room()) {
    const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono);
    if (!key) break;
    slice.add(sets_.count_orphans_in(namespace_of(*key)));
    look(*key, now);
  }
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void DeploymentController::arm() {
  const std::optional<Instant> due = queue_.next_due();
  wake_up_.set(shared_.client, due);
}

void DeploymentController::look(const std::string& key, Now now) {
  const DeploymentPtr deployment = deployments_.cache().find(key);
  if (!deployment) {
    queue_.done(key);
    return queue_.forget(key);
  }
  workloads::ReplicaSets sets = sets_.of(deployment->metadata.uid);
  for (SetPtr& orphan : sets_.orphans_in(deployment->metadata.ns)) sets.push_back(std::move(orphan));
  const workloads::OldPods pods = old_pods(*deployment, sets);
  auto plan = workloads::plan_deployment({*deployment, std::move(sets), pods}, now.wall);
  const auto begun = std::make_shared<Look>(Look{deployment, key, {}, 0, {}});
  if (!plan) return give_up(*begun, plan.error(), now);
  if (plan->selects_everything) {
    shared_.events.record(client::reference_to(*deployment), client::EventType::kWarning, "SelectingAll",
                          "This deployment is selecting all pods. A non-empty selector is required.", now);
  }
  begun->plan = *std::move(plan);
  carry_on(begun, now);
}

workloads::OldPods DeploymentController::old_pods(const api::Deployment& deployment,
                                                  const workloads::ReplicaSets& sets) const {
  if (deployment.strategy != workloads::kRecreate) return workloads::OldPods::kNone;
  const SetPtr latest = workloads::find_new(deployment, sets_.of(deployment.metadata.uid));
  for (const SetPtr& set : sets) {
    const api::OwnerReference* owner = api::controller_of(set->metadata);
    if (owner == nullptr || (latest && latest->metadata.uid == set->metadata.uid)) continue;
    const auto pods = pods_.of(set->metadata.uid);
    if (std::ranges::any_of(pods, [](const PodPtr& pod) { return !api::is_terminal(*pod); })) {
      return workloads::OldPods::kRunning;
    }
  }
  return workloads::OldPods::kNone;
}

void DeploymentController::carry_on(const std::shared_ptr<Look>& look, Now now) {
  if (look->next < look->plan.writes.size()) {
    const workloads::DeploymentWrite& write = look->plan.writes[look->next++];
    return std::visit([&](const auto& each) { send(look, each); }, write);
  }
  queue_.done(look->key);
  queue_.forget(look->key);
  if (look->plan.look_again) queue_.add(look->key, now.mono + *look->plan.look_again);
}

void DeploymentController::give_up(const Look& look, const Error& error, Now now) {
  // Another client wrote first, or the object is deleted: the watch reports both. Not found is also the answer where
  // writes are off.
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    shared_.log.warning("deployment sync failed", {{"deployment", look.key}, {"error", error.text()}});
  }
  queue_.done(look.key);
  queue_.retry(look.key, now.mono);
}

void DeploymentController::on_answer(const std::shared_ptr<Look>& look, const std::string& written,
                                     const Result<api::Json>& outcome, Now now) {
  if (!outcome) return give_up(*look, outcome.error(), now);
  if (!written.empty()) look->versions[written] = std::string(outcome->string_at({"metadata", "resourceVersion"}));
  carry_on(look, now);
}

void DeploymentController::patch_set(const std::shared_ptr<Look>& look, const api::ObjectMeta& set, api::Json patch,
                                     client::PatchType type) {
  shared_.client.patch(
      set_path(set, set.name), type, std::move(patch),
      [this, look, uid = set.uid](const Result<api::Json>& outcome, Now then) { on_answer(look, uid, outcome, then); });
}

void DeploymentController::send(const std::shared_ptr<Look>& look, const AdoptReplicaSet& adopt) {
  patch_set(look, adopt.set->metadata, adoption_patch(owner_of(*look->deployment), adopt.set->metadata),
            client::PatchType::kStrategicMerge);
}

void DeploymentController::send(const std::shared_ptr<Look>& look, const ReleaseReplicaSet& release) {
  patch_set(look, release.set->metadata, release_patch(look->deployment->metadata, release.set->metadata),
            client::PatchType::kStrategicMerge);
}

void DeploymentController::send(const std::shared_ptr<Look>& look, const CreateReplicaSet& creation) {
  shared_.client.create(set_path(look->deployment->metadata), set_document(*look->deployment, creation),
                        [this, look, &creation](const Result<api::Json>& outcome, Now then) {
                          if (outcome) {
                            if (creation.set.replicas > 0) tell_scaling(*look, creation.set, 0, then);
                            return carry_on(look, then);
                          }
                          if (outcome.error().code == ErrorCode::kAlreadyExists) {
                            return on_name_taken(look, creation, then);
                          }
                          on_creation_failed(look, creation, outcome.error(), then);
                        });
}

/// The name is taken by a ReplicaSet of this Deployment that the cache does not show yet, or by another one: the next
/// name differs then.
void DeploymentController::on_name_taken(const std::shared_ptr<Look>& look, const CreateReplicaSet& creation, Now) {
  const api::ObjectMeta& wanted = creation.set.metadata;
  shared_.client.get(set_path(wanted, wanted.name), [this, look](const Result<api::Json>& outcome, Now then) {
    const auto set = outcome ? api::decode<api::ReplicaSet>(*outcome) : Result<api::ReplicaSet>(outcome.error());
    if (!set) return give_up(*look, set.error(), then);
    const api::Deployment& deployment = *look->deployment;
    const api::OwnerReference* owner = api::controller_of(set->metadata);
    const bool ours = owner != nullptr && owner->uid == deployment.metadata.uid;
    if (ours && workloads::same_template(workloads::template_document(deployment.pod_template),
                                         workloads::template_document(set->pod_template))) {
      return give_up(*look, make_error(ErrorCode::kConflict, "its ReplicaSet is there"), then);
    }
    write_status(look, workloads::after_collision(deployment), std::nullopt,
                 [this, look](const Result<api::Json>&, Now later) {
                   give_up(*look, make_error(ErrorCode::kConflict, "the name of its ReplicaSet is taken"), later);
                 });
  });
}

void DeploymentController::on_creation_failed(const std::shared_ptr<Look>& look, const CreateReplicaSet& creation,
                                              const Error& error, Now now) {
  // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
  if (error.code == ErrorCode::kNotFound) return give_up(*look, error, now);
  const std::string message =
      fmt::format("Failed to create new replica set \"{}\": {}", creation.set.metadata.name, error.message);
  shared_.events.record(client::reference_to(*look->deployment), client::EventType::kWarning, "ReplicaSetCreateError",
                        message, now);
  const auto status = workloads::after_failed_creation(*look->deployment, message, now.wall);
  if (!status || *status == look->deployment->status) return give_up(*look, error, now);
  write_status(look, *status, std::nullopt,
               [this, look, error](const Result<api::Json>&, Now then) { give_up(*look, error, then); });
}

void DeploymentController::send(const std::shared_ptr<Look>& look, const UpdateReplicaSet& update) {
  const api::ObjectMeta& metadata = update.set.metadata;
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid},
                                       {"resourceVersion", look->version_of(metadata)},
                                       {"annotations", json_of(metadata.annotations)}})},
       {"spec",
        api::Json::object({{"replicas", update.set.replicas}, {"minReadySeconds", update.set.min_ready_seconds}})}});
  shared_.client.patch(set_path(metadata, metadata.name), client::PatchType::kMerge, patch,
                       [this, look, &update](const Result<api::Json>& outcome, Now then) {
                         if (outcome && update.scaled_from) tell_scaling(*look, update.set, *update.scaled_from, then);
                         on_answer(look, update.set.metadata.uid, outcome, then);
                       });
}

void DeploymentController::send(const std::shared_ptr<Look>& look, const DeleteReplicaSet& removal) {
  const api::ObjectMeta& metadata = removal.set->metadata;
  shared_.client.remove(set_path(metadata, metadata.name), delete_options(metadata),
                        [this, look](const Result<api::Json>& outcome, Now then) {
                          const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
                          if (!outcome && !gone) return give_up(*look, outcome.error(), then);
                          carry_on(look, then);
                        });
}

void DeploymentController::send(const std::shared_ptr<Look>& look, const WriteDeploymentStatus& status) {
  write_status(look, status.status, status.revision, [this, look](const Result<api::Json>& outcome, Now then) {
    on_answer(look, look->deployment->metadata.uid, outcome, then);
  });
}

void DeploymentController::write_status(const std::shared_ptr<Look>& look, const api::DeploymentStatus& status,
                                        const std::optional<std::string>& revision, client::ApiClient::Done done) {
  const api::ObjectMeta& metadata = look->deployment->metadata;
  api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", look->version_of(metadata)}})},
       {"status", status_document(status)}});
  if (revision) patch.make({"metadata", "annotations"})[workloads::kRevision] = *revision;
  shared_.client.patch(
      client::object_path(api::Deployment::kApiVersion, "deployments", metadata.ns, metadata.name, "status"),
      client::PatchType::kMerge, std::move(patch), std::move(done));
}

void DeploymentController::tell_scaling(const Look& look, const api::ReplicaSet& set, std::int32_t from, Now now) {
  shared_.events.record(client::reference_to(*look.deployment), client::EventType::kNormal, "ScalingReplicaSet",
                        workloads::scaling_message(set, from), now);
}

}  // namespace spillway::controllers
