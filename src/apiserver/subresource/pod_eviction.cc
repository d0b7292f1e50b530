#include "apiserver/subresource/pod_eviction.h"

#include "api/codec/codec.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/resource/object_condition.h"
#include "apiserver/write/server_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;
using disruption::Passage;
using disruption::Ruling;

constexpr auto kStepsOfEviction = [] {
  using enum PodEviction::Step;
  return std::array{kLoad, kRuling, kSpending, kConditioning, kRemoval, kAnswer};
}();

/// Races that the eviction of an unprotected pod loses; then the client gets 429 and is to try again.
constexpr int kEvictionRaces = 5;
constexpr std::string_view kRefused = "Cannot evict pod as it would violate the pod's disruption budget.";

Status still_processing(std::string_view budget) {
  Status status = api::retry_status(ErrorCode::kTooManyRequests, kRefused, 10);
  status.make_details().causes.push_back(
      {"DisruptionBudget", fmt::format("The disruption budget {} is still being processed by the server.", budget),
       ""});
  return status;
}

/// The condition DisruptionAllowed of the budget's document if it is False; else null.
Json refused_by_condition(const Json& budget) {
  const Json* conditions = budget.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return {};
  const auto found = std::ranges::find_if(*conditions->if_array(), [](const Json& each) {
    return each.string_at({"type"}) == "DisruptionAllowed" && each.string_at({"status"}) == "False";
  });
  return found == conditions->if_array()->end() ? Json() : *found;
}

/// Why the budget lets no pod go: a failure of its controller, then the pods, then another reason of the controller.
std::string exhausted_text(const Ruling& ruling, const Json& budget) {
  const Json refused = refused_by_condition(budget);
  const std::string_view reason = refused.string_at({"reason"});
  const std::string_view message = refused.string_at({"message"});
  std::string text = fmt::format("The disruption budget {} does not allow evicting pods currently", ruling.budget);
  if (reason == "SyncFailed") return fmt::format("{} because it failed sync: {}", text, message);
  if (ruling.current_healthy <= ruling.desired_healthy) {
    return fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", ruling.budget,
                       ruling.desired_healthy, ruling.current_healthy);
  }
  return message.empty() ? text : fmt::format("{} ({}): {}", text, reason, message);
}

/// 429 without Retry-After: clients decide themselves when to retry.
Status exhausted(const Ruling& ruling, const Json& budget) {
  Status status = make_error(ErrorCode::kTooManyRequests, "{}", kRefused);
  status.make_details().causes.push_back({"DisruptionBudget", exhausted_text(ruling, budget), ""});
  return status;
}

/// Texts of budgets that are read for one eviction, bytes: some 20 ms.
constexpr std::size_t kBudgetBytesMax = 1U << 20U;

