#include "controllers/workloads/stateful_set_sync.h"

#include "api/codec/codec.h"
#include "controllers/shared/paths.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <utility>
#include <variant>

namespace spillway::controllers {

namespace {

constexpr std::array kStatefulSetSteps = {
    StatefulSetStep::kRevisions,      StatefulSetStep::kNewRevision, StatefulSetStep::kNamesake,
    StatefulSetStep::kRevisionNumber, StatefulSetStep::kPlan,        StatefulSetStep::kWrites,
    StatefulSetStep::kStatus,         StatefulSetStep::kEnd,
};

/// Names of a new revision that one sync tries. A name is a hash of the template and of the number of collisions: ten
/// taken in a row are not chance, and the next sync continues with the following ones.
constexpr int kRevisionNamesMax = 10;

std::string claims_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::PersistentVolumeClaim::kApiVersion, "persistentvolumeclaims", neighbour.ns, name);
}

api::Json owners_document(const std::vector<api::OwnerReference>& owners) {
  api::PersistentVolumeClaim bare;
  bare.metadata.owner_references = owners;
  const api::Json document = api::encode(bare);
  const api::Json* list = document.at({"metadata", "ownerReferences"});
  return list != nullptr ? *list : api::Json();
}

api::Json stateful_status_document(const api::StatefulSetStatus& status) {
  return api::Json::object({{"observedGeneration", status.observed_generation},
                            {"replicas", status.replicas},
                            {"readyReplicas", status.ready_replicas},
                            {"currentReplicas", status.current_replicas},
                            {"updatedReplicas", status.updated_replicas},
                            {"currentRevision", status.current_revision},
                            {"updateRevision", status.update_revision},
                            {"collisionCount", status.collision_count.value_or(0)},
                            {"availableReplicas", status.available_replicas}});
}

}  // namespace

Owner owner_of(const api::StatefulSet& set) {
  return {api::StatefulSet::kApiVersion, api::StatefulSet::kKind, set.metadata};
}

std::string history_path(const api::ObjectMeta& neighbour, std::string_view name) {
  return client::object_path(api::ControllerRevision::kApiVersion, "controllerrevisions", neighbour.ns, name);
}

StatefulSetSync::StatefulSetSync(const StatefulSetTools& tools, SetPtr set, std::vector<PodPtr> pods,
                                 std::vector<workloads::RevisionPtr> revisions)
    : StepRun(kStatefulSetSteps),
      tools_(tools),
      set_(std::move(set)),
      key_(client::key_of(set_->metadata)),
      pods_(std::move(pods)),
      revisions_(std::move(revisions)),
      collisions_(set_->status.collision_count.value_or(0)) {}

Next StatefulSetSync::run(Step step, Now now) {
  switch (step) {
    case Step::kRevisions:
      return find_revisions();
    case Step::kNewRevision:
      return create_revision();
    case Step::kNamesake:
      return read_namesake();
    case Step::kRevisionNumber:
      return renumber_revision();
    case Step::kPlan:
      return plan(now);
    case Step::kWrites:
      return send_next(now);
    case Step::kStatus:
      return write_status();
    case Step::kEnd:
      return end(now);
  }
  return Next::kEnd;
}

Next StatefulSetSync::find_revisions() {
  workloads::StatefulRevisions found = workloads::plan_stateful_revisions(*set_, revisions_, collisions_);
  update_ = found.update;
  current_ = found.current;
  new_revision_.reset();
  if (!found.create) {
    new_number_ = found.renumber;
  } else if (!set_->metadata.deletion_timestamp) {
    new_revision_ = *std::move(found.create);
  } else {  // the set is being deleted, and the garbage collector deletes its pods; only the status is updated
    update_ = current_ ? current_ : std::make_shared<const api::ControllerRevision>(*std::move(found.create));
  }
  return Next::kStep;
}

Next StatefulSetSync::create_revision() {
  if (!new_revision_) return Next::kStep;
  api::Json document = api::encode(*new_revision_);
  document.make({"metadata", "ownerReferences"}) = api::Json::array({owner_reference(owner_of(*set_))});
  tools_.shared.client.create(history_path(set_->metadata), std::move(document),
                              then(&StatefulSetSync::on_revision_created));
  return Next::kWait;
}

