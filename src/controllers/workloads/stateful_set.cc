#include "controllers/workloads/stateful_set.h"

#include "api/codec/codec.h"
#include "controllers/shared/paths.h"
#include "controllers/shared/sync_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace spillway::controllers {

namespace {

constexpr int kNamesTriedMax = 10;

Owner owner_of(const api::StatefulSet& set) {
  return {api::StatefulSet::kApiVersion, api::StatefulSet::kKind, set.metadata};
}

std::string claims_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::PersistentVolumeClaim::kApiVersion, "persistentvolumeclaims", neighbour.ns, name);
}

std::string history_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::ControllerRevision::kApiVersion, "controllerrevisions", neighbour.ns, name);
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

/// True if the pod's name begins with the set's.
bool is_named_after(const api::ObjectMeta& pod, const api::StatefulSet& set) {
  const auto found = workloads::name_and_ordinal(pod.name);
  return found && found->first == set.metadata.name;
}

}  // namespace

/// The state of a sync under way.
struct StatefulSetController::Look {
  SetPtr set;
  std::string key;
  std::vector<PodPtr> pods;
  std::vector<workloads::RevisionPtr> revisions;
  workloads::RevisionPtr current;
  workloads::RevisionPtr update;
  std::int32_t collisions = 0;
  int names_tried = 0;
  workloads::StatefulPlan plan;
  std::size_t next = 0;          // step
  std::set<std::string> failed;  // pods of which a step has failed
  std::optional<Error> error;    // the last one
};

StatefulSetController::StatefulSetController(Shared shared, Caches caches, telemetry::Registry& metrics,
                                             EvictionHolds::Mode eviction_backoff)
    : shared_(shared), caches_(caches), queue_metrics_(metrics, "statefulset"), holds_(eviction_backoff) {
  caches_.sets.listen({[this](const auto& before, const auto& after, Now now) { on_set(before, after, now); }});
  caches_.claims.listen({[this](const auto& before, const auto& after, Now now) { on_claim(before, after, now); }});
  caches_.revisions.listen(
      {[this](const auto& before, const auto& after, Now now) { on_revision(before, after, now); }});
  shared_.pods.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
}

void StatefulSetController::start(Now now) {
  started_ = true;
  for (const auto& [key, set] : caches_.sets.all()) enqueue(key, now);
}

void StatefulSetController::on_set(const SetPtr& before, const SetPtr& after, Now now) {
  if (before && (!after || after->metadata.uid != before->metadata.uid)) {
    key_by_uid_.erase(before->metadata.uid);
    expectations_.forget(before->metadata.uid);
    holds_.forget(before->metadata.uid);
  }
  if (after) key_by_uid_[after->metadata.uid] = client::key_of(after->metadata);
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

void StatefulSetController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  pods_.on_change(before, after);
  const PodPtr& pod = after ? after : before;
  const api::OwnerReference* owner = api::controller_of(pod->metadata);
  if (owner == nullptr) {  // a set may want to adopt it
    const auto found = workloads::name_and_ordinal(pod->metadata.name);
    if (found) enqueue(fmt::format("{}/{}", pod->metadata.ns, found->first), now);
    return;
  }
  const auto key = key_by_uid_.find(owner->uid);
  if (key == key_by_uid_.end()) return;
  Expectations& expected = expectations_.of(owner->uid);
  const bool another = !before || !after || before->metadata.uid != after->metadata.uid;
  if (after && another) expected.appeared(after->metadata.uid);
  if (before && (another || after->metadata.deletion_timestamp)) expected.left(before->metadata.uid);
  if (started_) holds_.on_pod(before, after, shared_.events, now);
  enqueue(key->second, now);
}

/// A pod may have waited for a claim to go.
void StatefulSetController::on_claim(const workloads::ClaimPtr& before, const workloads::ClaimPtr& after, Now now) {
  if (after || !before) return;
  const auto first = caches_.sets.all().lower_bound(before->metadata.ns + "/");
  for (auto at = first; at != caches_.sets.all().end() && at->second->metadata.ns == before->metadata.ns; ++at) {
    const auto names = workloads::claim_names(*at->second, 0);
    const bool may_be_its = std::ranges::any_of(names, [&](const auto& each) {
      return before->metadata.name.starts_with(fmt::format("{}-{}-", each.first, at->second->metadata.name));
    });
    if (may_be_its) enqueue(at->first, now);
  }
}

