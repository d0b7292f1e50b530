// Jobs: the labels and the selector that keep the pods of one apart from those of another, numbers, policies.
#include "api/object/selector.h"
#include "api/text/names.h"
#include "apiserver/kinds/batch/batch_kinds.h"
#include "apiserver/kinds/batch/job_rules.h"
#include "apiserver/kinds/batch/job_status_rules.h"
#include "apiserver/kinds/batch/job_tables.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <limits>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::string_view kUidLabel = "batch.kubernetes.io/controller-uid";
constexpr std::string_view kNameLabel = "batch.kubernetes.io/job-name";
// Names of these labels before they had a domain.
constexpr std::string_view kOldUidLabel = "controller-uid";
constexpr std::string_view kOldNameLabel = "job-name";

void set_if_absent(Json& object, std::string_view key, Json value) {
  if (!has(object, key)) object[key] = std::move(value);
}

void default_failure_patterns(Json& spec) {
  Json* policy = spec.find("podFailurePolicy");
  Json::Array* rules = policy != nullptr && policy->is_object() ? elements(*policy, "rules") : nullptr;
  if (rules == nullptr) return;
  if (rules->empty()) {
    (*policy)["rules"] = Json();  // as upstream's store keeps it
    return;
  }
  for (Json& rule : *rules) {
    Json::Array* patterns = rule.is_object() ? elements(rule, "onPodConditions") : nullptr;
    if (patterns == nullptr) continue;
    for (Json& pattern : *patterns) {
      if (pattern.is_object()) set_default(pattern, "status", "True");
    }
  }
}

/// The labels of the pods are those of a Job that has none.
void default_labels(Json& object) {
  const Json* labels = object.at({"spec", "template", "metadata", "labels"});
  const Json* own = object.at({"metadata", "labels"});
  if (labels == nullptr || labels->if_object() == nullptr || labels->if_object()->empty()) return;
  if (own != nullptr && own->if_object() != nullptr && !own->if_object()->empty()) return;
  object.make({"metadata", "labels"}) = *labels;
}

