#include "apiserver/subresource/eviction.h"

#include "api/codec/codec.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/object_condition.h"
#include "apiserver/write/server_members.h"
#include "apiserver/write/write_path.h"
#include "policy/disruption/budget.h"

#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;
using disruption::Passage;
using disruption::Ruling;

constexpr int kEvictionRaces = 5;  // then the one who asks is told of the conflict
constexpr std::string_view kRefused = "Cannot evict pod as it would violate the pod's disruption budget.";

Status still_processing(std::string_view budget) {
  Status status = api::retry_status(ErrorCode::kTooManyRequests, kRefused, 10);
  status.make_details().causes.push_back(
      {"DisruptionBudget", fmt::format("The disruption budget {} is still being processed by the server.", budget),
       ""});
  return status;
}

/// 429 without Retry-After: clients are to decide themselves when to come back.
Status exhausted(const Ruling& ruling) {
  Status status = make_error(ErrorCode::kTooManyRequests, "{}", kRefused);
  status.make_details().causes.push_back(
      {"DisruptionBudget",
       fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", ruling.budget,
                   ruling.desired_healthy, ruling.current_healthy),
       ""});
  return status;
}

/// Texts of budgets that are read for one eviction, bytes: some 20 ms.
constexpr std::size_t kBudgetBytesMax = 1U << 20U;

/// What a client is told of a ruling that refuses.
Status refusal_of(const Ruling& ruling) {
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
  return exhausted(ruling);
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
  return api::retry_status(ErrorCode::kTooManyRequests, "The pod changes while it is judged, try again later.", 1);
}

disruption::PodStanding standing_of(const Json& pod) {
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

struct EvictionPath::Eviction {
  ExchangePtr exchange;
  WriteContext context;
  DeleteOptions options;
  std::string ns;
  std::string pod;
  disruption::PodStanding standing;
  bool spends_nothing = false;  // its budget lets it go because it is unready
  int races_lost = 0;           // of deletions of a pod that no budget counts
};

void EvictionPath::create(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto write_options = parse_write_options(exchange->target, "CreateOptions");
  if (!write_options) return exchange->fail(write_options.error());
  const auto body = read_object(exchange->request(), *api::find_kind("policy/v1", "Eviction"),
                                write_options->field_validation, exchange->warnings);
  if (!body) return exchange->fail(body.error());
  if (const auto same = check_namespace_matches(*body, route.ns); !same) return exchange->fail(same.error());
  if (const std::string_view name = body->string_at({"metadata", "name"}); name != route.name) {
    return exchange->fail(make_error(ErrorCode::kBadRequest,
                                     "the name in the Eviction ({}) does not match the name on the URL ({})", name,
                                     route.name));
  }
  const Json none = Json::object();
  const Json* given = body->find("deleteOptions");
  const auto options = parse_delete_options(api::Target{}, given != nullptr ? given : &none);
  if (!options) return exchange->fail(options.error());

  auto eviction = std::make_shared<Eviction>(
      Eviction{exchange, WritePath::context_of(exchange, *write_options), *options, route.ns, route.name, {}});
  eviction->options.dry_run = eviction->options.dry_run || write_options->dry_run;
  eviction->context.dry_run = eviction->options.dry_run;
  const ObjectPtr pod = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!pod) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  decide(eviction, pod);
}

/// Ruled by the status of the budget alone, which costs little; one that lets the pod go is held to what this server
/// sees.
std::optional<Ruling> EvictionPath::rule(const disruption::PodStanding& pod, const Json& document,
                                         const api::PodDisruptionBudget& budget) const {
  const Ruling by_status = disruption::decide_passage(pod, std::array{&budget});
  if (by_status.passage != Passage::kSpends && by_status.passage != Passage::kUnready) return by_status;
  const bool always_goes =
      by_status.passage == Passage::kUnready && budget.unhealthy_pod_eviction_policy == "AlwaysAllow";
  if (always_goes) return by_status;
  BudgetCounter::Count counting = counter_.begin(document, &budget);
  std::size_t steps = kSurveyStepsMax;
  if (!counter_.go_on(counting, steps)) return std::nullopt;
  const BudgetSurvey survey = BudgetCounter::result(counting);
  if (!survey.count) return by_status;
  const api::PodDisruptionBudget held = disruption::held_to(budget, *survey.count);
  return disruption::decide_passage(pod, std::array{&held});
}

/// The budget without the disruption that this pod is; as it is if none has to be spent any more.
StatusResult<Json> EvictionPath::without_disruption(Json budget, Eviction& eviction) const {
  const auto known = api::decode<api::PodDisruptionBudget>(budget);
  if (!known) return Status(known.error());
  const std::optional<Ruling> counted = rule(eviction.standing, budget, *known);
  if (!counted) return too_many_to_count(known->metadata.name);
  const Ruling& ruling = *counted;
  if (!ruling.goes()) return refusal_of(ruling);
  eviction.spends_nothing = ruling.passage != Passage::kSpends;
  if (eviction.spends_nothing) return budget;
  budget.make({"status", "disruptedPods"})[eviction.pod] = api::format_time(core_.now.wall);
  budget["status"]["disruptionsAllowed"] = ruling.disruptions_allowed - 1;
  if (ruling.disruptions_allowed == 1) {
    set_condition(budget, "DisruptionAllowed", "False", "InsufficientPods", {}, core_.now.wall);
  }
  return budget;
}