Next StatefulSetSync::on_revision_created(const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists) return Next::kStep;
  auto made =
      outcome ? api::decode<api::ControllerRevision>(*outcome) : Result<api::ControllerRevision>(outcome.error());
  if (!made) return give_up(made.error(), now);
  update_ = std::make_shared<const api::ControllerRevision>(*std::move(made));
  new_revision_.reset();
  return Next::kStep;
}

/// The name of the new revision is taken if it is still to be created: by the same revision, which the cache does not
/// show yet, or by another one.
Next StatefulSetSync::read_namesake() {
  if (!new_revision_) return Next::kStep;
  tools_.shared.client.get(history_path(set_->metadata, new_revision_->metadata.name),
                           then(&StatefulSetSync::on_namesake));
  return Next::kWait;
}

Next StatefulSetSync::on_namesake(const Result<api::Json>& outcome, Now now) {
  auto found =
      outcome ? api::decode<api::ControllerRevision>(*outcome) : Result<api::ControllerRevision>(outcome.error());
  if (!found) return give_up(found.error(), now);
  const api::OwnerReference* owner = api::controller_of(found->metadata);
  const bool ours = owner != nullptr && owner->uid == set_->metadata.uid;
  if (ours && found->data == new_revision_->data) {
    update_ = std::make_shared<const api::ControllerRevision>(*std::move(found));
    new_revision_.reset();
    return Next::kStep;
  }
  if (++names_tried_ == kRevisionNamesMax) {
    return give_up(make_error(ErrorCode::kConflict, "the names of its revision are taken"), now);
  }
  ++collisions_;
  steps_.go_to(Step::kRevisions);
  return Next::kStep;
}

Next StatefulSetSync::renumber_revision() {
  if (!new_number_) return Next::kStep;
  const api::ObjectMeta& metadata = update_->metadata;
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}})},
       {"revision", *new_number_}});
  tools_.shared.client.patch(history_path(metadata, metadata.name), client::PatchType::kMerge, patch,
                             then(&StatefulSetSync::on_renumbered));
  return Next::kWait;
}

Next StatefulSetSync::on_renumbered(const Result<api::Json>& outcome, Now now) {
  return outcome ? Next::kStep : give_up(outcome.error(), now);
}

Next StatefulSetSync::plan(Now now) {
  if (!current_) current_ = update_;
  const std::string& ns = set_->metadata.ns;
  const std::function<workloads::ClaimPtr(const std::string&)> claim = [this, &ns](const std::string& name) {
    return tools_.claims.find(fmt::format("{}/{}", ns, name));
  };
  const workloads::EvictionBackoff* evictions = tools_.holds.of(set_->metadata.uid, now);
  const auto held = [evictions, now](const std::string& pod) -> std::optional<Duration> {
    const auto until = evictions != nullptr ? evictions->pod_held_until(pod, now.mono) : std::nullopt;
    return until ? std::optional<Duration>(*until - now.mono) : std::nullopt;
  };
  plan_ = workloads::plan_stateful({*set_, pods_, claim, *current_, *update_, held}, now.wall);
  plan_.status.collision_count = collisions_;
  return Next::kStep;
}

Next StatefulSetSync::send_next(Now now) {
  const bool ordered = !workloads::is_parallel(*set_);
  while (next_write_ < plan_.steps.size()) {
    const workloads::StatefulStep& write = plan_.steps[next_write_++];
    if (failed_.contains(workloads::pod_of(write)) || (ordered && !failed_.empty())) continue;
    steps_.go_to(Step::kWrites);
    return std::visit([&](const auto& each) { return send(each, now); }, write);
  }
  return Next::kStep;
}

Next StatefulSetSync::send(const workloads::CreateClaim& write, Now) {
  tools_.shared.client.create(claims_path(set_->metadata), write.document, then(&StatefulSetSync::on_claim_created));
  return Next::kWait;
}

Next StatefulSetSync::on_claim_created(const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists) return Next::kStep;  // the cache is behind
  const auto& write = sent<workloads::CreateClaim>();
  const std::string claim(write.document.string_at({"metadata", "name"}));
  record_claim(write.pod, claim, outcome ? Outcome() : Outcome(outcome.error()), now);
  if (outcome) return Next::kStep;
  const Error error = make_error(outcome.error().code, "failed to create PVC {}: {}", claim, outcome.error().message);
  record_pod("Create", write.pod, Outcome(error), now);
  return fail_pod(write.pod, error);
}

