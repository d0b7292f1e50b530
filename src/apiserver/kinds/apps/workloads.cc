// Deployments, ReplicaSets, ReplicationControllers and DaemonSets: a selector, a pod template, a number.
#include "api/object/selector.h"
#include "apiserver/kinds/apps/apps_kinds.h"
#include "apiserver/kinds/apps/workload_tables.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 1> kAlways{"Always"};
constexpr std::array<std::string_view, 2> kDeploymentStrategies{"Recreate", "RollingUpdate"};
constexpr std::array<std::string_view, 2> kDaemonStrategies{"OnDelete", "RollingUpdate"};
constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

api::Json& default_template(api::Json& object) {
  api::Json& spec = object.make({"spec"});
  if (!spec.is_object()) spec = api::Json::object();
  default_pod_template(spec.make({"template"}));
  return spec;
}

void default_if_absent(api::Json& object, std::string_view key, api::Json value) {
  if (!has(object, key)) object[key] = std::move(value);
}

void default_deployment(api::Json& object) {
  api::Json& spec = default_template(object);
  default_if_absent(spec, "replicas", 1);
  default_if_absent(spec, "revisionHistoryLimit", 10);
  default_if_absent(spec, "progressDeadlineSeconds", 600);
  api::Json& strategy = spec.make({"strategy"});
  if (!strategy.is_object()) strategy = api::Json::object();
  set_default(strategy, "type", "RollingUpdate");
  if (text(strategy, "type") == "RollingUpdate") {
    api::Json& update = strategy.make({"rollingUpdate"});
    if (!update.is_object()) update = api::Json::object();
    default_if_absent(update, "maxUnavailable", "25%");
    default_if_absent(update, "maxSurge", "25%");
  }
}

void default_replica_set(api::Json& object) {
  default_if_absent(default_template(object), "replicas", 1);
}

bool is_empty_map(const Json& map) {
  return map.if_object() == nullptr || map.if_object()->empty();
}

/// A missing selector, and missing labels, are copied from the template.
void default_replication_controller(Json& object) {
  Json& spec = object.make({"spec"});
  if (!spec.is_object()) spec = Json::object();
  default_if_absent(spec, "replicas", 1);
  Json* pod_template = spec.find("template");
  if (pod_template == nullptr || !pod_template->is_object()) return;
  default_pod_template(*pod_template);
  const Json labels = value_of(value_of(*pod_template, "metadata"), "labels");
  if (is_empty_map(labels)) return;
  if (is_empty_map(value_of(spec, "selector"))) spec["selector"] = labels;
  Json& own = object.make({"metadata", "labels"});
  if (is_empty_map(own)) own = labels;
}

void default_daemon_set(api::Json& object) {
  api::Json& spec = default_template(object);
  default_if_absent(spec, "revisionHistoryLimit", 10);
  api::Json& strategy = spec.make({"updateStrategy"});
  if (!strategy.is_object()) strategy = api::Json::object();
  set_default(strategy, "type", "RollingUpdate");
  if (text(strategy, "type") == "RollingUpdate") {
    api::Json& update = strategy.make({"rollingUpdate"});
    if (!update.is_object()) update = api::Json::object();
    default_if_absent(update, "maxUnavailable", 1);
    default_if_absent(update, "maxSurge", 0);
  }
}

api::StringMap labels_of(const api::Json& object) {
  api::StringMap labels;
  const api::Json* members = object.at({"metadata", "labels"});
  if (members == nullptr || members->if_object() == nullptr) return labels;
  for (const auto& [key, value] : *members->if_object()) labels.emplace(key, value.string_at({}));
  return labels;
}