void StatefulSetController::on_revision(const workloads::RevisionPtr& before, const workloads::RevisionPtr& after,
                                        Now now) {
  revisions_.on_change(before, after);
  for (const workloads::RevisionPtr& revision : {before, after}) {
    if (revision) enqueue_owner(revision->metadata, now);
  }
}

void StatefulSetController::enqueue_owner(const api::ObjectMeta& owned, Now now) {
  const api::OwnerReference* owner = api::controller_of(owned);
  const auto key = owner != nullptr ? key_by_uid_.find(owner->uid) : key_by_uid_.end();
  if (key != key_by_uid_.end()) enqueue(key->second, now);
}

void StatefulSetController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

void StatefulSetController::run(Now now) {
  if (!started_) return;
  SyncSlice slice;
  while (slice.has_room()) {
    const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono);
    if (!key) break;
    const std::string ns = namespace_of(*key);
    slice.add(pods_.count_orphans_in(ns) + revisions_.count_orphans_in(ns));
    look(*key, now);
  }
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void StatefulSetController::arm() {
  wake_up_.set(shared_.client, queue_.next_due());
}

void StatefulSetController::look(const std::string& key, Now now) {
  const SetPtr set = caches_.sets.find(key);
  if (!set) {
    queue_.done(key);
    return queue_.forget(key);
  }
  Expectations& expected = expectations_.of(set->metadata.uid);
  if (!expected.fulfilled(now.mono)) {  // their completion requeues the set
    queue_.done(key);
    if (const auto due = expected.next_look(now.mono)) queue_.add(key, *due);
    return;
  }
  expected.reset();
  const auto begun = std::make_shared<Look>();
  begun->set = set;
  begun->key = key;
  begun->pods = claim_pods(*set);
  begun->revisions = claim_revisions(*set);
  begun->collisions = set->status.collision_count.value_or(0);
  find_revisions(begun, now);
}

/// A completion that requeues the set, after a back-off if the call failed.
client::ApiClient::Done StatefulSetController::retry_unless_done(const api::StatefulSet& set) {
  return [this, key = client::key_of(set.metadata)](const Result<api::Json>& outcome, Now now) {
    if (!outcome) queue_.retry(key, now.mono);
  };
}

std::vector<PodPtr> StatefulSetController::claim_pods(const api::StatefulSet& set) {
  std::vector<PodPtr> claimed;
  const auto retry = retry_unless_done(set);
  for (const PodPtr& pod : pods_.of(set.metadata.uid)) {
    if (set.selector.matches(pod->metadata.labels) && is_named_after(pod->metadata, set)) {
      claimed.push_back(pod);
    } else if (!pod->metadata.deletion_timestamp) {
      shared_.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                           release_patch(set.metadata, pod->metadata), retry);
    }
  }
  if (set.metadata.deletion_timestamp) return claimed;
  for (const PodPtr& pod : pods_.orphans_in(set.metadata.ns)) {
    if (pod->metadata.deletion_timestamp || !is_named_after(pod->metadata, set)) continue;
    if (!set.selector.matches(pod->metadata.labels)) continue;
    claimed.push_back(pod);
    shared_.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                         adoption_patch(owner_of(set), pod->metadata), retry);
  }
  return claimed;
}

std::vector<workloads::RevisionPtr> StatefulSetController::claim_revisions(const api::StatefulSet& set) {
  std::vector<workloads::RevisionPtr> claimed = revisions_.of(set.metadata.uid);
  if (set.metadata.deletion_timestamp) return claimed;
  for (const workloads::RevisionPtr& orphan : revisions_.orphans_in(set.metadata.ns)) {
    if (orphan->metadata.deletion_timestamp || !set.selector.matches(orphan->metadata.labels)) continue;
    claimed.push_back(orphan);
    shared_.client.patch(history_path(orphan->metadata, orphan->metadata.name), client::PatchType::kStrategicMerge,
                         adoption_patch(owner_of(set), orphan->metadata), retry_unless_done(set));
  }
  return claimed;
}

void StatefulSetController::find_revisions(const LookPtr& look, Now now) {
  workloads::StatefulRevisions plan = workloads::plan_stateful_revisions(*look->set, look->revisions, look->collisions);
  look->update = plan.update;
  look->current = plan.current;
  if (plan.create && !look->set->metadata.deletion_timestamp) return make_revision(look, *plan.create);
  if (plan.create) {  // its pods belong to the garbage collector now; only the status is updated
    look->update = look->current ? look->current : std::make_shared<const api::ControllerRevision>(*plan.create);
  } else if (plan.renumber) {
    return renumber(look, *plan.update, *plan.renumber);
  }
  decide(look, now);
}

