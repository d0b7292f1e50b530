#include "apiserver/collect/budgets.h"

#include "api/codec/codec.h"
#include "api/json/json_values.h"
#include "api/object/disruption_budget.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/collect/bootstrap.h"
#include "apiserver/resource/object_condition.h"
#include "apiserver/subresource/eviction.h"
#include "policy/disruption/budget.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr Duration kRetry = seconds(1);
constexpr Duration kDisruptionTimeout = minutes(2);  // an eviction that led to nothing is forgotten

const OwnerLink* controller_of(const StoredObject& object) {
  const auto found = std::ranges::find_if(object.meta.owners, &OwnerLink::controller);
  return found == object.meta.owners.end() ? nullptr : &*found;
}

void set_counts(Json& budget, const disruption::BudgetCount& count) {
  Json& status = budget["status"];
  status["expectedPods"] = count.expected_pods;
  status["currentHealthy"] = count.current_healthy;
  status["desiredHealthy"] = count.desired_healthy;
  status["disruptionsAllowed"] = count.disruptions_allowed();
}

/// The condition with the generation it was computed from.
void set_allowed_condition(Json& budget, bool allowed, std::string_view reason, std::string_view message,
                           WallTime now) {
  set_condition(budget, "DisruptionAllowed", allowed ? "True" : "False", reason, message, now);
  const std::int64_t generation = api::integer_at(budget, {"metadata", "generation"}, 0);
  for (Json& condition : *budget.at({"status", "conditions"})->if_array()) {
    if (condition.string_at({"type"}) != "DisruptionAllowed") continue;
    condition["observedGeneration"] = generation;
    if (condition.find("message") == nullptr) condition["message"] = "";
  }
}

}  // namespace

BudgetCollector::BudgetCollector(Core& core, Writer& writer)
    : core_(core),
      writer_(writer),
      pods_(core.cache.of(core.registry.get("pods"))),
      budgets_(core.cache.of(core.registry.get("poddisruptionbudgets.policy"))),
      replica_sets_(core.cache.of(core.registry.get("replicasets.apps"))),
      replication_controllers_(core.cache.of(core.registry.get("replicationcontrollers"))),
      deployments_(core.cache.of(core.registry.get("deployments.apps"))),
      stateful_sets_(core.cache.of(core.registry.get("statefulsets.apps"))) {}

void BudgetCollector::load() {
  dirty_.clear();
  for (const auto& [key, timer] : expiry_) core_.timers.cancel(timer);
  expiry_.clear();
  for (const auto& [key, budget] : budgets_.objects()) dirty_.insert(key);
}

void BudgetCollector::note_namespace(const std::string& ns) {
  budgets_.visit(ns + "/", {}, [this](const ObjectPtr& budget) {
    dirty_.insert(budget->key);
    return true;
  });
}

void BudgetCollector::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (budgets_.objects().empty()) {
    if (&cache == &budgets_ && event->object) dirty_.insert(event->object->key);
    return;
  }
  const StoredObject& object = event->object ? *event->object : *event->previous;
  if (&cache == &budgets_) {
    if (event->object) {
      dirty_.insert(object.key);
    } else {
      dirty_.erase(object.key);
      if (const auto timer = expiry_.find(object.key); timer != expiry_.end()) {
        core_.timers.cancel(timer->second);
        expiry_.erase(timer);
      }
    }
  } else if (&cache == &pods_ || &cache == &replica_sets_ || &cache == &replication_controllers_ ||
             &cache == &deployments_ || &cache == &stateful_sets_) {
    note_namespace(object.ns);
  }
}

void BudgetCollector::act() {
  while (!dirty_.empty() && busy_.size() < kCollectorWritesMax) {
    const auto next = std::ranges::find_if(dirty_, [this](const std::string& key) { return !busy_.contains(key); });
    if (next == dirty_.end()) return;
    const std::string key = *next;
    dirty_.erase(next);
    write(key);
  }
}

const ResourceCache* BudgetCollector::scaled(std::string_view kind) const {
  if (kind == "ReplicaSet") return &replica_sets_;
  if (kind == "ReplicationController") return &replication_controllers_;
  return kind == "StatefulSet" ? &stateful_sets_ : nullptr;
}

