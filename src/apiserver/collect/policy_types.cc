#include "apiserver/collect/policy_types.h"

#include "api/schema/schema.h"
#include "apiserver/collect/bootstrap.h"
#include "base/fiber.h"
#include "policy/admission_policies/kind_types.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using admission_policies::CheckedKind;
using admission_policies::NamedKind;
using api::Json;
using api::StatusResult;

constexpr std::string_view kStatusManager = "kube-controller-manager";
constexpr Duration kCheckRetry = seconds(10);
constexpr std::uint64_t kKindUnits = 40'000;  // a slice of its own for each type: a pod has some thousand members

std::int64_t checked_generation(const Json& policy) {
  const Json* observed = policy.at({"status", "observedGeneration"});
  return observed == nullptr ? 0 : observed->if_int64().value_or(0);
}

std::int64_t policy_generation(const Json& policy) {
  const Json* generation = policy.at({"metadata", "generation"});
  return generation == nullptr ? 0 : generation->if_int64().value_or(0);
}

std::string kind_api_version(const NamedKind& kind) {
  return kind.group.empty() ? kind.version : kind.group + "/" + kind.version;
}

}  // namespace

PolicyTypes::PolicyTypes(Core& core, Writer& writer)
    : core_(core),
      writer_(writer),
      policies_(core.cache.of(core.registry.get("validatingadmissionpolicies.admissionregistration.k8s.io"))) {}

void PolicyTypes::load() {
  due_.clear();
  for (const auto& [name, policy] : policies_.objects()) due_.insert(policy->name);
}

void PolicyTypes::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache != &policies_) return;
  if (event->object) {
    add(*event->object);
  } else if (event->previous) {
    due_.erase(event->previous->name);
  }
}

void PolicyTypes::add(const StoredObject& policy) {
  const Json document = policy.document();
  if (checked_generation(document) < policy_generation(document)) due_.insert(policy.name);
}

void PolicyTypes::act() {
  if (is_checking_ || due_.empty()) return;
  is_checking_ = true;
  core_.timers.at(core_.now.mono, [this] { check_next(); });
}

/// One policy is read in a turn: after the start, all that are stored are due.
void PolicyTypes::check_next() {
  is_checking_ = false;
  if (!acts() || due_.empty()) return;
  const std::string name = *due_.begin();
  due_.erase(due_.begin());
  if (const ObjectPtr policy = policies_.find(name); policy && !policy->meta.deleting) check(*policy);
  act();
}

void PolicyTypes::check(const StoredObject& policy) {
  const Json document = policy.document();
  if (checked_generation(document) >= policy_generation(document)) return;
  auto check = std::make_shared<Check>(Check{.name = policy.name,
                                             .uid = policy.meta.uid,
                                             .generation = policy_generation(document),
                                             .policy = document,
                                             .kinds = kinds_of(document)});
  if (const Json* params = document.at({"spec", "paramKind"})) {
    check->params = kind_named(params->string_at({"apiVersion"}), params->string_at({"kind"}));
  }
  is_checking_ = true;
  core_.in_slices([check] { check->warnings = warnings_of(*check); }, [this, check] { write(check); });
}

std::vector<PolicyTypes::Kind> PolicyTypes::kinds_of(const Json& policy) const {
  std::vector<webhooks::Rule> rules;
  const Json* list = policy.at({"spec", "matchConstraints", "resourceRules"});
  if (list != nullptr && list->if_array() != nullptr) {
    for (const Json& rule : *list->if_array()) rules.push_back(webhooks::rule_of(rule));
  }
  const auto named =
      admission_policies::kinds_to_check(rules, [this](const webhooks::ResourceName& name) -> std::optional<NamedKind> {
        const Resource* resource = core_.registry.find(name.group, name.version, name.resource);
        if (resource == nullptr) return std::nullopt;
        return NamedKind{std::string(name.group), std::string(name.version), std::string(resource->kind)};
      });
  std::vector<Kind> kinds;
  for (const NamedKind& name : named) {
    if (auto kind = kind_named(kind_api_version(name), name.kind)) kinds.push_back(*std::move(kind));
  }
  return kinds;
}

std::optional<PolicyTypes::Kind> PolicyTypes::kind_named(std::string_view api_version, std::string_view kind) const {
  const Resource* resource = core_.registry.find_kind(api_version, kind);
  if (resource == nullptr) return std::nullopt;
  Kind found{.name = {std::string(resource->group), std::string(resource->version), std::string(kind)}};
  if (resource->custom != nullptr) {
    found.custom = resource->custom->kind->shared_from_this();
    found.schema = &resource->custom->schema;
    return found;
  }
  found.built_in = api::find_kind(api_version, kind);
  return found.built_in == nullptr ? std::nullopt : std::optional(std::move(found));
}

std::optional<cel::Type> PolicyTypes::type_of(const Kind& kind) {
  count_work(kKindUnits);
  if (kind.built_in != nullptr) return admission_policies::object_type(*kind.built_in, kind.name.kind);
  return admission_policies::object_type(*kind.schema, kind.name.kind);
}

std::vector<admission_policies::ExpressionWarning> PolicyTypes::warnings_of(const Check& check) {
  std::vector<CheckedKind> kinds;
  for (const Kind& kind : check.kinds) {
    if (auto type = type_of(kind)) kinds.push_back({kind.name, *std::move(type)});
  }
  std::optional<cel::Type> params;
  if (check.params) params = type_of(*check.params);
  return admission_policies::type_warnings(check.policy, kinds, params);
}

void PolicyTypes::write(const std::shared_ptr<const Check>& check) {
  if (!acts()) {
    is_checking_ = false;
    return;
  }
  UpdateJob job{.resource = &policies_.resource(),
                .name = check->name,
                .part = SubresourceId::kStatus,
                .change = [check](Json current) -> StatusResult<Json> {
                  // A later generation has a check of its own.
                  if (policy_generation(current) != check->generation) return current;
                  current.make({"status", "observedGeneration"}) = Json(check->generation);
                  current.make({"status", "typeChecking"}) = admission_policies::type_checking_status(check->warnings);
                  return current;
                },
                .uid = check->uid,
                .trusted = true,
                .context = {server_user(), std::string(kStatusManager), false}};
  writer_.update(std::move(job),
                 [this, name = check->name](const StatusResult<Written>& result) { on_written(name, result); });
}

void PolicyTypes::on_written(const std::string& name, const StatusResult<Written>& result) {
  is_checking_ = false;
  const bool is_done = result || result.error().code == 404 || result.error().code == 409;
  if (!is_done) {
    core_.timers.at(core_.now.mono + kCheckRetry, [this, name] {
      due_.insert(name);
      run();
    });
  }
  run();
}

}  // namespace spillway::apiserver