void StatefulSetController::make_revision(const LookPtr& look, const api::ControllerRevision& revision) {
  api::Json document = api::encode(revision);
  document.make({"metadata", "ownerReferences"}) = api::Json::array({owner_reference(owner_of(*look->set))});
  shared_.client.create(history_path(look->set->metadata), std::move(document),
                        [this, look, revision](const Result<api::Json>& outcome, Now then) {
                          if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists) {
                            return on_revision_name_taken(look, revision);
                          }
                          auto made = outcome ? api::decode<api::ControllerRevision>(*outcome)
                                              : Result<api::ControllerRevision>(outcome.error());
                          if (!made) return give_up(look, made.error(), then);
                          look->update = std::make_shared<const api::ControllerRevision>(*std::move(made));
                          decide(look, then);
                        });
}

/// The name is taken by the same revision, which the cache does not show yet; or by another one, and then the next name
/// is tried.
void StatefulSetController::on_revision_name_taken(const LookPtr& look, const api::ControllerRevision& revision) {
  shared_.client.get(
      history_path(look->set->metadata, revision.metadata.name),
      [this, look, data = revision.data](const Result<api::Json>& outcome, Now then) {
        auto found =
            outcome ? api::decode<api::ControllerRevision>(*outcome) : Result<api::ControllerRevision>(outcome.error());
        if (!found) return give_up(look, found.error(), then);
        const api::OwnerReference* owner = api::controller_of(found->metadata);
        const bool ours = owner != nullptr && owner->uid == look->set->metadata.uid;
        if (ours && found->data == data) {
          look->update = std::make_shared<const api::ControllerRevision>(*std::move(found));
          return decide(look, then);
        }
        if (++look->names_tried == kNamesTriedMax) {
          return give_up(look, make_error(ErrorCode::kConflict, "the names of its revision are taken"), then);
        }
        ++look->collisions;
        find_revisions(look, then);
      });
}

void StatefulSetController::renumber(const LookPtr& look, const api::ControllerRevision& revision,
                                     std::int64_t number) {
  const api::Json patch = api::Json::object(
      {{"metadata",
        api::Json::object({{"uid", revision.metadata.uid}, {"resourceVersion", revision.metadata.resource_version}})},
       {"revision", number}});
  shared_.client.patch(history_path(revision.metadata, revision.metadata.name), client::PatchType::kMerge, patch,
                       [this, look](const Result<api::Json>& outcome, Now then) {
                         if (!outcome) return give_up(look, outcome.error(), then);
                         decide(look, then);
                       });
}

void StatefulSetController::decide(const LookPtr& look, Now now) {
  if (!look->current) look->current = look->update;
  const std::string& ns = look->set->metadata.ns;
  const std::function<workloads::ClaimPtr(const std::string&)> claim = [this, &ns](const std::string& name) {
    return caches_.claims.find(fmt::format("{}/{}", ns, name));
  };
  const workloads::EvictionBackoff* evictions = holds_.of(look->set->metadata.uid, now);
  const auto held = [evictions, now](const std::string& pod) -> std::optional<Duration> {
    const auto until = evictions != nullptr ? evictions->pod_held_until(pod, now.mono) : std::nullopt;
    return until ? std::optional<Duration>(*until - now.mono) : std::nullopt;
  };
  look->plan = workloads::plan_stateful({*look->set, look->pods, claim, *look->current, *look->update, held}, now.wall);
  look->plan.status.collision_count = look->collisions;
  carry_on(look, now);
}

void StatefulSetController::carry_on(const LookPtr& look, Now now) {
  const bool ordered = !workloads::is_parallel(*look->set);
  while (look->next < look->plan.steps.size()) {
    const workloads::StatefulStep& step = look->plan.steps[look->next++];
    if (look->failed.contains(workloads::pod_of(step)) || (ordered && !look->failed.empty())) continue;
    return std::visit([&](const auto& each) { send(look, each, now); }, step);
  }
  write_status(look, now);
}