void default_job(Json& object) {
  Json& spec = object.make({"spec"});
  if (!spec.is_object()) spec = Json::object();
  default_pod_template(spec.make({"template"}));
  if (!has(spec, "completions") && !has(spec, "parallelism")) spec["completions"] = 1;
  set_if_absent(spec, "parallelism", 1);
  const bool per_index = has(spec, "backoffLimitPerIndex");
  set_if_absent(spec, "backoffLimit", per_index ? std::int64_t{std::numeric_limits<std::int32_t>::max()} : 6);
  set_if_absent(spec, "completionMode", "NonIndexed");
  set_if_absent(spec, "suspend", false);
  set_if_absent(spec, "manualSelector", false);
  set_if_absent(spec, "podReplacementPolicy", has(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
  default_failure_patterns(spec);
  default_labels(object);
}

bool selects_by_hand(const Json& object) {
  return is_true(value_of(object, "spec"), "manualSelector");
}

/// The UID of the Job distinguishes its pods from those of other Jobs.
void generate_selector(Json& object) {
  if (selects_by_hand(object)) return;
  const std::string uid(object.string_at({"metadata", "uid"}));
  const std::string name(object.string_at({"metadata", "name"}));
  Json& labels = object.make({"spec", "template", "metadata", "labels"});
  if (!labels.is_object()) labels = Json::object();
  for (const std::string_view label : {kNameLabel, kOldNameLabel}) set_if_absent(labels, label, name);
  for (const std::string_view label : {kUidLabel, kOldUidLabel}) set_if_absent(labels, label, uid);
  Json& selected = object.make({"spec", "selector", "matchLabels"});
  if (!selected.is_object()) selected = Json::object();
  set_if_absent(selected, kUidLabel, uid);
}

/// Sets the labels that contain the Job's name, once that name is certain to be free.
void name_job(Json& object) {
  if (!selects_by_hand(object)) {
    for (const std::string_view label : {kNameLabel, kOldNameLabel}) {
      object.make({"spec", "template", "metadata", "labels", label}) = object.string_at({"metadata", "name"});
    }
    if (Json* own = object.at({"metadata", "labels"}); own != nullptr && has(*own, kUidLabel)) {
      for (const std::string_view label : {kNameLabel, kOldNameLabel}) {
        if (has(*own, label)) (*own)[label] = object.string_at({"metadata", "name"});
      }
    }
  }
  default_labels(object);
}

void require_label(const Json& labels, std::string_view key, std::string_view value, FieldErrors& errors) {
  const std::string path = api::key_path("spec.template.metadata.labels", key);
  if (!has(labels, key)) return errors.required(path, fmt::format("must be '{}'", value));
  if (text(labels, key) != value) errors.invalid(path, labels, fmt::format("must be '{}'", value));
}

enum class PrefixedLabels { kOptional, kRequired };

void validate_generated_selector(const Json& object, PrefixedLabels prefixed, FieldErrors& errors) {
  const Json& selector = value_of(value_of(object, "spec"), "selector");
  if (selects_by_hand(object) || selector.is_null()) return;
  const std::string uid(object.string_at({"metadata", "uid"}));
  const std::string name(object.string_at({"metadata", "name"}));
  const Json& labels = value_of(value_of(value_of(value_of(object, "spec"), "template"), "metadata"), "labels");
  api::StringMap expected{{std::string(kOldUidLabel), uid}, {std::string(kOldNameLabel), name}};
  require_label(labels, kOldUidLabel, uid, errors);
  require_label(labels, kOldNameLabel, name, errors);
  if (prefixed == PrefixedLabels::kRequired) {
    require_label(labels, kUidLabel, uid, errors);
    require_label(labels, kNameLabel, name, errors);
    expected[std::string(kUidLabel)] = uid;
    expected[std::string(kNameLabel)] = name;
  }
  const auto parsed = api::label_selector_from_json(&selector);
  if (parsed && !parsed->matches(expected)) errors.invalid("spec.selector", selector, "`selector` not auto-generated");
}

/// Pods of an Indexed Job have its name and their index as host name.
void validate_last_hostname(const Json& object, FieldErrors& errors) {
  const Json& spec = value_of(object, "spec");
  const auto completions = integer(spec, "completions");
  if (text(spec, "completionMode") != "Indexed" || !completions || *completions <= 0) return;
  const std::string_view name = object.string_at({"metadata", "name"});
  const std::string host = fmt::format("{}-{}", name, *completions - 1);
  if (!api::dns1123_label_errors(host).empty()) {
    errors.invalid("metadata.name", name, fmt::format("will not able to create pod with invalid DNS label: {}", host));
  }
}

void validate_whole_job(const Json& object, const Json& old, PrefixedLabels prefixed, FieldErrors& errors) {
  validate_generated_selector(object, prefixed, errors);
  validate_job_spec(value_of(object, "spec"), value_of(old, "spec"), errors);
  validate_last_hostname(object, errors);
}

void validate_job(const Json& object, FieldErrors& errors) {
  validate_whole_job(object, Json(), PrefixedLabels::kRequired, errors);
}

void validate_job_update(const Json& object, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return validate_job_status(object, old, errors);
  const Json& labels = value_of(value_of(value_of(value_of(old, "spec"), "template"), "metadata"), "labels");
  const bool had_both = has(labels, kUidLabel) && has(labels, kNameLabel);
  validate_whole_job(object, old, had_both ? PrefixedLabels::kRequired : PrefixedLabels::kOptional, errors);
  // upstream reports the errors of this member twice
  validate_job_spec(value_of(object, "spec"), value_of(old, "spec"), errors);
  validate_job_change(object, old, errors);
}

/// The number of pods of a Job that have succeeded.
std::string count_of_successful(const api::Json& job) {
  const api::Json* count = job.at({"status", "succeeded"});
  return std::to_string(count != nullptr ? count->if_int64().value_or(0) : 0);
}

}  // namespace

Resource job_kind() {
  static constexpr std::array kFields{SelectableField{"status.successful", count_of_successful}};
  const TableDefinition table = job_table();
  static const KindHooks kHooks{.set_defaults = default_job,
                                .prepare_create = generate_selector,
                                .validate_create = validate_job,
                                .name_create = name_job,
                                .validate_update = validate_job_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "batch",
          .version = "v1",
          .plural = "jobs",
          .singular = "job",
          .kind = "Job",
          .verbs = kAllVerbs,
          .storage = below("jobs"),
          .categories = kAllCategory,
          .subresources = kStatusOnly,
          .fields = kFields,
          .status_subresource = true,
          .counts_generation = true,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