std::optional<std::int64_t> BudgetCollector::expected_by_controllers(const std::vector<ObjectPtr>& pods) const {
  std::map<std::string, std::int64_t> scale_by_uid;
  for (const ObjectPtr& pod : pods) {
    const OwnerLink* link = controller_of(*pod);
    const ResourceCache* owners = link != nullptr ? scaled(link->kind) : nullptr;
    if (owners == nullptr) return std::nullopt;
    ObjectPtr scaled_object = owners->find(object_key(pod->ns, link->name));
    if (!scaled_object || scaled_object->meta.uid != link->uid) return std::nullopt;
    if (const OwnerLink* above = controller_of(*scaled_object); above != nullptr && above->kind == "Deployment") {
      const ObjectPtr deployment = deployments_.find(object_key(pod->ns, above->name));
      if (deployment && deployment->meta.uid == above->uid) scaled_object = deployment;
    }
    scale_by_uid[scaled_object->meta.uid] = api::integer_at(scaled_object->document(), {"spec", "replicas"}, 1);
  }
  std::int64_t expected = 0;
  for (const auto& [uid, replicas] : scale_by_uid) expected += replicas;
  return expected;
}

Json BudgetCollector::computed(Json budget) const {
  const auto rules = api::decode<api::PodDisruptionBudget>(budget);
  const std::string ns(budget.string_at({"metadata", "namespace"}));
  std::vector<ObjectPtr> pods;
  pods_.visit(ns + "/", {}, [&](const ObjectPtr& pod) {
    if (rules && rules->selector.matches(pod->meta.labels)) pods.push_back(pod);
    return true;
  });

  // An eviction counts against the pod until the pod is terminating, or until it is clear that it led to nothing.
  Json disrupted = Json::object();
  if (const Json* known = budget.at({"status", "disruptedPods"}); known != nullptr && known->if_object() != nullptr) {
    for (const auto& [name, since] : *known->if_object()) {
      const ObjectPtr pod = pods_.find(object_key(ns, name));
      const Result<WallTime> time = api::parse_time(since.string_at({}));
      if (!pod || pod->meta.deleting || !time || *time + kDisruptionTimeout <= core_.now.wall) continue;
      disrupted[name] = since;
    }
  }

  disruption::BudgetCount count;
  for (const ObjectPtr& pod : pods) {
    if (pod->meta.deleting || disrupted.find(pod->name) != nullptr) continue;
    if (is_ready(*pod->shared_document())) ++count.current_healthy;
  }
  const std::optional<std::int64_t> expected = rules && disruption::expects_pods_that_match(*rules)
                                                   ? std::optional(static_cast<std::int64_t>(pods.size()))
                                                   : expected_by_controllers(pods);

  Json& status = budget["status"];
  if (disrupted.if_object()->empty()) {
    budget.erase({"status", "disruptedPods"});
  } else {
    status["disruptedPods"] = std::move(disrupted);
  }
  if (rules && expected) {
    count.expected_pods = *expected;
    count.desired_healthy = disruption::desired_healthy(*rules, *expected);
    set_counts(budget, count);
    const bool allowed = count.disruptions_allowed() > 0;
    set_allowed_condition(budget, allowed, allowed ? "SufficientPods" : "InsufficientPods", {}, core_.now.wall);
  } else {
    set_counts(budget, {});
    set_allowed_condition(budget, false, "SyncFailed",
                          "found no controllers for the pods of this budget: percentages and maxUnavailable need them",
                          core_.now.wall);
  }
  budget["status"]["observedGeneration"] = api::integer_at(budget, {"metadata", "generation"}, 0);
  return budget;
}

void BudgetCollector::write(const std::string& key) {
  const ObjectPtr budget = budgets_.find(key);
  if (!budget) return;
  busy_.insert(key);
  UpdateJob job{.resource = &budgets_.resource(),
                .ns = budget->ns,
                .name = budget->name,
                .part = SubresourceId::kStatus,
                .change = [this](const Json& current) -> StatusResult<Json> { return computed(current); },
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, key](StatusResult<Written> result) {
    busy_.erase(key);
    if (result) {
      arm_expiry(key, result->object->document());
    } else if (result.error().code != 404) {
      core_.timers.at(core_.now.mono + kRetry, [this, key] {
        if (budgets_.find(key)) dirty_.insert(key);
        run();
      });
    }
    run();
  });
}

void BudgetCollector::arm_expiry(const std::string& key, const Json& budget) {
  const Json* disrupted = budget.at({"status", "disruptedPods"});
  if (disrupted == nullptr || expiry_.contains(key)) return;
  expiry_.emplace(key, core_.timers.at(core_.now.mono + kDisruptionTimeout, [this, key] {
    expiry_.erase(key);
    if (budgets_.find(key)) dirty_.insert(key);
    run();
  }));
}

}  // namespace spillway::apiserver
