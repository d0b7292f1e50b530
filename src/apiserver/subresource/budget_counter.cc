#include "apiserver/subresource/budget_counter.h"

#include "api/json/json_values.h"
#include "api/text/time_text.h"
#include "apiserver/subresource/eviction.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

const OwnerLink* controller_of(const StoredObject& object) {
  const auto found = std::ranges::find_if(object.meta.owners, &OwnerLink::controller);
  return found == object.meta.owners.end() ? nullptr : &*found;
}

}  // namespace

BudgetCounter::BudgetCounter(Core& core)
    : core_(core),
      pods_(core.cache.of(core.registry.get("pods"))),
      replica_sets_(core.cache.of(core.registry.get("replicasets.apps"))),
      replication_controllers_(core.cache.of(core.registry.get("replicationcontrollers"))),
      deployments_(core.cache.of(core.registry.get("deployments.apps"))),
      stateful_sets_(core.cache.of(core.registry.get("statefulsets.apps"))) {}

bool BudgetCounter::counts(const ResourceCache& cache) const {
  return &cache == &pods_ || &cache == &replica_sets_ || &cache == &replication_controllers_ ||
         &cache == &deployments_ || &cache == &stateful_sets_;
}

const ResourceCache* BudgetCounter::scaled(std::string_view kind) const {
  if (kind == "ReplicaSet") return &replica_sets_;
  if (kind == "ReplicationController") return &replication_controllers_;
  return kind == "StatefulSet" ? &stateful_sets_ : nullptr;
}

std::optional<std::int64_t> BudgetCounter::expected_by_controllers(const std::vector<ObjectPtr>& pods) const {
  std::map<std::string, std::int64_t> scale_by_uid;
  for (const ObjectPtr& pod : pods) {
    const OwnerLink* link = controller_of(*pod);
    if (link == nullptr) continue;  // one that stands alone adds to what is healthy, not to what is expected
    const ResourceCache* owners = scaled(link->kind);
    if (owners == nullptr) return std::nullopt;
    ObjectPtr scaled_object = owners->find(object_key(pod->ns, link->name));
    if (!scaled_object || scaled_object->meta.uid != link->uid) return std::nullopt;
    if (const OwnerLink* above = controller_of(*scaled_object); above != nullptr && above->kind == "Deployment") {
      const ObjectPtr deployment = deployments_.find(object_key(pod->ns, above->name));
      if (deployment && deployment->meta.uid == above->uid) scaled_object = deployment;
    }
    scale_by_uid[scaled_object->meta.uid] = api::integer_at(scaled_object->document(), {"spec", "replicas"}, 1);
  }
  if (scale_by_uid.empty() && !pods.empty()) return std::nullopt;
  std::int64_t expected = 0;
  for (const auto& [uid, replicas] : scale_by_uid) expected += replicas;
  return expected;
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

BudgetSurvey BudgetCounter::survey(const Json& document, const api::PodDisruptionBudget* budget) const {
  BudgetSurvey survey{.count = {}, .disrupted = disrupted_of(document)};
  if (budget == nullptr) return survey;
  std::vector<ObjectPtr> pods;
  pods_.visit(budget->metadata.ns + "/", {}, [&](const ObjectPtr& pod) {
    if (budget->selector.matches(pod->meta.labels)) pods.push_back(pod);
    return true;
  });
  const std::optional<std::int64_t> expected = disruption::expects_pods_that_match(*budget)
                                                   ? std::optional(static_cast<std::int64_t>(pods.size()))
                                                   : expected_by_controllers(pods);
  if (!expected) return survey;
  disruption::BudgetCount count{.expected_pods = *expected,
                                .current_healthy = 0,
                                .desired_healthy = disruption::desired_healthy(*budget, *expected)};
  for (const ObjectPtr& pod : pods) {
    if (pod->meta.deleting || survey.disrupted.find(pod->name) != nullptr) continue;
    if (is_ready(*pod->shared_document())) ++count.current_healthy;
  }
  survey.count = count;
  return survey;
}

}  // namespace spillway::apiserver
