// Nodes: taints, ranges of pod addresses, amounts; members that can be set only once.
#include "api/object/taint.h"
#include "api/text/ip_address.h"
#include "api/text/names.h"
#include "api/text/quantity.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/core/core_tables.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/fields/resource_names.h"
#include "apiserver/kinds/row_parts.h"
#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kEffects{api::kNoExecute, api::kNoSchedule, api::kPreferNoSchedule};
constexpr std::string_view kTaintsAnnotation = "scheduler.alpha.kubernetes.io/taints";
constexpr std::string_view kAvoidPodsAnnotation = "scheduler.alpha.kubernetes.io/preferAvoidPods";

void default_node(api::Json& node) {
  api::Json& spec = node.make({"spec"});
  if (!spec.is_object()) spec = api::Json::object();
  api::Json& status = node.make({"status"});
  if (!status.is_object()) status = api::Json::object();
  if (has(status, "capacity") && (!has(status, "allocatable") || status["allocatable"].if_object()->empty())) {
    status["allocatable"] = api::Json(value_of(status, "capacity"));  // a copy: the new member moves the others
  }
  const std::string_view range = text(spec, "podCIDR");
  const api::Json::Array& ranges = elements(std::as_const(spec), "podCIDRs");
  if (!range.empty() && ranges.empty()) {
    spec["podCIDRs"] = api::Json::array({range});
  } else if (!range.empty()) {
    elements(spec, "podCIDRs")->front() = api::Json(range);
  } else if (range.empty() && !ranges.empty()) {
    spec["podCIDR"] = api::Json(ranges.front());
  }
}

/// The taint keeps pods from a node until it has reported itself ready.
void add_not_ready_taint(api::Json& node) {
  api::Json& taints = node.make({"spec", "taints"});
  if (!taints.is_array()) taints = api::Json::array();
  for (const api::Json& taint : *taints.if_array()) {
    if (text(taint, "key") == api::kTaintNodeNotReady && text(taint, "effect") == api::kNoSchedule) return;
  }
  taints.if_array()->push_back(api::Json::object({{"key", api::kTaintNodeNotReady}, {"effect", api::kNoSchedule}}));
}

// The path of taints is upstream's.
void validate_taints(const api::Json::Array& taints, std::string_view field, api::FieldErrors& errors) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (std::size_t i = 0; i < taints.size() && !errors.full(); ++i) {
    const std::string path = api::index_path(field, i);
    const std::string_view key = text(taints[i], "key");
    require_valid(api::qualified_name_errors(key), value_of(taints[i], "key"), path + ".key", errors);
    const std::vector<std::string> problems = api::label_value_errors(text(taints[i], "value"));
    if (!problems.empty()) {
      errors.invalid(path + ".value", value_of(taints[i], "value"), api::join_problems(problems));
    }
    if (text(taints[i], "effect").empty()) {
      errors.required(path + ".effect");
    } else {
      require_one_of(taints[i], "effect", path + ".effect", kEffects, errors);
    }
    if (!seen.emplace(key, text(taints[i], "effect")).second) errors.duplicate(path, taints[i]);
  }
}

/// Unschedulable from before it was a taint.
void validate_annotated_taints(std::string_view annotation, api::FieldErrors& errors) {
  const auto taints = api::parse_json(annotation);
  if (!taints || taints->if_array() == nullptr) {
    return errors.invalid("metadata.annotations", kTaintsAnnotation, "must be a list of taints");
  }
  validate_taints(*taints->if_array(), fmt::format("metadata.annotations.{}", kTaintsAnnotation), errors);
}

void validate_annotated_avoidance(std::string_view annotation, api::FieldErrors& errors) {
  const auto avoidance = api::parse_json(annotation);
  if (!avoidance || !avoidance->is_object()) {
    return errors.invalid("metadata.annotations.AvoidPods", kAvoidPodsAnnotation, "must be an object");
  }
  const api::Json::Array& entries = elements(*avoidance, "preferAvoidPods");
  for (std::size_t i = 0; i < entries.size() && !errors.full(); ++i) {
    const std::string path =
        api::index_path(fmt::format("metadata.annotations.{}", kAvoidPodsAnnotation), i) + ".PodSignature";
    const api::Json& controller = value_of(value_of(entries[i], "podSignature"), "podController");
    if (!controller.is_object()) {
      errors.required(path);
    } else if (!is_true(controller, "controller")) {
      errors.invalid(path + ".PodController.Controller", false, "must point to a controller");
    }
  }
}