/// The answer to a client whose eviction the ruling refuses. `budget`: the document of the one that decided, if one
/// did.
Status refusal_of(const Ruling& ruling, const Json& budget) {
  switch (ruling.passage) {
    case Passage::kNotCountedYet:
      return still_processing(ruling.budget);
    case Passage::kTooManyUnsettled:
      return api::forbidden_status({"policy", "poddisruptionbudgets"}, ruling.budget,
                                   "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    case Passage::kSeveralBudgets:
      return make_error(
          ErrorCode::kInternalError,
          "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
    case Passage::kExhausted:
    case Passage::kUnprotected:
    case Passage::kNoBudget:
    case Passage::kUnready:
    case Passage::kSpends:
      break;
  }
  return exhausted(ruling, budget);
}

Status too_many_budgets(std::string_view ns) {
  return api::retry_status(
      ErrorCode::kTooManyRequests,
      fmt::format("The PodDisruptionBudgets of the namespace {} are too many to be read for one eviction.", ns), 10);
}

Status too_many_to_count(std::string_view budget) {
  return api::retry_status(
      ErrorCode::kTooManyRequests,
      fmt::format("The disruption budget {} selects among too many pods to be counted for one eviction.", budget), 10);
}

Status still_changing() {
  return api::retry_status(ErrorCode::kTooManyRequests,
                           "The pod changes during the check of its budgets, try again later.", 1);
}

disruption::PodStanding pod_state_of(const Json& pod) {
  return {.phase = std::string(pod.string_at({"status", "phase"})),
          .terminating = !pod.string_at({"metadata", "deletionTimestamp"}).empty(),
          .ready = is_ready(pod)};
}

StatusResult<void> check_preconditions(const StoredObject& pod, const DeleteOptions& options) {
  const api::GroupResource pods{"", "pods"};
  if (options.uid && *options.uid != pod.meta.uid) {
    return uid_mismatch(pods, pod.name, *options.uid, pod.meta.uid);
  }
  const std::string version = std::to_string(pod.revision.number());
  if (options.resource_version && *options.resource_version != version) {
    return api::conflict_status(pods, pod.name,
                                "Precondition failed: ResourceVersion in precondition: " + *options.resource_version +
                                    ", ResourceVersion in object meta: " + version);
  }
  return {};
}

}  // namespace

PodEviction::PodEviction(EvictionTools& tools, ExchangePtr exchange, WriteContext context, DeleteOptions options)
    : tools_(tools),
      exchange_(std::move(exchange)),
      pods_(*exchange_->route.resource),
      context_(std::move(context)),
      options_(std::move(options)),
      ns_(exchange_->route.ns),
      name_(exchange_->route.name),
      steps_(kStepsOfEviction) {}

void PodEviction::advance() {
  Next next = Next::kStep;
  while (next == Next::kStep) next = run(steps_.take());
}

Next PodEviction::run(Step step) {
  switch (step) {
    case Step::kLoad:
      return load();
    case Step::kRuling:
      return rule();
    case Step::kSpending:
      return spend();
    case Step::kConditioning:
      return set_condition_of_pod();
    case Step::kRemoval:
      return remove();
    case Step::kAnswer:
      return answer();
  }
  return Next::kEnd;
}

/// Continues after the answer that a step waited for.
void PodEviction::resume(Next next) {
  if (next == Next::kStep) advance();
}

Next PodEviction::refuse(const Status& status) {
  exchange_->fail(status);
  return Next::kEnd;
}

Next PodEviction::load() {
  pod_ = tools_.core.cache.of(pods_).find(object_key(ns_, name_));
  return pod_ ? Next::kStep : refuse(api::not_found_status(pods_.group_resource(), name_));
}

/// A pod without a budget is marked and deleted, one that no budget counts is deleted at once. Of a pod with a budget
/// nothing is decided here: the ruling is over the budget as the write of it finds it.
Next PodEviction::rule() {
  if (const auto held = check_preconditions(*pod_, options_); !held) return refuse(held.error());
  // From here on only this pod is meant, not a later one of the same name.
  if (!options_.uid) options_.uid = pod_->meta.uid;
  pod_state_ = pod_state_of(pod_->document());
  const auto budgets = budgets_of_pod();
  if (!budgets) return refuse(too_many_budgets(ns_));
  std::vector<const api::PodDisruptionBudget*> pointers;
  for (const api::PodDisruptionBudget& budget : *budgets) pointers.push_back(&budget);
  switch (const Ruling ruling = disruption::decide_passage(pod_state_, pointers); ruling.passage) {
    case Passage::kUnprotected:
      // A pod that ends, or has ended, does not begin to run again.
      removes_as_ruled_ = !pod_state_.terminating && pod_state_.phase != "Succeeded" && pod_state_.phase != "Failed";
      steps_.go_to(Step::kRemoval);
      return Next::kStep;
    case Passage::kNoBudget:
      steps_.go_to(Step::kConditioning);
      return Next::kStep;
    case Passage::kSeveralBudgets:
      return refuse(refusal_of(ruling, {}));
    case Passage::kUnready:
    case Passage::kSpends:
    case Passage::kNotCountedYet:
    case Passage::kExhausted:
    case Passage::kTooManyUnsettled:
      budget_ = budgets->front().metadata.name;
      return Next::kStep;
  }
  return Next::kStep;
}

/// The budgets that select the pod: the first two at most, as several refuse the eviction. nullopt: the budgets of the
/// namespace are too many to be read at once.
std::optional<std::vector<api::PodDisruptionBudget>> PodEviction::budgets_of_pod() const {
  std::vector<api::PodDisruptionBudget> found;
  std::size_t bytes = 0;
  bool is_too_much = false;
  const ResourceCache& budgets = tools_.core.cache.of(tools_.core.registry.get("poddisruptionbudgets.policy"));
  budgets.visit(ns_ + "/", {}, [&](const ObjectPtr& stored) {
    bytes += stored->text->size();
    is_too_much = bytes > kBudgetBytesMax;
    if (is_too_much) return false;
    auto budget = api::decode<api::PodDisruptionBudget>(*stored->shared_document());
    if (budget && budget->selector.matches(pod_->meta.labels)) found.push_back(*std::move(budget));
    return found.size() < 2;
  });
  if (is_too_much) return std::nullopt;
  return found;
}

Next PodEviction::spend() {
  UpdateJob job{.resource = &tools_.core.registry.get("poddisruptionbudgets.policy"),
                .ns = ns_,
                .name = budget_,
                .part = SubresourceId::kStatus,
                .change = [this](const Json& current) { return without_disruption(current); },
                .trusted = true,
                .context = context_};
  tools_.writer.update(std::move(job), [self = shared_from_this()](const StatusResult<Written>& result) {
    self->resume(self->on_spent(result));
  });
  return Next::kWait;
}

/// A budget that was deleted meanwhile no longer protects any pod.
Next PodEviction::on_spent(const StatusResult<Written>& result) {
  if (!result && result.error().code != 404) return refuse(result.error());
  if (!result) budget_.clear();
  return Next::kStep;
}

/// The budget without the disruption that this pod is; as it is if none has to be spent any more.
StatusResult<Json> PodEviction::without_disruption(Json budget) {
  const auto known = api::decode<api::PodDisruptionBudget>(budget);
  if (!known) return Status(known.error());
  const std::optional<Ruling> counted = count_ruling(budget, *known);
  if (!counted) return too_many_to_count(known->metadata.name);
  const Ruling& ruling = *counted;
  if (!ruling.goes()) return refusal_of(ruling, budget);
  spends_nothing_ = ruling.passage != Passage::kSpends;
  if (spends_nothing_) return budget;
  const WallTime now = tools_.core.now.wall;
  budget.make({"status", "disruptedPods"})[name_] = api::format_time(now);
  budget["status"]["disruptionsAllowed"] = ruling.disruptions_allowed - 1;
  if (ruling.disruptions_allowed == 1) {
    set_condition(budget, "DisruptionAllowed", "False", "InsufficientPods", {}, now);
  }
  return budget;
}

/// Rules by the status of the budget, which costs little; one that lets the pod go is held to what this server sees.
/// nullopt: the pods are too many to be counted at once.
std::optional<Ruling> PodEviction::count_ruling(const Json& document, const api::PodDisruptionBudget& budget) const {
  const Ruling by_status = disruption::decide_passage(pod_state_, std::array{&budget});
  if (by_status.passage != Passage::kSpends && by_status.passage != Passage::kUnready) return by_status;
  const bool always_goes =
      by_status.passage == Passage::kUnready && budget.unhealthy_pod_eviction_policy == "AlwaysAllow";
  if (always_goes) return by_status;
  BudgetCounter::Count counting = tools_.counter.begin(document, &budget);
  std::size_t steps = kSurveyStepsMax;
  if (!tools_.counter.advance(counting, steps)) return std::nullopt;
  const BudgetSurvey survey = BudgetCounter::result(counting);
  if (!survey.count) return by_status;
  const api::PodDisruptionBudget held = disruption::held_to(budget, *survey.count);
  return disruption::decide_passage(pod_state_, std::array{&held});
}

Next PodEviction::set_condition_of_pod() {
  UpdateJob job{.resource = &pods_,
                .ns = ns_,
                .name = name_,
                .part = SubresourceId::kStatus,
                .change = [this](const Json& current) { return with_condition(current); },
                .trusted = true,
                .context = context_};
  tools_.writer.update(std::move(job), [self = shared_from_this()](const StatusResult<Written>& result) {
    self->resume(self->on_condition_set(result));
  });
  return Next::kWait;
}

StatusResult<Json> PodEviction::with_condition(const Json& pod) const {
  const std::string_view uid = pod.string_at({"metadata", "uid"});
  if (uid != *options_.uid) return uid_mismatch({"", "pods"}, name_, *options_.uid, uid);
  // The pod has become healthy meanwhile.
  if (spends_nothing_ && !budget_.empty() && is_ready(pod)) return still_processing(budget_);
  Json marked = pod;
  set_condition(marked, "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting",
                tools_.core.now.wall);
  return marked;
}

/// The condition is a new version of the pod; the precondition was checked against the one before.
Next PodEviction::on_condition_set(const StatusResult<Written>& result) {
  if (!result) return refuse(result.error());
  options_.resource_version.reset();
  return Next::kStep;
}

/// An unprotected pod is deleted as the one that was ruled on: one that has begun to run meanwhile may be protected.
Next PodEviction::remove() {
  DeleteOptions options = options_;
  if (removes_as_ruled_) options.resource_version = std::to_string(pod_->revision.number());
  tools_.remover.remove(
      {&pods_, ns_, name_, std::move(options)},
      [self = shared_from_this()](const StatusResult<Removed>& result) { self->resume(self->on_removed(result)); });
  return Next::kWait;
}

Next PodEviction::on_removed(const StatusResult<Removed>& result) {
  if (result) return Next::kStep;
  const bool raced = removes_as_ruled_ && result.error().code == 409;
  if (!raced) return refuse(result.error());
  if (++races_lost_ >= kEvictionRaces) return refuse(still_changing());
  removes_as_ruled_ = false;
  steps_.go_to(Step::kLoad);
  return Next::kStep;
}

Next PodEviction::answer() {
  exchange_->answer(201, api::created_status());
  return Next::kEnd;
}

}  // namespace spillway::apiserver
