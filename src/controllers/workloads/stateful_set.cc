#include "controllers/workloads/stateful_set.h"

#include "controllers/shared/paths.h"
#include "controllers/shared/sync_slice.h"
#include "controllers/workloads/stateful_set_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::controllers {

namespace {

/// The name of the pod is that of the set and an ordinal.
bool is_named_after(const api::ObjectMeta& pod, const api::StatefulSet& set) {
  const auto found = workloads::name_and_ordinal(pod.name);
  return found && found->first == set.metadata.name;
}

}  // namespace

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
  if (owner == nullptr) {  // a set whose selector matches the pod may adopt it
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
    sync(*key, now);
  }
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void StatefulSetController::arm() {
  wake_up_.set(shared_.client, queue_.next_due());
}

void StatefulSetController::sync(const std::string& key, Now now) {
  const SetPtr set = caches_.sets.find(key);
  if (!set) {
    queue_.done(key);
    return queue_.forget(key);
  }
  Expectations& expected = expectations_.of(set->metadata.uid);
  if (!expected.fulfilled(now.mono)) {  // the answers to the open calls requeue the set
    queue_.done(key);
    if (const auto due = expected.next_sync(now.mono)) queue_.add(key, *due);
    return;
  }
  expected.reset();
  std::vector<PodPtr> pods = claim_pods(*set);
  const StatefulSetTools tools{shared_, caches_.claims, expectations_, holds_, queue_};
  std::make_shared<StatefulSetSync>(tools, set, std::move(pods), claim_revisions(*set))->advance(now);
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

}  // namespace spillway::controllers