void StatefulSetController::send(const LookPtr& look, const workloads::CreateClaim& step, Now) {
  const std::string claim(step.document.string_at({"metadata", "name"}));
  shared_.client.create(claims_path(look->set->metadata), step.document,
                        [this, look, pod = step.pod, claim](const Result<api::Json>& outcome, Now then) {
                          // The cache is behind.
                          if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists)
                            return carry_on(look, then);
                          tell_claim(*look, pod, claim, outcome ? Outcome() : Outcome(outcome.error()), then);
                          if (outcome) return carry_on(look, then);
                          const Error error = make_error(outcome.error().code, "failed to create PVC {}: {}", claim,
                                                         outcome.error().message);
                          tell_pod(*look, "create", pod, Outcome(error), then);
                          fail(look, pod, error, then);
                        });
}

void StatefulSetController::send(const LookPtr& look, const workloads::CreateStatefulPod& step, Now) {
  api::Json document = step.document;
  document.make({"metadata", "ownerReferences"}) = api::Json::array({owner_reference(owner_of(*look->set))});
  expectations_.of(look->set->metadata.uid).expect_creations(1);
  const auto look_again = [this, key = look->key](Now then) { enqueue(key, then); };
  shared_.client.create(pods_path(look->set->metadata), std::move(document),
                        [this, look, pod = step.pod, look_again](const Result<api::Json>& outcome, Now then) {
                          const std::string& uid = look->set->metadata.uid;
                          if (outcome) {
                            expectations_.created(uid, std::string(outcome->string_at({"metadata", "uid"})), look_again,
                                                  then);
                            tell_pod(*look, "create", pod, Outcome(), then);
                            return carry_on(look, then);
                          }
                          expectations_.creation_failed(uid, outcome.error(), shared_.client, look_again, then);
                          if (outcome.error().code != ErrorCode::kAlreadyExists) {
                            tell_pod(*look, "create", pod, Outcome(outcome.error()), then);
                          }
                          fail(look, pod, outcome.error(), then);
                        });
}

void StatefulSetController::send(const LookPtr& look, const workloads::OwnClaim& step, Now) {
  const api::ObjectMeta& metadata = step.claim->metadata;
  api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid},
                                                         {"resourceVersion", metadata.resource_version},
                                                         {"ownerReferences", owners_document(step.owners)}})}});
  shared_.client.patch(claims_path(metadata, metadata.name), client::PatchType::kMerge, std::move(patch),
                       [this, look, pod = step.pod](const Result<api::Json>& outcome, Now then) {
                         if (outcome) return carry_on(look, then);
                         // Another client wrote first, such as the binder of the claim: the next sync sees it.
                         if (outcome.error().code != ErrorCode::kConflict) {
                           tell_pod(*look, "update", pod, Outcome(outcome.error()), then);
                         }
                         fail(look, pod, outcome.error(), then);
                       });
}

void StatefulSetController::send(const LookPtr& look, const workloads::MendPod& step, Now now) {
  const api::ObjectMeta& metadata = step.pod->metadata;
  if (step.labels.empty() && step.volumes.is_null()) {  // only its claims were to be mended
    tell_pod(*look, "update", metadata.name, Outcome(), now);
    return carry_on(look, now);
  }
  api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid}, {"labels", json_of(step.labels)}})}});
  if (!step.volumes.is_null()) patch.make({"spec", "volumes"}) = step.volumes;
  shared_.client.patch(pods_path(metadata, metadata.name), client::PatchType::kStrategicMerge, std::move(patch),
                       [this, look, pod = metadata.name](const Result<api::Json>& outcome, Now then) {
                         tell_pod(*look, "update", pod, outcome ? Outcome() : Outcome(outcome.error()), then);
                         if (outcome) return carry_on(look, then);
                         fail(look, pod, outcome.error(), then);
                       });
}

void StatefulSetController::record_recreation(const api::StatefulSet& set, const api::Pod& pod, Now now) {
  const bool failed = pod.status.phase == "Failed";
  shared_.events.record(client::reference_to(set), failed ? client::EventType::kWarning : client::EventType::kNormal,
                        failed ? "RecreatingFailedPod" : "RecreatingTerminatedPod",
                        fmt::format("StatefulSet {}/{} is recreating {} Pod {}", set.metadata.ns, set.metadata.name,
                                    failed ? "failed" : "terminated", pod.metadata.name),
                        now);
}

