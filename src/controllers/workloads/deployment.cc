#include "controllers/workloads/deployment.h"

#include "controllers/shared/sync_slice.h"
#include "controllers/workloads/deployment_sync.h"
#include "policy/workloads/rollout_bounds.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::controllers {

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
  // A Deployment whose selector matches the ReplicaSet may adopt it.
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
    sync(*key, now);
  }
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void DeploymentController::arm() {
  const std::optional<Instant> due = queue_.next_due();
  wake_up_.set(shared_.client, due);
}

void DeploymentController::sync(const std::string& key, Now now) {
  const DeploymentPtr deployment = deployments_.cache().find(key);
  if (!deployment) {
    queue_.done(key);
    return queue_.forget(key);
  }
  workloads::ReplicaSets sets = sets_.of(deployment->metadata.uid);
  for (SetPtr& orphan : sets_.orphans_in(deployment->metadata.ns)) sets.push_back(std::move(orphan));
  const workloads::OldPods pods = old_pods(*deployment, sets);
  auto plan = workloads::plan_deployment({*deployment, std::move(sets), pods}, now.wall);
  if (!plan) {
    shared_.log.warning("deployment sync failed", {{"deployment", key}, {"error", plan.error().text()}});
    queue_.done(key);
    queue_.retry(key, now.mono);
    return;
  }
  if (plan->selects_everything) {
    shared_.events.record(client::reference_to(*deployment), client::EventType::kWarning, "SelectingAll",
                          "This deployment is selecting all pods. A non-empty selector is required.", now);
  }
  std::make_shared<DeploymentSync>(shared_, queue_, deployment, *std::move(plan))->advance(now);
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

}  // namespace spillway::controllers
