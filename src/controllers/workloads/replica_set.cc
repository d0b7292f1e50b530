#include "controllers/workloads/replica_set.h"

#include "api/codec/codec.h"
#include "api/object/kind_id.h"
#include "controllers/shared/paths.h"
#include "controllers/shared/sync_slice.h"
#include "policy/workloads/deployment_status.h"
#include "policy/workloads/replacement_first.h"
#include "policy/workloads/surplus_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace spillway::controllers {

namespace {

using workloads::surplus_rank;
using workloads::SurplusRank;

template <typename T>
Owner owner_of(const T& set) {
  return {T::kApiVersion, T::kKind, set.metadata};
}

/// Names of the kinds.
struct SetNames {
  std::string_view plural;
  std::string_view queue;  // in metrics
  std::string_view log;
};

template <typename T>
constexpr SetNames kNamesOf;
template <>
constexpr SetNames kNamesOf<api::ReplicaSet>{"replicasets", "replicaset", "replica_set"};
template <>
constexpr SetNames kNamesOf<api::ReplicationController>{"replicationcontrollers", "replicationmanager",
                                                        "replication_controller"};

}  // namespace

template <typename T>
ReplicasController<T>::ReplicasController(Shared shared, client::ObjectCache<T>& sets, telemetry::Registry& metrics,
                                          EvictionHolds::Mode eviction_backoff, ReplacedPods replaced)
    : shared_(shared),
      sets_(sets),
      queue_metrics_(metrics, kNamesOf<T>.queue),
      holds_(eviction_backoff),
      replaced_(replaced) {
  sets_.listen({[this](const auto& before, const auto& after, Now now) { on_set(before, after, now); }});
  shared_.pods.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
}

template <typename T>
void ReplicasController<T>::start(Now now) {
  started_ = true;
  for (const auto& [key, set] : sets_.all()) enqueue(key, now);
}

template <typename T>
void ReplicasController<T>::on_set(const SetPtr& before, const SetPtr& after, Now now) {
  if (before && (!after || after->metadata.uid != before->metadata.uid)) {
    key_by_uid_.erase(before->metadata.uid);
    expectations_.forget(before->metadata.uid);
    counts_.erase(before->metadata.uid);
    refusals_.erase(before->metadata.uid);
    holds_.forget(before->metadata.uid);
  }
  if (after) key_by_uid_[after->metadata.uid] = client::key_of(after->metadata);
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

/// True for a pod of a set of this kind, or without a controller.
template <typename T>
bool ReplicasController<T>::concerns(const PodPtr& pod) {
  if (!pod) return false;
  const api::OwnerReference* owner = api::controller_of(pod->metadata);
  return owner == nullptr || api::kind_of(*owner) == api::kind_of<T>();
}

/// The pod is active and not being replaced; otherwise its replacement counts.
template <typename T>
bool ReplicasController<T>::counts(const api::Pod& pod) const {
  return is_active(pod) && (replaced_ == ReplacedPods::kCounted || !workloads::is_being_replaced(pod));
}

/// Sets that may adopt the pod, or have counted it.
template <typename T>
void ReplicasController<T>::wake_takers(const api::Pod& orphan, Now now) {
  visit_namespace(sets_.all(), orphan.metadata.ns, [&](const std::string& key, const SetPtr& set) {
    if (set->selector.matches(orphan.metadata.labels)) enqueue(key, now);
  });
}

template <typename T>
void ReplicasController<T>::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  if (!concerns(before) && !concerns(after)) return;
  pods_.on_change(concerns(before) ? before : nullptr, concerns(after) ? after : nullptr);
  const auto counted = [this](const PodPtr& pod) {
    const api::OwnerReference* owner = pod ? api::controller_of(pod->metadata) : nullptr;
    return owner != nullptr ? counts_.find(owner->uid) : counts_.end();
  };
  if (const auto count = counted(before); count != counts_.end()) count->second.remove(*before);
  if (const auto count = counted(after); count != counts_.end()) count->second.add(*after);
  const auto touch = [this, now](const PodPtr& pod) -> Expectations* {
    const api::OwnerReference* owner = pod ? api::controller_of(pod->metadata) : nullptr;
    const auto key = owner != nullptr ? key_by_uid_.find(owner->uid) : key_by_uid_.end();
    if (key == key_by_uid_.end()) return nullptr;
    enqueue_paced(key->second, now);
    return &expectations_.of(owner->uid);
  };
  Expectations* of_before = touch(before);
  Expectations* of_after = touch(after);
  if (of_after != nullptr && started_) holds_.on_pod(before, after, shared_.events, now);
  const bool another = !before || !after || before->metadata.uid != after->metadata.uid;
  if (of_after != nullptr && another) of_after->appeared(after->metadata.uid);
  if (of_before != nullptr && (another || after->metadata.deletion_timestamp)) of_before->left(before->metadata.uid);
  const auto is_orphan = [](const PodPtr& pod) { return pod && api::controller_of(pod->metadata) == nullptr; };
  if (is_orphan(after)) wake_takers(*after, now);
  if (is_orphan(before) && !is_orphan(after)) wake_takers(*before, now);
}