std::optional<std::vector<api::PodDisruptionBudget>> EvictionPath::budgets_of(const StoredObject& pod) const {
  std::vector<api::PodDisruptionBudget> found;
  std::size_t bytes = 0;
  bool is_too_much = false;
  const ResourceCache& budgets = core_.cache.of(core_.registry.get("poddisruptionbudgets.policy"));
  budgets.visit(pod.ns + "/", {}, [&](const ObjectPtr& stored) {
    bytes += stored->text->size();
    is_too_much = bytes > kBudgetBytesMax;
    if (is_too_much) return false;
    auto budget = api::decode<api::PodDisruptionBudget>(*stored->shared_document());
    if (budget && budget->selector.matches(pod.meta.labels)) found.push_back(*std::move(budget));
    return found.size() < 2;
  });
  if (is_too_much) return std::nullopt;
  return found;
}

void EvictionPath::decide(const EvictionPtr& eviction, const ObjectPtr& pod) {
  if (const auto held = check_preconditions(*pod, eviction->options); !held) {
    return eviction->exchange->fail(held.error());
  }
  // From here on it is this pod, not another of the same name.
  if (!eviction->options.uid) eviction->options.uid = pod->meta.uid;
  eviction->standing = standing_of(pod->document());
  const auto read = budgets_of(*pod);
  if (!read) return eviction->exchange->fail(too_many_budgets(eviction->ns));
  const std::vector<api::PodDisruptionBudget>& budgets = *read;
  std::vector<const api::PodDisruptionBudget*> pointers;
  for (const api::PodDisruptionBudget& budget : budgets) pointers.push_back(&budget);
  switch (const Ruling ruling = disruption::decide_passage(eviction->standing, pointers); ruling.passage) {
    case Passage::kUnprotected:
      return remove_unprotected(eviction, pod);
    case Passage::kNoBudget:
      return mark_pod(eviction, {});
    case Passage::kSeveralBudgets:
      return eviction->exchange->fail(refusal_of(ruling));
    case Passage::kUnready:
    case Passage::kSpends:
    case Passage::kNotCountedYet:
    case Passage::kExhausted:
    case Passage::kTooManyUnsettled:
      return spend(eviction, budgets.front().metadata.name);  // ruled on again, over the budget as it is then
  }
}

void EvictionPath::spend(const EvictionPtr& eviction, const std::string& budget) {
  UpdateJob job{.resource = &core_.registry.get("poddisruptionbudgets.policy"),
                .ns = eviction->ns,
                .name = budget,
                .part = SubresourceId::kStatus,
                .change = [this, eviction](const Json& current) { return without_disruption(current, *eviction); },
                .trusted = true,
                .context = eviction->context};
  writer_.update(std::move(job), [this, eviction, budget](StatusResult<Written> result) {
    if (result) return mark_pod(eviction, budget);
    // A budget that went away no longer protects anything.
    if (result.error().code == 404) return mark_pod(eviction, {});
    eviction->exchange->fail(result.error());
  });
}

void EvictionPath::mark_pod(const EvictionPtr& eviction, const std::string& budget) {
  UpdateJob job{.resource = eviction->exchange->route.resource,
                .ns = eviction->ns,
                .name = eviction->pod,
                .part = SubresourceId::kStatus,
                .change = [this, eviction, budget](const Json& current) -> StatusResult<Json> {
                  const std::string_view uid = current.string_at({"metadata", "uid"});
                  if (uid != *eviction->options.uid) {
                    return uid_mismatch({"", "pods"}, eviction->pod, *eviction->options.uid, uid);
                  }
                  // It has become one of the healthy ones meanwhile.
                  if (eviction->spends_nothing && !budget.empty() && is_ready(current)) return still_processing(budget);
                  Json pod = current;
                  set_condition(pod, "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting",
                                core_.now.wall);
                  return pod;
                },
                .trusted = true,
                .context = eviction->context};
  writer_.update(std::move(job), [this, eviction](StatusResult<Written> result) {
    if (!result) return eviction->exchange->fail(result.error());
    // The condition is a new version; the precondition was checked against the one before.
    eviction->options.resource_version.reset();
    remove_pod(eviction);
  });
}

/// As the pod that was judged: one that has begun to run meanwhile may be protected. One that ends, or has ended, does
/// not begin again.
void EvictionPath::remove_unprotected(const EvictionPtr& eviction, const ObjectPtr& judged) {
  const disruption::PodStanding& pod = eviction->standing;
  if (pod.terminating || pod.phase == "Succeeded" || pod.phase == "Failed") return remove_pod(eviction);
  DeleteOptions options = eviction->options;
  options.resource_version = std::to_string(judged->revision.number());
  const Resource& pods = *eviction->exchange->route.resource;
  remover_.remove({&pods, eviction->ns, eviction->pod, std::move(options)},
                  [this, eviction, &pods](StatusResult<Removed> result) {
                    const bool raced = !result && result.error().code == 409;
                    if (!raced) return finish(eviction, result);
                    if (++eviction->races_lost >= kEvictionRaces) return eviction->exchange->fail(still_changing());
                    const ObjectPtr now = core_.cache.of(pods).find(object_key(eviction->ns, eviction->pod));
                    if (now) return decide(eviction, now);
                    eviction->exchange->fail(api::not_found_status(pods.group_resource(), eviction->pod));
                  });
}

void EvictionPath::remove_pod(const EvictionPtr& eviction) {
  remover_.remove({eviction->exchange->route.resource, eviction->ns, eviction->pod, eviction->options},
                  [eviction](StatusResult<Removed> result) { finish(eviction, result); });
}

void EvictionPath::finish(const EvictionPtr& eviction, const StatusResult<Removed>& result) {
  if (!result) return eviction->exchange->fail(result.error());
  eviction->exchange->answer(201, api::created_status());
}

}  // namespace spillway::apiserver