Next StatefulSetSync::send(const workloads::CreateStatefulPod& write, Now) {
  api::Json document = write.document;
  document.make({"metadata", "ownerReferences"}) = api::Json::array({owner_reference(owner_of(*set_))});
  tools_.expectations.of(set_->metadata.uid).expect_creations(1);
  tools_.shared.client.create(pods_path(set_->metadata), std::move(document), then(&StatefulSetSync::on_pod_created));
  return Next::kWait;
}

Next StatefulSetSync::on_pod_created(const Result<api::Json>& outcome, Now now) {
  const std::string& pod = sent<workloads::CreateStatefulPod>().pod;
  const std::string& uid = set_->metadata.uid;
  if (outcome) {
    tools_.expectations.created(uid, std::string(outcome->string_at({"metadata", "uid"})), requeue(), now);
    record_pod("Create", pod, Outcome(), now);
    return Next::kStep;
  }
  tools_.expectations.creation_failed(uid, outcome.error(), tools_.shared.client, requeue(), now);
  if (outcome.error().code != ErrorCode::kAlreadyExists) record_pod("Create", pod, Outcome(outcome.error()), now);
  return fail_pod(pod, outcome.error());
}

Next StatefulSetSync::send(const workloads::OwnClaim& write, Now) {
  const api::ObjectMeta& metadata = write.claim->metadata;
  api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid},
                                                         {"resourceVersion", metadata.resource_version},
                                                         {"ownerReferences", owners_document(write.owners)}})}});
  tools_.shared.client.patch(claims_path(metadata, metadata.name), client::PatchType::kMerge, std::move(patch),
                             then(&StatefulSetSync::on_claim_owned));
  return Next::kWait;
}

Next StatefulSetSync::on_claim_owned(const Result<api::Json>& outcome, Now now) {
  if (outcome) return Next::kStep;
  const std::string& pod = sent<workloads::OwnClaim>().pod;
  // Conflict: another client wrote first, such as the binder of the claim; the next sync sees it.
  if (outcome.error().code != ErrorCode::kConflict) record_pod("Update", pod, Outcome(outcome.error()), now);
  return fail_pod(pod, outcome.error());
}

Next StatefulSetSync::send(const workloads::RepairPod& write, Now now) {
  const api::ObjectMeta& metadata = write.pod->metadata;
  if (write.labels.empty() && write.volumes.is_null()) {  // the write repaired the pod's claims only
    record_pod("Update", metadata.name, Outcome(), now);
    return Next::kStep;
  }
  api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid}, {"labels", json_of(write.labels)}})}});
  if (!write.volumes.is_null()) patch.make({"spec", "volumes"}) = write.volumes;
  tools_.shared.client.patch(pods_path(metadata, metadata.name), client::PatchType::kStrategicMerge, std::move(patch),
                             then(&StatefulSetSync::on_pod_mended));
  return Next::kWait;
}

Next StatefulSetSync::on_pod_mended(const Result<api::Json>& outcome, Now now) {
  const std::string& pod = sent<workloads::RepairPod>().pod->metadata.name;
  record_pod("Update", pod, outcome ? Outcome() : Outcome(outcome.error()), now);
  return outcome ? Next::kStep : fail_pod(pod, outcome.error());
}

Next StatefulSetSync::send(const workloads::DeleteStatefulPod& write, Now now) {
  const api::Pod& pod = *write.pod;
  if (write.is_recreated) record_recreation(pod, now);
  tools_.expectations.of(set_->metadata.uid).expect_deletion(pod.metadata.uid);
  tools_.shared.client.remove(pods_path(pod.metadata, pod.metadata.name), delete_options(pod),
                              then(&StatefulSetSync::on_pod_deleted));
  return Next::kWait;
}

Next StatefulSetSync::on_pod_deleted(const Result<api::Json>& outcome, Now now) {
  const api::ObjectMeta& pod = sent<workloads::DeleteStatefulPod>().pod->metadata;
  const std::string& uid = set_->metadata.uid;
  if (outcome) {
    tools_.expectations.deleted(uid, requeue(), now);
    record_pod("Delete", pod.name, Outcome(), now);
    return Next::kStep;
  }
  tools_.expectations.deletion_failed(uid, pod.uid, outcome.error(), tools_.shared.client, requeue(), now);
  if (outcome.error().code == ErrorCode::kNotFound) return Next::kStep;
  record_pod("Delete", pod.name, Outcome(outcome.error()), now);
  return fail_pod(pod.name, outcome.error());
}