template <typename T>
void ReplicasController<T>::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

/// Spaces out syncs: a sync costs as much as the set has pods, and many pods change at once.
template <typename T>
void ReplicasController<T>::enqueue_paced(const std::string& key, Now now) {
  const auto paced = paced_until_.find(key);
  if (started_) queue_.add(key, paced == paced_until_.end() ? now.mono : std::max(now.mono, paced->second));
}

template <typename T>
void ReplicasController<T>::run(Now now) {
  if (!started_) return;
  SyncSlice slice;
  while (slice.has_room()) {
    const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono);
    if (!key) break;
    slice.add(pods_.count_orphans_in(namespace_of(*key)));
    sync(*key, now);
    queue_.done(*key);
  }
  queue_metrics_.show(queue_, now.mono);
  arm(now);
}

template <typename T>
void ReplicasController<T>::arm(Now) {
  const std::optional<Instant> due = queue_.next_due();
  wake_up_.set(shared_.client, due);
}

template <typename T>
void ReplicasController<T>::sync(const std::string& key, Now now) {
  const SetPtr set = sets_.find(key);
  if (!set) {
    queue_.forget(key);
    paced_until_.erase(key);
    return;
  }
  Expectations& expected = expectations_.of(set->metadata.uid);
  const bool may_scale = !set->metadata.deletion_timestamp && expected.fulfilled(now.mono);
  if (may_scale) expected.reset();
  if (const auto due = expected.next_sync(now.mono)) queue_.add(key, *due);
  const ReplicaCount& count = count_of(*set);
  const bool may_claim = count.strangers() > 0 || pods_.has_orphans_in(set->metadata.ns);
  if (!may_claim && (!may_scale || count.active().replicas == std::max(set->replicas, 0))) {
    paced_until_[key] = now.mono + kPacePerPod * count.selected();
    if (may_scale) refusals_.erase(set->metadata.uid);
    return write_status(*set, key, count.active(), now);
  }
  std::vector<PodPtr> active = claim(*set);
  paced_until_[key] = now.mono + kPacePerPod * static_cast<Duration::rep>(active.size());
  std::erase_if(active, [this](const PodPtr& pod) { return !counts(*pod); });
  if (may_scale) scale(set, key, active, now);
  ReplicaCount claimed(*set, replaced_);
  for (const PodPtr& pod : active) claimed.add(*pod);
  if (may_scale && static_cast<std::int32_t>(active.size()) == set->replicas) refusals_.erase(set->metadata.uid);
  write_status(*set, key, claimed.active(), now);
}

template <typename T>
ReplicaCount& ReplicasController<T>::count_of(const T& set) {
  const auto known = counts_.find(set.metadata.uid);
  if (known != counts_.end() && known->second.fits(set)) return known->second;
  ReplicaCount count(set, replaced_);
  for (const PodPtr& pod : pods_.of(set.metadata.uid)) count.add(*pod);
  return counts_.insert_or_assign(set.metadata.uid, std::move(count)).first->second;
}

/// The pods that belong to the set; adopts and releases on the way.
template <typename T>
std::vector<PodPtr> ReplicasController<T>::claim(const T& set) {
  std::vector<PodPtr> claimed;
  const auto retry = [this, key = client::key_of(set.metadata)](const Result<api::Json>& outcome, Now then) {
    if (!outcome) queue_.retry(key, then.mono);
  };
  for (const PodPtr& pod : pods_.of(set.metadata.uid)) {
    if (set.selector.matches(pod->metadata.labels)) {
      claimed.push_back(pod);
    } else if (!pod->metadata.deletion_timestamp) {
      shared_.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                           release_patch(set.metadata, pod->metadata), retry);
    }
  }
  if (set.metadata.deletion_timestamp) return claimed;
  for (const PodPtr& pod : pods_.orphans_in(set.metadata.ns)) {
    if (!is_active(*pod) || !set.selector.matches(pod->metadata.labels)) continue;
    claimed.push_back(pod);
    // An adoption fails if another owner has the pod, or if it is gone; then one pod is missing that was counted here.
    shared_.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                         adoption_patch(owner_of(set), pod->metadata), retry);
  }
  return claimed;
}

/// Pods on their way: one first, then twice as many each time, so that a template that is refused is not tried 500
/// times. All of them are expected from the start, so that the set is not synced between two batches.
template <typename T>
struct ReplicasController<T>::Growth {
  SetPtr set;
  std::string key;
  std::size_t left;       // not requested yet
  std::size_t batch = 1;  // size of the batch under way, or of the next one
  std::size_t open = 0;   // calls of the batch that have no answer
  bool failed = false;
};

