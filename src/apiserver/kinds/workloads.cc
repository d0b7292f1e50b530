// Deployments, ReplicaSets and DaemonSets: a selector, a pod template, a number.
#include "api/object/selector.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/tables.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 1> kAlways{"Always"};
constexpr std::array<std::string_view, 2> kDeploymentStrategies{"Recreate", "RollingUpdate"};
constexpr std::array<std::string_view, 2> kDaemonStrategies{"OnDelete", "RollingUpdate"};
constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

api::Json& default_template(api::Json& object) {
  api::Json& spec = object.make({"spec"});
  if (!spec.is_object()) spec = api::Json::object();
  api::Json& pod_spec = spec.make({"template", "spec"});
  if (!pod_spec.is_object()) pod_spec = api::Json::object();
  default_pod_spec(pod_spec);
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

enum class BadSelector { kReported, kSilent };

/// selector and template of any workload: the selector must be usable and match the template's labels.
void validate_workload(const api::Json& object, BadSelector bad_selector, api::FieldErrors& errors) {
  const api::Json& spec = value_of(object, "spec");
  const api::Json& selector = value_of(spec, "selector");
  const api::Json& pod_template = value_of(spec, "template");
  bool usable = true;
  if (selector.is_null()) {
    errors.required("spec.selector");
  } else {
    usable = validate_label_selector(selector, "spec.selector", errors);
    if (usable && elements(selector, "matchExpressions").empty() &&
        (!has(selector, "matchLabels") || value_of(selector, "matchLabels").if_object()->empty())) {
      errors.invalid("spec.selector", selector, "empty selector is invalid for workloads");
    }
    if (!usable && bad_selector == BadSelector::kReported) {
      errors.invalid("spec.selector", selector, "invalid label selector");
    }
  }
  if (usable) {
    const auto parsed = api::label_selector_from_json(selector.is_null() ? nullptr : &selector);
    if (parsed && !parsed->matches(labels_of(pod_template))) {
      errors.invalid("spec.template.metadata.labels", value_of(value_of(pod_template, "metadata"), "labels"),
                     "`selector` does not match template `labels`");
    }
  }
  const api::Json& pod_spec = value_of(pod_template, "spec");
  validate_pod_template(pod_template, "spec.template", errors);
  require_one_of(pod_spec, "restartPolicy", "spec.template.spec.restartPolicy", kAlways, errors);
  require_non_negative(spec, "replicas", "spec.replicas", errors);
  require_non_negative(spec, "minReadySeconds", "spec.minReadySeconds", errors);
  require_non_negative(spec, "revisionHistoryLimit", "spec.revisionHistoryLimit", errors);
}

bool is_zero(const api::Json& value) {
  const std::optional<IntOrPercent> parsed = int_or_percent(value);
  return parsed && parsed->value == 0;
}

void validate_deployment(const api::Json& object, api::FieldErrors& errors) {
  validate_workload(object, BadSelector::kReported, errors);
  const api::Json& spec = value_of(object, "spec");
  const api::Json& strategy = value_of(spec, "strategy");
  require_one_of(strategy, "type", "spec.strategy.type", kDeploymentStrategies, errors);
  const api::Json& update = value_of(strategy, "rollingUpdate");
  if (text(strategy, "type") == "Recreate" && update.is_object()) {
    errors.forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'");
  } else if (update.is_object()) {
    validate_int_or_percent(update, "maxUnavailable", "spec.strategy.rollingUpdate.maxUnavailable", AboveFull::kRefused,
                            errors);
    validate_int_or_percent(update, "maxSurge", "spec.strategy.rollingUpdate.maxSurge", AboveFull::kAllowed, errors);
    if (is_zero(value_of(update, "maxUnavailable")) && is_zero(value_of(update, "maxSurge"))) {
      errors.invalid("spec.strategy.rollingUpdate.maxUnavailable", value_of(update, "maxUnavailable"),
                     "may not be 0 when `maxSurge` is 0");
    }
  }
  require_non_negative(spec, "progressDeadlineSeconds", "spec.progressDeadlineSeconds", errors);
}

void validate_replica_set(const api::Json& object, api::FieldErrors& errors) {
  validate_workload(object, BadSelector::kReported, errors);
}

void validate_daemon_set(const api::Json& object, api::FieldErrors& errors) {
  validate_workload(object, BadSelector::kSilent, errors);
  const api::Json& strategy = value_of(value_of(object, "spec"), "updateStrategy");
  require_one_of(strategy, "type", "spec.updateStrategy.type", kDaemonStrategies, errors);
  const api::Json& update = value_of(strategy, "rollingUpdate");
  if (!update.is_object()) return;
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

void require_same_selector(const api::Json& object, const api::Json& old, api::FieldErrors& errors) {
  const api::Json& selector = value_of(value_of(object, "spec"), "selector");
  if (!(selector == value_of(value_of(old, "spec"), "selector"))) {
    errors.invalid("spec.selector", selector, kImmutable);
  }
}

template <void (*validate)(const api::Json&, api::FieldErrors&)>
void validate_update_of(const api::Json& object, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors) {
  if (endpoint != Endpoint::kMain) return;
  validate(object, errors);
  require_same_selector(object, old, errors);
}

void mark_template_generation(api::Json& object) {
  object.make({"metadata", "annotations", kTemplateGeneration}) = "1";
}

/// One more with each new template; nobody else writes it.
void count_template(api::Json& object, const api::Json& old, Endpoint endpoint) {
  if (endpoint != Endpoint::kMain) return;
  const std::string before(old.string_at({"metadata", "annotations", kTemplateGeneration}));
  std::int64_t count = 1;
  std::from_chars(before.data(), before.data() + before.size(), count);
  const bool same = value_of(value_of(object, "spec"), "template") == value_of(value_of(old, "spec"), "template");
  if (!same && count < std::numeric_limits<std::int64_t>::max()) ++count;
  object.make({"metadata", "annotations", kTemplateGeneration}) = std::to_string(count);
}

}  // namespace

KindHooks deployment_hooks() {
  const TableDefinition table = deployment_table();
  return {.set_defaults = default_deployment,
          .validate_create = validate_deployment,
          .validate_update = validate_update_of<validate_deployment>,
          .columns = table.columns,
          .table_row = table.row};
}

KindHooks replica_set_hooks() {
  const TableDefinition table = replica_set_table();
  return {.set_defaults = default_replica_set,
          .validate_create = validate_replica_set,
          .validate_update = validate_update_of<validate_replica_set>,
          .columns = table.columns,
          .table_row = table.row};
}

KindHooks daemon_set_hooks() {
  const TableDefinition table = daemon_set_table();
  return {.set_defaults = default_daemon_set,
          .prepare_create = mark_template_generation,
          .validate_create = validate_daemon_set,
          .prepare_update = count_template,
          .validate_update = validate_update_of<validate_daemon_set>,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