void StatefulSetController::send(const LookPtr& look, const workloads::DeleteStatefulPod& step, Now now) {
  const PodPtr& pod = step.pod;
  if (step.is_recreated) record_recreation(*look->set, *pod, now);
  expectations_.of(look->set->metadata.uid).expect_deletion(pod->metadata.uid);
  const auto look_again = [this, key = look->key](Now then) { enqueue(key, then); };
  shared_.client.remove(pods_path(pod->metadata, pod->metadata.name), delete_options(*pod),
                        [this, look, pod, look_again](const Result<api::Json>& outcome, Now then) {
                          const std::string& uid = look->set->metadata.uid;
                          if (outcome) {
                            expectations_.deleted(uid, look_again, then);
                            tell_pod(*look, "delete", pod->metadata.name, Outcome(), then);
                            return carry_on(look, then);
                          }
                          expectations_.deletion_failed(uid, pod->metadata.uid, outcome.error(), shared_.client,
                                                        look_again, then);
                          if (outcome.error().code == ErrorCode::kNotFound) return carry_on(look, then);
                          tell_pod(*look, "delete", pod->metadata.name, Outcome(outcome.error()), then);
                          fail(look, pod->metadata.name, outcome.error(), then);
                        });
}

void StatefulSetController::send(const LookPtr& look, const workloads::CannotCreate& step, Now now) {
  const Error error = make_error(ErrorCode::kConflict, "{}", step.why);
  tell_pod(*look, "create", step.pod, Outcome(error), now);
  fail(look, step.pod, error, now);
}

void StatefulSetController::fail(const LookPtr& look, const std::string& pod, const Error& error, Now now) {
  look->failed.insert(pod);
  look->error = error;
  carry_on(look, now);
}

void StatefulSetController::write_status(const LookPtr& look, Now now) {
  if (look->plan.status == look->set->status) return end(look, now);
  const api::ObjectMeta& metadata = look->set->metadata;
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}})},
       {"status", stateful_status_document(look->plan.status)}});
  shared_.client.patch(
      client::object_path(api::StatefulSet::kApiVersion, "statefulsets", metadata.ns, metadata.name, "status"),
      client::PatchType::kMerge, patch, [this, look](const Result<api::Json>& outcome, Now then) {
        if (!outcome) return give_up(look, outcome.error(), then);
        end(look, then);
      });
}

void StatefulSetController::cut_history(const Look& look) {
  if (look.set->metadata.deletion_timestamp) return;
  for (const workloads::RevisionPtr& old :
       workloads::surplus_revisions(*look.set, look.revisions, *look.current, *look.update, look.pods)) {
    shared_.client.remove(history_path(old->metadata, old->metadata.name), delete_options(old->metadata), {});
  }
}

void StatefulSetController::end(const LookPtr& look, Now now) {
  cut_history(*look);
  if (look->error) return give_up(look, *look->error, now);
  queue_.done(look->key);
  queue_.forget(look->key);
  if (look->plan.look_again) queue_.add(look->key, now.mono + *look->plan.look_again);
}

void StatefulSetController::give_up(const LookPtr& look, const Error& error, Now now) {
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    shared_.log.warning("stateful set sync failed", {{"stateful_set", look->key}, {"error", error.text()}});
  }
  queue_.done(look->key);
  queue_.retry(look->key, now.mono);
}

void StatefulSetController::tell_pod(const Look& look, std::string_view verb, std::string_view pod,
                                     const Outcome& outcome, Now now) {
  // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) return;
  const std::string_view what = verb == "create" ? "Create" : verb == "delete" ? "Delete" : "Update";
  const std::string& set = look.set->metadata.name;
  shared_.events.record(
      client::reference_to(*look.set), outcome ? client::EventType::kNormal : client::EventType::kWarning,
      fmt::format("{}{}", outcome ? "Successful" : "Failed", what),
      outcome ? fmt::format("{} Pod {} in StatefulSet {} successful", what, pod, set)
              : fmt::format("{} Pod {} in StatefulSet {} failed error: {}", what, pod, set, outcome.error().message),
      now);
}

void StatefulSetController::tell_claim(const Look& look, std::string_view pod, std::string_view claim,
                                       const Outcome& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) return;
  const std::string& set = look.set->metadata.name;
  shared_.events.record(client::reference_to(*look.set),
                        outcome ? client::EventType::kNormal : client::EventType::kWarning,
                        outcome ? "SuccessfulCreate" : "FailedCreate",
                        outcome ? fmt::format("Create Claim {} Pod {} in StatefulSet {} success", claim, pod, set)
                                : fmt::format("Create Claim {} Pod {} in StatefulSet {} failed error: {}", claim, pod,
                                              set, outcome.error().message),
                        now);
}

}  // namespace spillway::controllers
