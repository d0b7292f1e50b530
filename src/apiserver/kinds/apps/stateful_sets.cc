// StatefulSets: defaults, validation, and the changes that an update may make.
#include "api/object/selector.h"
#include "api/text/names.h"
#include "apiserver/kinds/apps/apps_kinds.h"
#include "apiserver/kinds/apps/workload_tables.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/pod/rules.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/storage/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 1> kAlwaysRestarted{"Always"};
constexpr std::array<std::string_view, 2> kClaimPolicies{"Retain", "Delete"};
/// The members that an update may change.
constexpr std::array<std::string_view, 7> kChangeable{"replicas",
                                                      "ordinals",
                                                      "template",
                                                      "updateStrategy",
                                                      "revisionHistoryLimit",
                                                      "persistentVolumeClaimRetentionPolicy",
                                                      "minReadySeconds"};

void default_set_claim(Json& claim) {
  if (!claim.is_object()) return;
  claim["kind"] = "PersistentVolumeClaim";
  claim["apiVersion"] = "v1";
  default_claim(claim);
  Json& status = claim.make({"status"});
  if (status.is_object()) set_default(status, "phase", "Pending");
}

void set_unless_given(Json& object, std::string_view key, Json value) {
  if (!has(object, key)) object[key] = std::move(value);
}

Json& object_at(Json& parent, std::string_view key) {
  Json& member = parent.make({key});
  if (!member.is_object()) member = Json::object();
  return member;
}

void default_stateful_set(Json& object) {
  Json& spec = object_at(object, "spec");
  default_pod_template(spec.make({"template"}));
  Json* containers = spec.at({"template", "spec", "containers"});
  if (containers != nullptr && containers->if_array() != nullptr && containers->if_array()->empty()) {
    *containers = Json();  // as upstream's store keeps it
  }
  if (Json::Array* claims = elements(spec, "volumeClaimTemplates"); claims != nullptr) {
    for (Json& claim : *claims) default_set_claim(claim);
  }
  set_default(spec, "podManagementPolicy", "OrderedReady");
  Json& strategy = object_at(spec, "updateStrategy");
  // A strategy of an explicit type gets no rollingUpdate; one that is given gets its partition in either case.
  if (text(strategy, "type").empty()) {
    strategy.make({"type"}) = "RollingUpdate";
    object_at(strategy, "rollingUpdate");
  }
  Json* rolling = strategy.at({"rollingUpdate"});
  const bool has_rolling = rolling != nullptr && rolling->if_object() != nullptr;
  if (has_rolling && text(strategy, "type") == "RollingUpdate") set_unless_given(*rolling, "partition", 0);
  Json& retention = object_at(spec, "persistentVolumeClaimRetentionPolicy");
  for (const std::string_view when : {"whenDeleted", "whenScaled"}) set_default(retention, when, "Retain");
  set_unless_given(spec, "replicas", 1);
  set_unless_given(spec, "revisionHistoryLimit", 10);
}

api::StringMap template_labels(const Json& pod_template) {
  api::StringMap labels;
  const Json* members = pod_template.at({"metadata", "labels"});
  if (members == nullptr || members->if_object() == nullptr) return labels;
  for (const auto& [key, value] : *members->if_object()) labels.emplace(key, value.string_at({}));
  return labels;
}

void validate_update_strategy(const Json& strategy, FieldErrors& errors) {
  const Json& rolling = value_of(strategy, "rollingUpdate");
  if (text(strategy, "type") == "OnDelete") {
    if (rolling.is_null()) return;
    return errors.invalid("spec.updateStrategy.rollingUpdate", rolling,
                          "only allowed for updateStrategy 'RollingUpdate'");
  }
  if (text(strategy, "type") != "RollingUpdate") {
    return errors.invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'");
  }
  require_non_negative(rolling, "partition", "spec.updateStrategy.rollingUpdate.partition", errors);
}

/// The template with a volume for each claim that its pods get: containers mount them by their names.
Json with_claim_volumes(Json pod_template, const Json& spec) {
  for (const Json& claim : elements(spec, "volumeClaimTemplates")) {
    const std::string name(claim.string_at({"metadata", "name"}));
    Json& volumes = pod_template.make({"spec", "volumes"});
    if (!volumes.is_array()) volumes = Json::array();
    const bool given =
        std::ranges::any_of(*volumes.if_array(), [&](const Json& one) { return text(one, "name") == name; });
    if (given || !api::dns1123_label_errors(name).empty()) continue;  // no volume can have such a name
    volumes.if_array()->push_back(
        Json::object({{"name", name}, {"persistentVolumeClaim", Json::object({{"claimName", name}})}}));
  }
  return pod_template;
}

