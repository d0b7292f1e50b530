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

/// Steps of comparing a pod with the budgets of its namespace, when it changes.
constexpr std::size_t kStepsOfEvent = 2'000;
/// The cost of reading a budget and computing its status, in steps of counting (about 0.1 ms); writing it costs the
/// second number.
constexpr std::size_t kStepsOfBudget = 1'000;
constexpr std::size_t kStepsOfWrite = 5'000;

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
  places_.clear();
  survey_.reset();
  for (const auto& [key, timer] : expiry_) core_.timers.cancel(timer);
  expiry_.clear();
  for (const auto& [key, budget] : budgets_.objects()) {
    know(budget);
    mark(key);
  }
}

void BudgetCollector::know(const ObjectPtr& budget) {
  Place& place = places_[budget->ns];
  const auto rules = api::decode<api::PodDisruptionBudget>(*budget->shared_document());
  api::LabelSelector selector = rules ? rules->selector : api::LabelSelector{.requirements = {}, .nothing = true};
  place.steps += 1 + match_steps(selector);
  place.selectors.insert_or_assign(budget->key, std::move(selector));
}

void BudgetCollector::forget(const StoredObject& budget) {
  const auto place = places_.find(budget.ns);
  if (place == places_.end()) return;
  const auto known = place->second.selectors.find(budget.key);
  if (known == place->second.selectors.end()) return;
  place->second.steps -= 1 + match_steps(known->second);
  place->second.selectors.erase(known);
  if (place->second.selectors.empty()) places_.erase(place);
}

void BudgetCollector::mark(const std::string& key) {
  const auto place = places_.find(std::string_view(key).substr(0, key.find('/')));
  if (place == places_.end() || !place->second.dirty.insert(key).second) return;
  place->second.waiting.push_back(key);
}

void BudgetCollector::mark_all(std::string_view ns) {
  if (const auto place = places_.find(ns); place != places_.end()) place->second.all = true;
}

void BudgetCollector::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &budgets_) return on_budget(event);
  if (places_.empty()) return;
  if (&cache == &counter_.pods()) return on_pod(*event);
  if (!counter_.scales(cache)) return;
  const ObjectPtr& before = event->previous;
  const ObjectPtr& now = event->object;
  const bool is_same = before && now && before->meta.uid == now->meta.uid &&
                       before->meta.replicas == now->meta.replicas && before->meta.owners == now->meta.owners;
  if (!is_same) mark_all((now ? now : before)->ns);
}

void BudgetCollector::on_budget(const EventPtr& event) {
  const StoredObject& object = event->object ? *event->object : *event->previous;
  forget(object);
  if (event->object) {
    know(event->object);
    return mark(object.key);
  }
  if (const auto timer = expiry_.find(object.key); timer != expiry_.end()) {
    core_.timers.cancel(timer->second);
    expiry_.erase(timer);
  }
}

/// A namespace with so many or such long selectors that comparing them takes a part of a slice is counted as a whole.
void BudgetCollector::on_pod(const CacheEvent& event) {
  const ObjectPtr& before = event.previous;
  const ObjectPtr& now = event.object;
  const bool is_same = before && now && before->meta.uid == now->meta.uid && before->meta.ready == now->meta.ready &&
                       before->meta.deleting == now->meta.deleting && before->meta.labels == now->meta.labels &&
                       before->meta.owners == now->meta.owners;
  if (is_same) return;
  const auto place = places_.find((now ? now : before)->ns);
  if (place == places_.end()) return;
  if (place->second.steps > kStepsOfEvent) {
    place->second.all = true;
    return;
  }
  for (const auto& [key, selector] : place->second.selectors) {
    const auto selects = [&wanted = selector](const ObjectPtr& pod) { return pod && wanted.matches(pod->meta.labels); };
    if (selects(before) || selects(now)) mark(key);
  }
}

ObjectPtr BudgetCollector::take(const std::string& ns, Place& place) {
  if (std::exchange(place.all, false)) {
    for (const auto& [key, selector] : place.selectors) mark(key);
  }
  while (true) {
    const auto found =
        std::ranges::find_if(place.waiting, [this](const std::string& key) { return !busy_.contains(key); });
    if (found == place.waiting.end()) return nullptr;
    const std::string key = std::move(*found);
    place.waiting.erase(found);
    place.dirty.erase(key);
    last_ = ns;
    if (ObjectPtr budget = budgets_.find(key)) return budget;
  }
}