template <typename T>
void ReplicasController<T>::scale(const SetPtr& set, const std::string& key, const std::vector<PodPtr>& active,
                                  Now now) {
  const auto wanted = static_cast<std::size_t>(std::max(set->replicas, 0));
  if (active.size() < wanted) {
    std::size_t missing = wanted - active.size();
    if (const workloads::EvictionBackoff* evictions = holds_.of(set->metadata.uid, now)) {
      missing -= std::min(missing, evictions->held(now.mono));
      if (const auto end = evictions->next_end(now.mono)) queue_.add(key, *end);
    }
    if (missing == 0) return;
    const auto growth = std::make_shared<Growth>(Growth{set, key, std::min(missing, kBurstMax)});
    expectations_.of(set->metadata.uid).expect_creations(growth->left);
    create_batch(growth);
    return;
  }
  // Deletes only pods that the set owns already: one that is still to be adopted may have another owner by now.
  std::vector<PodPtr> own = active;
  std::erase_if(own, [](const PodPtr& pod) { return api::controller_of(pod->metadata) == nullptr; });
  if (own.size() > wanted) remove(*set, key, own, std::min(own.size() - wanted, kBurstMax));
}

template <typename T>
void ReplicasController<T>::create_batch(const std::shared_ptr<Growth>& growth) {
  growth->open = std::min(growth->left, growth->batch);
  growth->left -= growth->open;
  const T& set = *growth->set;
  for (std::size_t i = growth->open; i > 0; --i) {
    shared_.client.create(
        pods_path(set.metadata), pod_from_template(owner_of(set), set.pod_template),
        [this, growth](const Result<api::Json>& outcome, Now then) { on_answer(growth, outcome, then); });
  }
}

template <typename T>
void ReplicasController<T>::on_answer(const std::shared_ptr<Growth>& growth, const Result<api::Json>& outcome,
                                      Now now) {
  const std::string& uid = growth->set->metadata.uid;
  const auto requeue = [this, key = growth->key](Now then) { enqueue_paced(key, then); };
  if (outcome) {
    expectations_.created(uid, std::string(outcome->string_at({"metadata", "uid"})), requeue, now);
    shared_.events.record(client::reference_to(*growth->set), client::EventType::kNormal, "SuccessfulCreate",
                          fmt::format("Created pod: {}", outcome->string_at({"metadata", "name"})), now);
  } else {
    growth->failed = true;
    if (key_by_uid_.contains(uid)) refusals_[uid] = outcome.error().message;
    expectations_.creation_failed(uid, outcome.error(), shared_.client, requeue, now);
    // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
    if (outcome.error().code != ErrorCode::kNotFound) {
      shared_.log.warning("pod was not created", {{kNamesOf<T>.log, growth->key}, {"error", outcome.error().text()}});
    }
    shared_.events.record(client::reference_to(*growth->set), client::EventType::kWarning, "FailedCreate",
                          fmt::format("Error creating: {}", outcome.error().message), now);
  }
  if (--growth->open > 0) return;
  if (!growth->failed && growth->left > 0 && still_wants(*growth)) {
    growth->batch *= 2;
    create_batch(growth);
  } else {
    end_growth(*growth, now);
  }
}

template <typename T>
void ReplicasController<T>::end_growth(const Growth& growth, Now now) {
  // After a failure the next sync is the retry below; another one now would be refused at once, and so on.
  const auto requeue = [this, &growth](Now then) {
    if (!growth.failed) enqueue_paced(growth.key, then);
  };
  if (growth.left > 0) expectations_.creations_dropped(growth.set->metadata.uid, growth.left, requeue, now);
  if (growth.failed) {
    queue_.retry(growth.key, now.mono);
  } else {
    refusals_.erase(growth.set->metadata.uid);
    queue_.forget(growth.key);
  }
}

/// True if the set still exists with the same spec; its status may have changed.
template <typename T>
bool ReplicasController<T>::still_wants(const Growth& growth) const {
  const SetPtr set = sets_.find(growth.key);
  return set && set->metadata.uid == growth.set->metadata.uid &&
         set->metadata.generation == growth.set->metadata.generation && !set->metadata.deletion_timestamp;
}