void validate_node_annotations(const api::Json& node, api::FieldErrors& errors) {
  const api::Json& annotations = value_of(value_of(node, "metadata"), "annotations");
  if (const std::string_view taints = text(annotations, kTaintsAnnotation); !taints.empty()) {
    validate_annotated_taints(taints, errors);
  }
  if (const std::string_view avoidance = text(annotations, kAvoidPodsAnnotation); !avoidance.empty()) {
    validate_annotated_avoidance(avoidance, errors);
  }
}

/// `before`: the ranges that an update replaces, which may stay in the form in which they were written.
void validate_pod_ranges(const api::Json& spec, const api::Json::Array& before, api::FieldErrors& errors) {
  constexpr std::string_view kPath = "spec.podCIDRs";
  constexpr std::string_view kOnePerFamily = "may specify no more than one CIDR for each IP family";
  const api::Json::Array& ranges = elements(spec, "podCIDRs");
  std::set<bool> families;
  for (std::size_t i = 0; i < ranges.size() && !errors.full(); ++i) {
    const std::string_view range = ranges[i].string_at({});
    const std::string path = api::index_path(kPath, i);
    const bool stays = std::ranges::find(before, ranges[i]) != before.end();
    require_valid(stays ? kept_ip_range_errors(range) : ip_range_errors(range), ranges[i], path, errors);
    if (const auto parsed = api::parse_ip_range(range)) families.insert(parsed->first.v4);
  }
  if (ranges.size() > 1 && families.size() < 2) errors.invalid(kPath, value_of(spec, "podCIDRs"), kOnePerFamily);
  if (ranges.size() > 2) errors.invalid(kPath, value_of(spec, "podCIDRs"), kOnePerFamily);
}

void validate_amounts(const api::Json& status, std::string_view list, api::FieldErrors& errors) {
  const api::Json& amounts = value_of(status, list);
  if (amounts.if_object() == nullptr) return;
  for (const auto& [name, value] : *amounts.if_object()) {
    if (errors.full()) return;
    const auto amount = api::parse_quantity(value.string_at({}));
    if (!amount) continue;
    const std::string path = fmt::format("status.{}.{}", list, name);
    if (amount->sign() < 0) errors.invalid(path, value, "must be greater than or equal to 0");
    if (is_counted_whole(name) && amount->rounded_up(0) != *amount) errors.invalid(path, value, "must be an integer");
  }
}

void validate_node_amounts(const api::Json& node, api::FieldErrors& errors) {
  validate_amounts(value_of(node, "status"), "capacity", errors);
  validate_amounts(value_of(node, "status"), "allocatable", errors);
}

bool is_letter_or_digit(char c) {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
}

bool is_feature_name(std::string_view name) {
  while (true) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || part.front() < 'A' || part.front() > 'Z' || !std::ranges::all_of(part, is_letter_or_digit)) {
      return false;
    }
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

void validate_declared_features(const api::Json& status, api::FieldErrors& errors) {
  const api::Json::Array& features = elements(status, "declaredFeatures");
  for (std::size_t i = 0; i < features.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("status.declaredFeatures", i);
    const std::string_view name = features[i].string_at({});
    if (!is_feature_name(name)) {
      errors.invalid(path, features[i],
                     "must be UpperCamelCase words of ASCII letters and digits, joined by '/' (e.g. 'InPlaceResize')");
    }
    if (i == 0) continue;
    const std::string_view last = features[i - 1].string_at({});
    if (name == last) errors.duplicate(path, features[i]);
    if (name < last) errors.invalid(path, features[i], "list must be sorted alphabetically");
  }
}

