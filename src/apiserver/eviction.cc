#include "apiserver/eviction.h"

#include "api/meta.h"
#include "api/selector.h"
#include "apiserver/body.h"
#include "apiserver/pod_binding.h"
#include "apiserver/write_path.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

constexpr std::string_view kRefused = "Cannot evict pod as it would violate the pod's disruption budget.";
constexpr std::size_t kDisruptedPodsMax = 2'000;

std::int64_t number_at(const Json& document, std::initializer_list<std::string_view> path) {
  const Json* value = document.at(path);
  return value == nullptr ? 0 : value->if_int64().value_or(0);
}

Status still_processing(std::string_view budget) {
  Status status = api::retry_status(ErrorCode::kTooManyRequests, kRefused, 10);
  status.make_details().causes.push_back(
      {"DisruptionBudget", fmt::format("The disruption budget {} is still being processed by the server.", budget),
       ""});
  return status;
}

/// 429 without Retry-After: clients are to decide themselves when to come back.
Status refused(const Json& budget) {
  Status status = make_error(ErrorCode::kTooManyRequests, "{}", kRefused);
  status.make_details().causes.push_back(
      {"DisruptionBudget",
       fmt::format("The disruption budget {} needs {} healthy pods and has {} currently",
                   budget.string_at({"metadata", "name"}), number_at(budget, {"status", "desiredHealthy"}),
                   number_at(budget, {"status", "currentHealthy"})),
       ""});
  return status;
}

/// An unready pod may go without spending anything.
bool unready_may_go(const Json& budget) {
  if (budget.string_at({"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow") return true;
  const std::int64_t desired = number_at(budget, {"status", "desiredHealthy"});
  return desired > 0 && number_at(budget, {"status", "currentHealthy"}) >= desired;
}

StatusResult<Json> spend_allowance(Json budget, const std::string& pod, WallTime now) {
  if (number_at(budget, {"status", "observedGeneration"}) < number_at(budget, {"metadata", "generation"})) {
    return still_processing(budget.string_at({"metadata", "name"}));
  }
  const std::int64_t allowed = number_at(budget, {"status", "disruptionsAllowed"});
  if (allowed <= 0) return refused(budget);
  Json& disrupted = budget.make({"status", "disruptedPods"});
  if (disrupted.is_object() && disrupted.if_object()->size() >= kDisruptedPodsMax) {
    return api::forbidden_status({"policy", "poddisruptionbudgets"}, budget.string_at({"metadata", "name"}),
                                 "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  disrupted[pod] = api::format_time(now);
  budget["status"]["disruptionsAllowed"] = allowed - 1;
  if (allowed == 1) set_condition(budget, "DisruptionAllowed", "False", "InsufficientPods", {}, now);
  return budget;
}

/// Pending, ended and terminating pods are no longer protected.
bool bypasses_budgets(const Json& pod) {
  const std::string_view phase = pod.string_at({"status", "phase"});
  return phase == "Pending" || phase == "Succeeded" || phase == "Failed" ||
         !pod.string_at({"metadata", "deletionTimestamp"}).empty();
}

StatusResult<void> check_preconditions(const StoredObject& pod, const DeleteOptions& options) {
  const api::GroupResource pods{"", "pods"};
  if (options.uid && *options.uid != pod.meta.uid) {
    return api::conflict_status(
        pods, pod.name,
        "Precondition failed: UID in precondition: " + *options.uid + ", UID in object meta: " + pod.meta.uid);
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
};

bool is_ready(const Json& pod) {
  const Json* conditions = pod.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return false;
  for (const Json& condition : *conditions->if_array()) {
    if (condition.string_at({"type"}) == "Ready") return condition.string_at({"status"}) == "True";
  }
  return false;
}

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
      Eviction{exchange, WritePath::context_of(*exchange, *write_options), *options, route.ns, route.name});
  eviction->options.dry_run = eviction->options.dry_run || write_options->dry_run;
  eviction->context.dry_run = eviction->options.dry_run;
  const ObjectPtr pod = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!pod) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  decide(eviction, pod);
}

std::vector<ObjectPtr> EvictionPath::budgets_of(const StoredObject& pod) const {
  std::vector<ObjectPtr> found;
  const ResourceCache& budgets = core_.cache.of(core_.registry.get("poddisruptionbudgets.policy"));
  budgets.visit(pod.ns + "/", {}, [&](const ObjectPtr& budget) {
    const Json document = budget->document();
    const Result<api::LabelSelector> selector = api::label_selector_from_json(document.at({"spec", "selector"}));
    if (selector && selector->matches(pod.meta.labels)) found.push_back(budget);
    return true;
  });
  return found;
}

void EvictionPath::decide(const EvictionPtr& eviction, const ObjectPtr& pod) {
  if (const auto held = check_preconditions(*pod, eviction->options); !held) {
    return eviction->exchange->fail(held.error());
  }
  // From here on it is this pod, not another of the same name.
  if (!eviction->options.uid) eviction->options.uid = pod->meta.uid;
  const Json document = pod->document();
  if (bypasses_budgets(document)) return remove_pod(eviction);
  const std::vector<ObjectPtr> budgets = budgets_of(*pod);
  if (budgets.size() > 1) {
    return eviction->exchange->fail(
        make_error(ErrorCode::kInternalError,
                   "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."));
  }
  if (budgets.empty()) return mark_pod(eviction);
  if (!is_ready(document) && unready_may_go(budgets.front()->document())) return mark_pod(eviction);
  spend(eviction, budgets.front());
}

void EvictionPath::spend(const EvictionPtr& eviction, const ObjectPtr& budget) {
  UpdateJob job{.resource = &core_.registry.get("poddisruptionbudgets.policy"),
                .ns = budget->ns,
                .name = budget->name,
                .part = SubresourceId::kStatus,
                .change = [this, eviction](
                              const Json& current) { return spend_allowance(current, eviction->pod, core_.now.wall); },
                .trusted = true,
                .context = eviction->context};
  writer_.update(std::move(job), [this, eviction](StatusResult<Written> result) {
    if (result) return mark_pod(eviction);
    // A budget that went away no longer protects anything.
    if (result.error().code == 404) return mark_pod(eviction);
    eviction->exchange->fail(result.error());
  });
}

void EvictionPath::mark_pod(const EvictionPtr& eviction) {
  UpdateJob job{.resource = eviction->exchange->route.resource,
                .ns = eviction->ns,
                .name = eviction->pod,
                .part = SubresourceId::kStatus,
                .change = [this, eviction](const Json& current) -> StatusResult<Json> {
                  Json pod = current;
                  pod["metadata"]["uid"] = *eviction->options.uid;
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

void EvictionPath::remove_pod(const EvictionPtr& eviction) {
  remover_.remove({eviction->exchange->route.resource, eviction->ns, eviction->pod, eviction->options},
                  [eviction](StatusResult<Removed> result) {
                    if (!result) return eviction->exchange->fail(result.error());
                    eviction->exchange->answer(201, created_status());
                  });
}

}  // namespace spillway::apiserver