/// The template, which has to match the selector. Upstream validates it only if the selector can be used.
void validate_template(const Json& spec, const Json& before, FieldErrors& errors) {
  const Json& selector = value_of(spec, "selector");
  const Json& pod_template = value_of(spec, "template");
  const auto parsed = api::label_selector_from_json(selector.is_null() ? nullptr : &selector);
  if (parsed && !parsed->matches(labels_of(pod_template))) {
    errors.invalid("spec.template.metadata.labels", value_of(value_of(pod_template, "metadata"), "labels"),
                   "`selector` does not match template `labels`");
  }
  validate_pod_template(pod_template, "spec.template", errors, value_of(before, "template"));
  const Json& pod_spec = value_of(pod_template, "spec");
  require_listed(pod_spec, "restartPolicy", "spec.template.spec.restartPolicy", kAlways, errors);
  if (has(pod_spec, "activeDeadlineSeconds")) {
    errors.forbidden("spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds is not supported here");
  }
}

bool selects_nothing_certain(const Json& selector) {
  const Json& labels = value_of(selector, "matchLabels");
  return elements(selector, "matchExpressions").empty() &&
         (labels.if_object() == nullptr || labels.if_object()->empty());
}

/// Validates a Deployment or ReplicaSet: the selector is required, and its errors are reported twice, as upstream does.
void validate_replicated(const Json& spec, const Json& before, FieldErrors& errors) {
  require_non_negative(spec, "replicas", "spec.replicas", errors);
  require_non_negative(spec, "minReadySeconds", "spec.minReadySeconds", errors);
  const Json& selector = value_of(spec, "selector");
  bool usable = true;
  if (selector.is_null()) {
    errors.required("spec.selector");
  } else {
    usable = validate_label_selector(selector, "spec.selector", errors);
    if (selects_nothing_certain(selector)) {
      errors.invalid("spec.selector", selector, "empty selector is invalid for deployment");
    }
  }
  if (!usable) return errors.invalid("spec.selector", selector, "invalid label selector");
  validate_template(spec, before, errors);
}

/// A number, a percentage, or a text that is a number; anything else counts as nothing.
bool is_zero(const Json& value) {
  if (const auto parsed = int_or_percent(value)) return parsed->value == 0 || (parsed->percent && parsed->value < 0);
  const std::string_view written = value.string_at({});
  std::int64_t number = 0;
  const auto [end, ec] = std::from_chars(written.data(), written.data() + written.size(), number);
  return ec != std::errc{} || end != written.data() + written.size() || number == 0;
}

void validate_deployment_strategy(const Json& strategy, FieldErrors& errors) {
  const Json& update = value_of(strategy, "rollingUpdate");
  if (text(strategy, "type") == "Recreate") {
    if (!update.is_object()) return;
    return errors.forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'");
  }
  if (text(strategy, "type") != "RollingUpdate") {
    return errors.not_supported("spec.strategy", strategy, kDeploymentStrategies);
  }
  validate_int_or_percent(update, "maxUnavailable", "spec.strategy.rollingUpdate.maxUnavailable", AboveFull::kRefused,
                          errors);
  validate_int_or_percent(update, "maxSurge", "spec.strategy.rollingUpdate.maxSurge", AboveFull::kAllowed, errors);
  if (is_zero(value_of(update, "maxUnavailable")) && is_zero(value_of(update, "maxSurge"))) {
    errors.invalid("spec.strategy.rollingUpdate.maxUnavailable", value_of(update, "maxUnavailable"),
                   "may not be 0 when `maxSurge` is 0");
  }
}

void validate_deployment(const Json& object, const Json& old, FieldErrors& errors) {
  const Json& spec = value_of(object, "spec");
  validate_replicated(spec, value_of(old, "spec"), errors);
  validate_deployment_strategy(value_of(spec, "strategy"), errors);
  require_non_negative(spec, "revisionHistoryLimit", "spec.revisionHistoryLimit", errors);
  require_non_negative(spec, "progressDeadlineSeconds", "spec.progressDeadlineSeconds", errors);
  const std::optional<std::int64_t> deadline = integer(spec, "progressDeadlineSeconds");
  if (deadline && *deadline <= integer(spec, "minReadySeconds").value_or(0)) {
    errors.invalid("spec.progressDeadlineSeconds", *deadline, "must be greater than minReadySeconds");
  }
}