void validate_whole_node(const api::Json& node, const api::Json& old, api::FieldErrors& errors) {
  validate_node_annotations(node, errors);
  validate_taints(elements(value_of(node, "spec"), "taints"), "metadata.taints", errors);
  validate_node_amounts(node, errors);
  validate_pod_ranges(value_of(node, "spec"), elements(value_of(old, "spec"), "podCIDRs"), errors);
}

void validate_node(const api::Json& node, api::FieldErrors& errors) {
  validate_whole_node(node, api::Json(), errors);
  validate_declared_features(value_of(node, "status"), errors);
}

/// Ranges and the provider's name are set once.
void validate_set_once(const api::Json& spec, const api::Json& before, api::FieldErrors& errors) {
  const api::Json::Array& old_ranges = elements(before, "podCIDRs");
  const api::Json::Array& ranges = elements(spec, "podCIDRs");
  constexpr std::string_view kFixedRange = "node updates may not change podCIDR except from \"\" to valid";
  if (!old_ranges.empty() && old_ranges.size() != ranges.size()) errors.forbidden("spec.podCIDRs", kFixedRange);
  for (std::size_t i = 0; old_ranges.size() == ranges.size() && i < ranges.size(); ++i) {
    if (ranges[i] != old_ranges[i]) errors.forbidden("spec.podCIDRs", kFixedRange);
  }
  if (!text(before, "providerID").empty() && text(before, "providerID") != text(spec, "providerID")) {
    errors.forbidden("spec.providerID", "node updates may not change providerID except from \"\" to valid");
  }
  if (text(spec, "externalID") != text(before, "externalID")) errors.forbidden("spec.externalID", "may not be updated");
}

void validate_node_addresses(const api::Json& status, api::FieldErrors& errors) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  const api::Json::Array& addresses = elements(status, "addresses");
  for (std::size_t i = 0; i < addresses.size() && !errors.full(); ++i) {
    if (seen.emplace(text(addresses[i], "type"), text(addresses[i], "address")).second) continue;
    errors.duplicate(api::index_path("status.addresses", i), addresses[i]);
  }
}

/// Upstream first validates everything that a new node needs, and then again together with what may not change.
void validate_node_update(const api::Json& node, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors) {
  if (endpoint == Endpoint::kMain) validate_whole_node(node, old, errors);
  validate_declared_features(value_of(node, "status"), errors);
  validate_node_annotations(node, errors);
  validate_node_amounts(node, errors);
  validate_node_addresses(value_of(node, "status"), errors);
  validate_set_once(value_of(node, "spec"), value_of(old, "spec"), errors);
  validate_taints(elements(value_of(node, "spec"), "taints"), "metadata.taints", errors);
}

/// Removes configuration by the API server, which Kubernetes gave up.
void drop_configuration(api::Json& node) {
  node.erase({"spec", "configSource"});
  node.erase({"status", "config"});
}

void keep_configuration(api::Json& node, const api::Json& old, Endpoint) {
  if (!has(value_of(old, "spec"), "configSource")) node.erase({"spec", "configSource"});
  if (!has(value_of(old, "status"), "config")) node.erase({"status", "config"});
}

void begin_node(api::Json& node) {
  add_not_ready_taint(node);
  drop_configuration(node);
}

std::string is_unschedulable(const api::Json& node) {
  return false_unless_set(node, {"spec", "unschedulable"});
}

}  // namespace

Resource node_kind() {
  static constexpr std::array kFields{SelectableField{"spec.unschedulable", is_unschedulable}};
  static constexpr std::array<std::string_view, 1> kShortNames{"no"};
  static constexpr std::array kSubresources{
      Subresource{SubresourceId::kProxy, "proxy", VerbSet{Verb::kGet}, "", "v1", "NodeProxyOptions"},
      kStatusSubresource};
  const TableDefinition table = node_table();
  static const KindHooks kHooks{.set_defaults = default_node,
                                .prepare_create = begin_node,
                                .validate_create = validate_node,
                                .prepare_update = keep_configuration,
                                .validate_update = validate_node_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "nodes",
          .singular = "node",
          .kind = "Node",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("minions"),
          .short_names = kShortNames,
          .subresources = kSubresources,
          .fields = kFields,
          .status_subresource = true,
          .keeps_status_on_create = true,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