template <typename T>
void ReplicasController<T>::remove(const T& set, const std::string& key, const std::vector<PodPtr>& active,
                                   std::size_t surplus) {
  std::map<std::string, std::int64_t> on_node;
  for (const PodPtr& pod : active) ++on_node[pod->spec.node_name];
  std::vector<std::pair<SurplusRank, PodPtr>> ranked;
  for (const PodPtr& pod : active) ranked.emplace_back(surplus_rank(*pod, on_node[pod->spec.node_name]), pod);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Expectations& expected = expectations_.of(set.metadata.uid);
  const api::ObjectReference about = client::reference_to(set);
  for (std::size_t i = 0; i < surplus; ++i) {
    const PodPtr& pod = ranked[i].second;
    expected.expect_deletion(pod->metadata.uid);
    shared_.client.remove(pods_path(pod->metadata, pod->metadata.name), delete_options(*pod),
                          [this, about, key, pod](const Result<api::Json>& outcome, Now then) {
                            on_removed(about, key, *pod, outcome, then);
                          });
  }
}

template <typename T>
void ReplicasController<T>::on_removed(const api::ObjectReference& set, const std::string& key, const api::Pod& pod,
                                       const Result<api::Json>& outcome, Now now) {
  const auto requeue = [this, key](Now then) { enqueue_paced(key, then); };
  if (outcome) {
    queue_.forget(key);
    expectations_.deleted(set.uid, requeue, now);
    shared_.events.record(set, client::EventType::kNormal, "SuccessfulDelete",
                          fmt::format("Deleted pod: {}", pod.metadata.name), now);
    return;
  }
  expectations_.deletion_failed(set.uid, pod.metadata.uid, outcome.error(), shared_.client, requeue, now);
  // Also if it was not found: the cache may have shown its end already, and then no event requeues the set.
  queue_.retry(key, now.mono);
}

/// The pods that have been ready for long enough; requeues the set for when the next one has been.
template <typename T>
std::int32_t ReplicasController<T>::count_available(const T& set, const std::string& key, Now now) {
  const Expectations& expected = expectations_.of(set.metadata.uid);
  std::int32_t available = 0;
  std::optional<Duration> next;
  for (const PodPtr& pod : pods_.of(set.metadata.uid)) {
    if (!counts(*pod) || !set.selector.matches(pod->metadata.labels)) continue;
    if (expected.is_leaving(pod->metadata.uid)) continue;
    const auto wait = workloads::until_available(*pod, set.min_ready_seconds, now.wall);
    if (!wait) continue;
    if (*wait == Duration::zero()) {
      ++available;
    } else {
      next = std::min(next.value_or(*wait), *wait);
    }
  }
  if (next) queue_.add(key, now.mono + *next);
  return available;
}

template <typename T>
void ReplicasController<T>::write_status(const T& set, const std::string& key, const api::ReplicaSetStatus& counted,
                                         Now now) {
  api::ReplicaSetStatus status = counted;
  // The cache may show pods whose deletion was requested: no rollout is to count on them.
  const bool some_leave = expectations_.of(set.metadata.uid).any_leaving();
  if (set.min_ready_seconds > 0 || some_leave) status.available_replicas = count_available(set, key, now);
  status.observed_generation = set.metadata.generation;
  const auto refusal = refusals_.find(set.metadata.uid);
  const bool says_so = workloads::find_condition(set.conditions, workloads::kReplicaFailure) != nullptr;
  const bool says_right = says_so == (refusal != refusals_.end());
  if (status == set.status && says_right) return;
  api::Json document = api::Json::object({{"replicas", status.replicas},
                                          {"fullyLabeledReplicas", status.fully_labeled_replicas},
                                          {"readyReplicas", status.ready_replicas},
                                          {"availableReplicas", status.available_replicas},
                                          {"observedGeneration", status.observed_generation}});
  if (!says_right) {
    api::ReplicaSet corrected;
    corrected.conditions = set.conditions;
    workloads::remove_condition(corrected.conditions, workloads::kReplicaFailure);
    if (!says_so) {
      corrected.conditions.push_back(
          {std::string(workloads::kReplicaFailure), "True", "FailedCreate", refusal->second, std::nullopt, now.wall});
    }
    const api::Json written = api::encode(corrected);
    const api::Json* conditions = written.at({"status", "conditions"});
    document["conditions"] = conditions != nullptr ? *conditions : api::Json();
  }
  const api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"resourceVersion", set.metadata.resource_version}})},
                         {"status", std::move(document)}});
  shared_.client.patch(
      client::object_path(T::kApiVersion, kNamesOf<T>.plural, set.metadata.ns, set.metadata.name, "status"),
      client::PatchType::kMerge, patch,
      [this, key](const Result<api::Json>& outcome, Now then) { on_status_written(key, outcome, then); });
}

template <typename T>
void ReplicasController<T>::on_status_written(const std::string& key, const Result<api::Json>& outcome, Now now) {
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
  // After a conflict a newer version is usually on its way to the cache and requeues the set earlier.
  if (outcome.error().code == ErrorCode::kConflict) return queue_.add(key, now.mono + kAfterConflict);
  queue_.retry(key, now.mono);
}

template class ReplicasController<api::ReplicaSet>;
template class ReplicasController<api::ReplicationController>;

}  // namespace spillway::controllers
