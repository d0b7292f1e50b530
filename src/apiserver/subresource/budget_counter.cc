#include "apiserver/subresource/budget_counter.h"

#include "api/object/kind_id.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

using api::Json;

const OwnerLink* controller_of(const StoredObject& object) {
  const auto found = std::ranges::find_if(object.meta.owners, &OwnerLink::controller);
  return found == object.meta.owners.end() ? nullptr : &*found;
}

BudgetCounter::BudgetCounter(Core& core)
    : core_(core),
      pods_(core.cache.of(core.registry.get("pods"))),
      replica_sets_(core.cache.of(core.registry.get("replicasets.apps"))),
      replication_controllers_(core.cache.of(core.registry.get("replicationcontrollers"))),
      deployments_(core.cache.of(core.registry.get("deployments.apps"))),
      stateful_sets_(core.cache.of(core.registry.get("statefulsets.apps"))) {}

bool BudgetCounter::scales(const ResourceCache& cache) const {
  return &cache == &replica_sets_ || &cache == &replication_controllers_ || &cache == &deployments_ ||
         &cache == &stateful_sets_;
}

const ResourceCache* BudgetCounter::scaled(const OwnerLink& owner) const {
  const api::KindId kind = api::kind_of(owner);
  if (kind == api::KindId{"", "ReplicationController"}) return &replication_controllers_;
  if (kind == api::KindId{"apps", "ReplicaSet"}) return &replica_sets_;
  return kind == api::KindId{"apps", "StatefulSet"} ? &stateful_sets_ : nullptr;
}

bool BudgetCounter::add_scale(Count& count, const StoredObject& pod) const {
  const OwnerLink* link = controller_of(pod);
  if (link == nullptr) return true;  // a pod without a controller counts as healthy, not as expected
  const ResourceCache* owners = scaled(*link);
  if (owners == nullptr) return false;
  ObjectPtr scaled_object = owners->find(object_key(pod.ns, link->name));
  if (!scaled_object || scaled_object->meta.uid != link->uid) return false;
  const OwnerLink* above = controller_of(*scaled_object);
  if (above != nullptr && api::kind_of(*above) == api::KindId{"apps", "Deployment"}) {
    const ObjectPtr deployment = deployments_.find(object_key(pod.ns, above->name));
    if (deployment && deployment->meta.uid == above->uid) scaled_object = deployment;
  }
  count.scale_by_uid[scaled_object->meta.uid] = scaled_object->meta.replicas;
  return true;
}

/// An eviction counts against the pod until the pod is terminating, or until it is clear that it led to nothing.
Json BudgetCounter::disrupted_of(const Json& document) const {
  Json disrupted = Json::object();
  const Json* known = document.at({"status", "disruptedPods"});
  if (known == nullptr || known->if_object() == nullptr) return disrupted;
  const std::string ns(document.string_at({"metadata", "namespace"}));
  for (const auto& [name, since] : *known->if_object()) {
    const ObjectPtr pod = pods_.find(object_key(ns, name));
    const Result<WallTime> time = api::parse_time(since.string_at({}));
    if (!pod || pod->meta.deleting || !time || *time + kDisruptionTimeout <= core_.now.wall) continue;
    disrupted[name] = since;
  }
  return disrupted;
}

BudgetCounter::Count BudgetCounter::begin(const Json& document, const api::PodDisruptionBudget* budget) const {
  Count count{.budget = {}, .disrupted = disrupted_of(document)};
  for (const auto& [name, since] : *count.disrupted.if_object()) count.disrupted_names.emplace(name);
  if (budget == nullptr) return count;
  count.budget = *budget;
  count.steps_of_pod = 1 + match_steps(budget->selector);
  return count;
}

bool BudgetCounter::advance(Count& count, std::size_t& steps) const {
  if (!count.budget) return true;
  bool left = true;
  pods_.visit(count.budget->metadata.ns + "/", count.after, [&](const ObjectPtr& pod) {
    left = steps != 0;
    if (!left) return false;
    steps -= std::min(steps, count.steps_of_pod);
    count_pod(count, *pod);
    count.after = pod->key;
    return true;
  });
  return left;
}

void BudgetCounter::count_pod(Count& count, const StoredObject& pod) const {
  if (!count.budget->selector.matches(pod.meta.labels)) return;
  ++count.pods;
  if (!disruption::expects_pods_that_match(*count.budget)) {
    count.is_unscaled = !add_scale(count, pod) || count.is_unscaled;
  }
  if (pod.meta.deleting || count.disrupted_names.contains(pod.name)) return;
  if (pod.meta.ready) ++count.healthy;
}

BudgetSurvey BudgetCounter::result(const Count& count) {
  BudgetSurvey survey{.count = {}, .disrupted = count.disrupted};
  if (!count.budget) return survey;
  std::int64_t expected = count.pods;
  if (!disruption::expects_pods_that_match(*count.budget)) {
    if (count.is_unscaled || (count.scale_by_uid.empty() && count.pods != 0)) return survey;
    expected = 0;
    for (const auto& [uid, replicas] : count.scale_by_uid) expected += replicas;
  }
  survey.count = disruption::BudgetCount{.expected_pods = expected,
                                         .current_healthy = count.healthy,
                                         .desired_healthy = disruption::desired_healthy(*count.budget, expected)};
  return survey;
}

}  // namespace spillway::apiserver