/// `before`: the template that an update replaces; null: the set is new. An unchanged template is not validated again:
/// servers before 1.34 accepted nearly everything in one.
void validate_selected_template(const Json& spec, const Json& before, FieldErrors& errors) {
  const Json& selector = value_of(spec, "selector");
  const Json& pod_template = value_of(spec, "template");
  bool usable = true;
  bool selects_all = false;
  if (selector.is_null()) {
    errors.required("spec.selector");
  } else {
    usable = validate_label_selector(selector, "spec.selector", errors);
    const Json& labels = value_of(selector, "matchLabels");
    selects_all = elements(selector, "matchExpressions").empty() &&
                  (labels.if_object() == nullptr || labels.if_object()->empty());
    if (selects_all) errors.invalid("spec.selector", selector, "empty selector is invalid for statefulset");
  }
  if (!usable) return errors.invalid("spec.selector", selector, "");
  const auto parsed = api::label_selector_from_json(selector.is_null() ? nullptr : &selector);
  if (!selects_all && parsed && !parsed->matches(template_labels(pod_template))) {
    errors.invalid("spec.template.metadata.labels", value_of(value_of(pod_template, "metadata"), "labels"),
                   "`selector` does not match template `labels`");
  }
  validate_template_metadata(pod_template, "spec.template", errors);
  if (pod_template == before) return;
  validate_pod_template(with_claim_volumes(pod_template, spec), "spec.template", errors, before);
}

void validate_set_claims(const Json& spec, FieldErrors& errors) {
  const CheckedField claims(spec.find("volumeClaimTemplates"), "spec.volumeClaimTemplates", errors);
  claims.each([](const CheckedField& claim) { check_claim_spec(claim["spec"]); });
}

void validate_stateful_spec(const Json& spec, const Json& before, FieldErrors& errors) {
  if (const std::string_view policy = text(spec, "podManagementPolicy");
      policy != "OrderedReady" && policy != "Parallel") {
    errors.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'");
  }
  validate_update_strategy(value_of(spec, "updateStrategy"), errors);
  const Json& retention = value_of(spec, "persistentVolumeClaimRetentionPolicy");
  for (const std::string_view when : {"whenDeleted", "whenScaled"}) {
    require_listed(retention, when, fmt::format("spec.persistentVolumeClaimRetentionPolicy.{}", when), kClaimPolicies,
                   errors);
  }
  require_non_negative(spec, "replicas", "spec.replicas", errors);
  require_non_negative(spec, "minReadySeconds", "spec.minReadySeconds", errors);
  require_non_negative(value_of(spec, "ordinals"), "start", "spec.ordinals.start", errors);
  validate_selected_template(spec, value_of(before, "template"), errors);
  const Json& pod_spec = value_of(value_of(spec, "template"), "spec");
  require_listed(pod_spec, "restartPolicy", "spec.template.spec.restartPolicy", kAlwaysRestarted, errors);
  if (has(pod_spec, "activeDeadlineSeconds")) {
    errors.forbidden("spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds is not supported here");
  }
}

void validate_stateful_set(const Json& object, FieldErrors& errors) {
  const Json& spec = value_of(object, "spec");
  validate_stateful_spec(spec, Json(), errors);
  const std::string_view service = text(spec, "serviceName");
  if (!service.empty()) require_valid(api::dns1123_label_errors(service), service, "spec.serviceName", errors);
  validate_set_claims(spec, errors);
}

Json fixed_spec(const Json& object) {
  Json spec = value_of(object, "spec");
  if (!spec.is_object()) return spec;
  for (const std::string_view member : kChangeable) spec.erase({member});
  return spec;
}

std::int64_t replicas_at(const Json& status, std::string_view key) {
  return integer(status, key).value_or(0);
}

void validate_stateful_status(const Json& status, const Json& before, FieldErrors& errors) {
  constexpr std::array<std::string_view, 4> kParts{"readyReplicas", "currentReplicas", "updatedReplicas",
                                                   "availableReplicas"};
  const auto require_count = [&](std::string_view key) {
    require_non_negative(status, key, fmt::format("status.{}", key), errors);
  };
  require_count("replicas");
  for (const std::string_view part : kParts) require_count(part);
  require_count("observedGeneration");
  require_count("collisionCount");
  for (const std::string_view part : kParts) {
    if (replicas_at(status, part) <= replicas_at(status, "replicas")) continue;
    errors.invalid(fmt::format("status.{}", part), replicas_at(status, part), "cannot be greater than status.replicas");
  }
  if (replicas_at(status, "availableReplicas") > replicas_at(status, "readyReplicas")) {
    errors.invalid("status.availableReplicas", replicas_at(status, "availableReplicas"),
                   "cannot be greater than status.readyReplicas");
  }
  const auto collisions = integer(before, "collisionCount");
  if (collisions && replicas_at(status, "collisionCount") < *collisions) {
    errors.invalid("status.collisionCount", replicas_at(status, "collisionCount"), "cannot be decremented");
  }
}

void validate_stateful_update(const Json& object, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) {
    return validate_stateful_status(value_of(object, "status"), value_of(old, "status"), errors);
  }
  validate_stateful_spec(value_of(object, "spec"), value_of(old, "spec"), errors);
  if (fixed_spec(object) != fixed_spec(old)) {
    errors.forbidden("spec",
                     "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                     "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                     "'minReadySeconds' are forbidden");
  }
}

}  // namespace

Resource stateful_set_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"sts"};
  const TableDefinition table = stateful_set_table();
  static const KindHooks kHooks{.set_defaults = default_stateful_set,
                                .validate_create = validate_stateful_set,
                                .validate_update = validate_stateful_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "apps",
          .version = "v1",
          .plural = "statefulsets",
          .singular = "statefulset",
          .kind = "StatefulSet",
          .verbs = kAllVerbs,
          .storage = below("statefulsets"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kScaleAndStatus,
          .names = NameRule::kDnsLabel,
          .status_subresource = true,
          .counts_generation = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