void validate_replica_set(const Json& object, const Json& old, FieldErrors& errors) {
  validate_replicated(value_of(object, "spec"), value_of(old, "spec"), errors);
}

/// Labels that equal those of the selector, and maybe more.
bool has_labels(const Json& pod_template, const Json& selector) {
  const Json& labels = value_of(value_of(pod_template, "metadata"), "labels");
  return std::ranges::all_of(*selector.if_object(),
                             [&labels](const auto& wanted) { return value_of(labels, wanted.key) == wanted.value; });
}

void validate_replication_template(const Json& pod_template, const Json& selector, const Json& before,
                                   FieldErrors& errors) {
  if (pod_template.is_null()) return errors.required("spec.template");
  if (!is_empty_map(selector) && !has_labels(pod_template, selector)) {
    errors.invalid("spec.template.metadata.labels", value_of(value_of(pod_template, "metadata"), "labels"),
                   "`selector` does not match template `labels`");
  }
  validate_pod_template(pod_template, "spec.template", errors, before);
  const Json& pod_spec = value_of(pod_template, "spec");
  require_listed(pod_spec, "restartPolicy", "spec.template.spec.restartPolicy", kAlways, errors);
  if (has(pod_spec, "activeDeadlineSeconds")) {
    errors.forbidden("spec.template.spec.activeDeadlineSeconds",
                     "activeDeadlineSeconds in ReplicationController is not Supported");
  }
}

void validate_replication_controller(const Json& object, const Json& old, FieldErrors& errors) {
  const Json& spec = value_of(object, "spec");
  require_non_negative(spec, "minReadySeconds", "spec.minReadySeconds", errors);
  if (is_empty_map(value_of(spec, "selector"))) errors.required("spec.selector");
  require_non_negative(spec, "replicas", "spec.replicas", errors);
  validate_replication_template(value_of(spec, "template"), value_of(spec, "selector"),
                                value_of(value_of(old, "spec"), "template"), errors);
}

void validate_daemon_strategy(const Json& strategy, FieldErrors& errors) {
  if (text(strategy, "type") == "OnDelete") return;
  if (text(strategy, "type") != "RollingUpdate") {
    return errors.not_supported("spec.updateStrategy", strategy, kDaemonStrategies);
  }
  const Json& update = value_of(strategy, "rollingUpdate");
  validate_int_or_percent(update, "maxUnavailable", "spec.updateStrategy.rollingUpdate.maxUnavailable",
                          AboveFull::kRefused, errors);
  validate_int_or_percent(update, "maxSurge", "spec.updateStrategy.rollingUpdate.maxSurge", AboveFull::kRefused,
                          errors);
  const bool surges = !is_zero(value_of(update, "maxSurge"));
  const bool lacks = !is_zero(value_of(update, "maxUnavailable"));
  if (surges && lacks) {
    errors.invalid("spec.updateStrategy.rollingUpdate.maxSurge", value_of(update, "maxSurge"),
                   "may not be set when maxUnavailable is non-zero");
  } else if (!surges && !lacks) {
    errors.required("spec.updateStrategy.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0");
  }
}

void validate_daemon_set(const Json& object, const Json& old, FieldErrors& errors) {
  const Json& spec = value_of(object, "spec");
  const Json& selector = value_of(spec, "selector");
  if (!selector.is_null()) {
    validate_label_selector(selector, "spec.selector", errors);
    if (selects_nothing_certain(selector)) {
      errors.invalid("spec.selector", selector, "empty selector is invalid for daemonset");
    }
  }
  validate_template(spec, value_of(old, "spec"), errors);
  require_non_negative(spec, "minReadySeconds", "spec.minReadySeconds", errors);
  validate_daemon_strategy(value_of(spec, "updateStrategy"), errors);
  require_non_negative(spec, "revisionHistoryLimit", "spec.revisionHistoryLimit", errors);
}

// Status.

void require_counts(const Json& status, std::initializer_list<std::string_view> counts, FieldErrors& errors) {
  for (const std::string_view count : counts)
    require_non_negative(status, count, fmt::format("status.{}", count), errors);
}