Next StatefulSetSync::send(const workloads::CannotCreate& write, Now now) {
  const Error error = make_error(ErrorCode::kConflict, "{}", write.why);
  record_pod("Create", write.pod, Outcome(error), now);
  return fail_pod(write.pod, error);
}

Next StatefulSetSync::fail_pod(const std::string& pod, const Error& error) {
  failed_.insert(pod);
  error_ = error;
  return Next::kStep;
}

Next StatefulSetSync::write_status() {
  if (plan_.status == set_->status) return Next::kStep;
  const api::ObjectMeta& metadata = set_->metadata;
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}})},
       {"status", stateful_status_document(plan_.status)}});
  tools_.shared.client.patch(
      client::object_path(api::StatefulSet::kApiVersion, "statefulsets", metadata.ns, metadata.name, "status"),
      client::PatchType::kMerge, patch, then(&StatefulSetSync::on_status_written));
  return Next::kWait;
}

Next StatefulSetSync::on_status_written(const Result<api::Json>& outcome, Now now) {
  return outcome ? Next::kStep : give_up(outcome.error(), now);
}

Next StatefulSetSync::end(Now now) {
  if (!set_->metadata.deletion_timestamp) {
    for (const workloads::RevisionPtr& old :
         workloads::surplus_revisions(*set_, revisions_, *current_, *update_, pods_)) {
      tools_.shared.client.remove(history_path(old->metadata, old->metadata.name), delete_options(old->metadata), {});
    }
  }
  if (error_) return give_up(*error_, now);
  tools_.queue.done(key_);
  tools_.queue.forget(key_);
  if (plan_.requeue_after) tools_.queue.add(key_, now.mono + *plan_.requeue_after);
  return Next::kEnd;
}

Next StatefulSetSync::give_up(const Error& error, Now now) {
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    tools_.shared.log.warning("stateful set sync failed", {{"stateful_set", key_}, {"error", error.text()}});
  }
  tools_.queue.done(key_);
  tools_.queue.retry(key_, now.mono);
  return Next::kEnd;
}

ExpectationTable::Requeue StatefulSetSync::requeue() const {
  return [&queue = tools_.queue, key = key_](Now now) { queue.add(key, now.mono); };
}

void StatefulSetSync::record_recreation(const api::Pod& pod, Now now) {
  const bool failed = pod.status.phase == "Failed";
  tools_.shared.events.record(client::reference_to(*set_),
                              failed ? client::EventType::kWarning : client::EventType::kNormal,
                              failed ? "RecreatingFailedPod" : "RecreatingTerminatedPod",
                              fmt::format("StatefulSet {}/{} is recreating {} Pod {}", set_->metadata.ns,
                                          set_->metadata.name, failed ? "failed" : "terminated", pod.metadata.name),
                              now);
}

void StatefulSetSync::record_pod(std::string_view verb, std::string_view pod, const Outcome& outcome, Now now) {
  // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) return;
  const std::string& set = set_->metadata.name;
  tools_.shared.events.record(
      client::reference_to(*set_), outcome ? client::EventType::kNormal : client::EventType::kWarning,
      fmt::format("{}{}", outcome ? "Successful" : "Failed", verb),
      outcome ? fmt::format("{} Pod {} in StatefulSet {} successful", verb, pod, set)
              : fmt::format("{} Pod {} in StatefulSet {} failed error: {}", verb, pod, set, outcome.error().message),
      now);
}

void StatefulSetSync::record_claim(std::string_view pod, std::string_view claim, const Outcome& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) return;
  const std::string& set = set_->metadata.name;
  tools_.shared.events.record(client::reference_to(*set_),
                              outcome ? client::EventType::kNormal : client::EventType::kWarning,
                              outcome ? "SuccessfulCreate" : "FailedCreate",
                              outcome ? fmt::format("Create Claim {} Pod {} in StatefulSet {} success", claim, pod, set)
                                      : fmt::format("Create Claim {} Pod {} in StatefulSet {} failed error: {}", claim,
                                                    pod, set, outcome.error().message),
                              now);
}

}  // namespace spillway::controllers
