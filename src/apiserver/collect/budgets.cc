#include "apiserver/collect/budgets.h"

#include "api/codec/codec.h"
#include "api/json/json_values.h"
#include "api/object/disruption_budget.h"
#include "api/object/meta.h"
#include "apiserver/collect/bootstrap.h"
#include "apiserver/resource/object_condition.h"
#include "policy/disruption/budget.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr Duration kBudgetRetry = seconds(1);

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
      counter_(core),
      budgets_(core.cache.of(core.registry.get("poddisruptionbudgets.policy"))) {}

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
  } else if (counter_.counts(cache)) {
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

Json BudgetCollector::computed(Json budget) const {
  const auto rules = api::decode<api::PodDisruptionBudget>(budget);
  BudgetSurvey survey = counter_.survey(budget, rules ? &*rules : nullptr);
  if (survey.disrupted.if_object()->empty()) {
    budget.erase({"status", "disruptedPods"});
  } else {
    budget["status"]["disruptedPods"] = std::move(survey.disrupted);
  }
  set_counts(budget, survey.count.value_or(disruption::BudgetCount{}));
  if (survey.count) {
    const bool allowed = survey.count->disruptions_allowed() > 0;
    set_allowed_condition(budget, allowed, allowed ? "SufficientPods" : "InsufficientPods", {}, core_.now.wall);
  } else {
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
      core_.timers.at(core_.now.mono + kBudgetRetry, [this, key] {
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