std::int64_t count_of(const Json& status, std::string_view key) {
  return integer(status, key).value_or(0);
}

/// Checks that no part exceeds `replicas`, nor available replicas the ready ones.
void require_parts_of_replicas(const Json& status, std::initializer_list<std::string_view> parts, FieldErrors& errors) {
  for (const std::string_view part : parts) {
    if (count_of(status, part) > count_of(status, "replicas")) {
      errors.invalid(fmt::format("status.{}", part), count_of(status, part), "cannot be greater than status.replicas");
    }
  }
  if (count_of(status, "availableReplicas") > count_of(status, "readyReplicas")) {
    errors.invalid("status.availableReplicas", count_of(status, "availableReplicas"),
                   "cannot be greater than readyReplicas");
  }
}

void require_growing_collisions(const Json& status, const Json& before, FieldErrors& errors) {
  const auto old_count = integer(before, "collisionCount");
  if (old_count && count_of(status, "collisionCount") < *old_count) {
    errors.invalid("status.collisionCount", count_of(status, "collisionCount"), "cannot be decremented");
  }
}

void validate_deployment_status(const Json& status, const Json& before, FieldErrors& errors) {
  require_counts(status,
                 {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
                  "unavailableReplicas", "collisionCount"},
                 errors);
  require_parts_of_replicas(status, {"updatedReplicas", "readyReplicas", "availableReplicas"}, errors);
  require_growing_collisions(status, before, errors);
}

void validate_replica_set_status(const Json& status, const Json&, FieldErrors& errors) {
  require_counts(
      status, {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"}, errors);
  require_parts_of_replicas(status, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}, errors);
}

void validate_daemon_set_status(const Json& status, const Json& before, FieldErrors& errors) {
  require_counts(
      status,
      {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
       "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"},
      errors);
  require_growing_collisions(status, before, errors);
}

// Updates.

void require_same_selector(const Json& object, const Json& old, FieldErrors& errors) {
  const Json& selector = value_of(value_of(object, "spec"), "selector");
  if (selector != value_of(value_of(old, "spec"), "selector")) errors.invalid("spec.selector", selector, kImmutable);
}

/// `old`: the object that an update replaces; null: the object is new.
using ValidateObject = void (*)(const Json& object, const Json& old, FieldErrors& errors);
using ValidateStatus = void (*)(const Json& status, const Json& before, FieldErrors& errors);

template <ValidateObject validate>
void validate_new(const Json& object, FieldErrors& errors) {
  validate(object, Json(), errors);
}

template <ValidateObject validate, ValidateStatus validate_status>
void validate_update_of(const Json& object, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) {
    return validate_status(value_of(object, "status"), value_of(old, "status"), errors);
  }
  validate(object, old, errors);
  require_same_selector(object, old, errors);
}

/// The selector may change. Upstream validates the rest twice.
void validate_replication_controller_update(const Json& object, const Json& old, Endpoint endpoint,
                                            FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) {
    return validate_replica_set_status(value_of(object, "status"), value_of(old, "status"), errors);
  }
  add_repeatedly(2, errors, [&](FieldErrors& found) { validate_replication_controller(object, old, found); });
}

void validate_revision(const Json& object, FieldErrors& errors) {
  require_non_negative(object, "revision", "revision", errors);
}

void validate_new_revision(const Json& object, FieldErrors& errors) {
  validate_revision(object, errors);
  if (!value_of(object, "data").is_object()) errors.required("data", "data is mandatory");
}

/// The data of a revision are immutable. One without data, as earlier versions accepted it, can still be labelled and
/// deleted.
void validate_revision_update(const Json& object, const Json& old, Endpoint, FieldErrors& errors) {
  validate_revision(object, errors);
  if (value_of(object, "data") != value_of(old, "data")) errors.invalid("data", value_of(object, "data"), kImmutable);
}

void mark_template_generation(api::Json& object) {
  object.make({"metadata", "annotations", kTemplateGeneration}) = "1";
}