ObjectPtr BudgetCollector::next() {
  const auto first = places_.upper_bound(last_);
  for (auto place = first; place != places_.end(); ++place) {
    if (ObjectPtr budget = take(place->first, place->second)) return budget;
  }
  for (auto place = places_.begin(); place != first; ++place) {
    if (ObjectPtr budget = take(place->first, place->second)) return budget;
  }
  return nullptr;
}

void BudgetCollector::act() {
  std::size_t left = kSliceSteps;
  while (!pauses_ && busy_.size() < kCollectorWritesMax) {
    if (!survey_) {
      const ObjectPtr budget = next();
      if (!budget) return;
      const auto rules = api::decode<api::PodDisruptionBudget>(*budget->shared_document());
      survey_ = Survey{budget, counter_.begin(*budget->shared_document(), rules ? &*rules : nullptr)};
    }
    if (!survey_next(left)) return pause();
  }
}

bool BudgetCollector::survey_next(std::size_t& left) {
  const std::size_t before = left;
  const bool is_done = counter_.advance(survey_->count, left);
  steps_ += before - left;
  if (!is_done) return false;
  const Survey done = *std::move(survey_);
  survey_.reset();
  left -= std::min(left, kStepsOfBudget);
  const std::string& key = done.budget->key;
  if (budgets_.find(key) != done.budget) {
    mark(key);  // another write changed the budget meanwhile
    return left != 0;
  }
  BudgetSurvey survey = BudgetCounter::result(done.count);
  const api::DocumentPtr document = done.budget->shared_document();
  if (computed(*document, survey) == *document) {
    arm_expiry(key, *document);
    return left != 0;
  }
  left -= std::min(left, kStepsOfWrite);
  write(done.budget, std::move(survey));
  return left != 0;
}

void BudgetCollector::pause() {
  pauses_ = true;
  core_.timers.at(core_.now.mono + kPause, [this] {
    pauses_ = false;
    run();
  });
}

Json BudgetCollector::computed(Json budget, const BudgetSurvey& survey) const {
  if (survey.disrupted.if_object()->empty()) {
    budget.erase({"status", "disruptedPods"});
  } else {
    budget["status"]["disruptedPods"] = survey.disrupted;
  }
  set_counts(budget, survey.count.value_or(disruption::BudgetCount{}));
  if (survey.count) {
    const bool allowed = survey.count->disruptions_allowed() > 0;
    set_allowed_condition(budget, allowed, allowed ? "SufficientPods" : "InsufficientPods", {}, core_.now.wall);
  } else {
    set_allowed_condition(
        budget, false, "SyncFailed",
        "no controllers were found for the pods of this budget: percentages and maxUnavailable need them",
        core_.now.wall);
  }
  budget["status"]["observedGeneration"] = api::integer_at(budget, {"metadata", "generation"}, 0);
  return budget;
}

/// The counts hold for the budget as it was then: a budget that another writer has changed is counted again.
void BudgetCollector::write(const ObjectPtr& budget, BudgetSurvey survey) {
  const std::string key = budget->key;
  busy_.insert(key);
  UpdateJob job{.resource = &budgets_.resource(),
                .ns = budget->ns,
                .name = budget->name,
                .part = SubresourceId::kStatus,
                .change = [this, budget, survey = std::move(survey)](const Json& current) -> StatusResult<Json> {
                  if (current.string_at({"metadata", "resourceVersion"}) == std::to_string(budget->revision.number())) {
                    return computed(current, survey);
                  }
                  mark(budget->key);
                  return current;
                },
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, key](StatusResult<Written> result) {
    busy_.erase(key);
    if (result) {
      arm_expiry(key, result->object->document());
    } else if (result.error().code != 404) {
      core_.timers.at(core_.now.mono + kBudgetRetry, [this, key] {
        if (budgets_.find(key)) mark(key);
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
    if (budgets_.find(key)) mark(key);
    run();
  }));
}

}  // namespace spillway::apiserver