/// Counts the templates: one more with each new template. No client may write the count.
void count_template(api::Json& object, const api::Json& old, Endpoint endpoint) {
  if (endpoint != Endpoint::kMain) return;
  const std::string before(old.string_at({"metadata", "annotations", kTemplateGeneration}));
  std::int64_t count = 1;
  std::from_chars(before.data(), before.data() + before.size(), count);
  const bool same = value_of(value_of(object, "spec"), "template") == value_of(value_of(old, "spec"), "template");
  if (!same && count < std::numeric_limits<std::int64_t>::max()) ++count;
  object.make({"metadata", "annotations", kTemplateGeneration}) = std::to_string(count);
}

std::string count_of_replicas(const api::Json& controller) {
  const api::Json* count = controller.at({"status", "replicas"});
  return std::to_string(count != nullptr ? count->if_int64().value_or(0) : 0);
}

}  // namespace

Resource controller_revision_kind() {
  const TableDefinition table = controller_revision_table();
  static const KindHooks kHooks{.validate_create = validate_new_revision,
                                .validate_update = validate_revision_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "apps",
          .version = "v1",
          .plural = "controllerrevisions",
          .singular = "controllerrevision",
          .kind = "ControllerRevision",
          .verbs = kAllVerbs,
          .storage = below("controllerrevisions"),
          .hooks = &kHooks};
}

Resource deployment_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"deploy"};
  const TableDefinition table = deployment_table();
  static const KindHooks kHooks{.set_defaults = default_deployment,
                                .validate_create = validate_new<validate_deployment>,
                                .validate_update = validate_update_of<validate_deployment, validate_deployment_status>,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "apps",
          .version = "v1",
          .plural = "deployments",
          .singular = "deployment",
          .kind = "Deployment",
          .verbs = kAllVerbs,
          .storage = below("deployments"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kScaleAndStatus,
          .status_subresource = true,
          .counts_generation = true,
          .counts_annotations = true,
          .status_keeps_labels = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

Resource replica_set_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"rs"};
  const TableDefinition table = replica_set_table();
  static const KindHooks kHooks{
      .set_defaults = default_replica_set,
      .validate_create = validate_new<validate_replica_set>,
      .validate_update = validate_update_of<validate_replica_set, validate_replica_set_status>,
      .columns = table.columns,
      .table_row = table.row};
  return {.group = "apps",
          .version = "v1",
          .plural = "replicasets",
          .singular = "replicaset",
          .kind = "ReplicaSet",
          .verbs = kAllVerbs,
          .storage = below("replicasets"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kScaleAndStatus,
          .status_subresource = true,
          .counts_generation = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

Resource replication_controller_kind() {
  static constexpr std::array kFields{SelectableField{"status.replicas", count_of_replicas}};
  static constexpr std::array<std::string_view, 1> kShortNames{"rc"};
  const TableDefinition table = replication_controller_table();
  static const KindHooks kHooks{.set_defaults = default_replication_controller,
                                .validate_create = validate_new<validate_replication_controller>,
                                .validate_update = validate_replication_controller_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "replicationcontrollers",
          .singular = "replicationcontroller",
          .kind = "ReplicationController",
          .verbs = kAllVerbs,
          .storage = below("controllers"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kScaleAndStatus,
          .fields = kFields,
          .status_subresource = true,
          .counts_generation = true,
          .orphans_by_default = true,
          .hooks = &kHooks};
}

Resource daemon_set_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"ds"};
  const TableDefinition table = daemon_set_table();
  static const KindHooks kHooks{.set_defaults = default_daemon_set,
                                .prepare_create = mark_template_generation,
                                .validate_create = validate_new<validate_daemon_set>,
                                .prepare_update = count_template,
                                .validate_update = validate_update_of<validate_daemon_set, validate_daemon_set_status>,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "apps",
          .version = "v1",
          .plural = "daemonsets",
          .singular = "daemonset",
          .kind = "DaemonSet",
          .verbs = kAllVerbs,
          .storage = below("daemonsets"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
