// Nodes and what belongs to one: CSINode, its Lease, the runtime classes it offers.
#include "api/object/taint.h"
#include "api/text/names.h"
#include "api/text/quantity.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/tables.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kEffects{api::kNoExecute, api::kNoSchedule, api::kPreferNoSchedule};

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

/// Nothing is scheduled to a node before it has reported itself ready.
void add_not_ready_taint(api::Json& node) {
  api::Json& taints = node.make({"spec", "taints"});
  if (!taints.is_array()) taints = api::Json::array();
  for (const api::Json& taint : *taints.if_array()) {
    if (text(taint, "key") == api::kTaintNodeNotReady && text(taint, "effect") == api::kNoSchedule) return;
  }
  taints.if_array()->push_back(api::Json::object({{"key", api::kTaintNodeNotReady}, {"effect", api::kNoSchedule}}));
}

// The paths below metadata are upstream's.
void validate_taints(const api::Json& spec, api::FieldErrors& errors) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  const api::Json::Array& taints = elements(spec, "taints");
  for (std::size_t i = 0; i < taints.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("metadata.taints", i);
    const std::string_view key = text(taints[i], "key");
    if (const std::vector<std::string> problems = api::qualified_name_errors(key); !problems.empty()) {
      errors.invalid(path + ".key", value_of(taints[i], "key"), api::join_problems(problems));
    }
    require_valid(api::label_value_errors(text(taints[i], "value")), value_of(taints[i], "value"), path + ".value",
                  errors);
    if (text(taints[i], "effect").empty()) {
      errors.required(path + ".effect");
    } else {
      require_one_of(taints[i], "effect", path + ".effect", kEffects, errors);
    }
    if (!seen.emplace(key, text(taints[i], "effect")).second) errors.duplicate(path, taints[i]);
  }
}

bool is_address_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string address(text.substr(0, slash));
  const std::string_view prefix = text.substr(slash + 1);
  int bits = 0;
  const auto [end, ec] = std::from_chars(prefix.data(), prefix.data() + prefix.size(), bits);
  if (ec != std::errc{} || end != prefix.data() + prefix.size() || bits < 0) return false;
  std::array<unsigned char, sizeof(in6_addr)> buffer{};
  if (inet_pton(AF_INET, address.c_str(), buffer.data()) == 1) return bits <= 32;
  return inet_pton(AF_INET6, address.c_str(), buffer.data()) == 1 && bits <= 128;
}

void validate_pod_ranges(const api::Json& spec, api::FieldErrors& errors) {
  const api::Json::Array& ranges = elements(spec, "podCIDRs");
  bool v4 = false;
  bool v6 = false;
  for (std::size_t i = 0; i < ranges.size() && !errors.full(); ++i) {
    const std::string_view range = ranges[i].string_at({});
    if (!is_address_range(range)) {
      errors.invalid(api::index_path("spec.podCIDRs", i), ranges[i], "must be a valid CIDR value");
      continue;
    }
    (range.find(':') == std::string_view::npos ? v4 : v6) = true;
  }
  if (ranges.size() > 2 || (ranges.size() == 2 && errors.empty() && !(v4 && v6))) {
    errors.invalid("spec.podCIDRs", value_of(spec, "podCIDRs"), "may specify no more than one CIDR for each IP family");
  }
}

void validate_amounts(const api::Json& status, std::string_view list, api::FieldErrors& errors) {
  const api::Json& amounts = value_of(status, list);
  if (amounts.if_object() == nullptr) return;
  for (const auto& [name, value] : *amounts.if_object()) {
    if (errors.full()) return;
    const auto amount = api::parse_quantity(value.string_at({}));
    if (amount && amount->sign() < 0) {
      errors.invalid(fmt::format("status.{}.{}", list, name), value, "must be greater than or equal to 0");
    }
  }
}

void validate_node(const api::Json& node, api::FieldErrors& errors) {
  validate_taints(value_of(node, "spec"), errors);
  validate_pod_ranges(value_of(node, "spec"), errors);
  validate_amounts(value_of(node, "status"), "capacity", errors);
  validate_amounts(value_of(node, "status"), "allocatable", errors);
}

void validate_node_status(const api::Json& node, api::FieldErrors& errors) {
  validate_amounts(value_of(node, "status"), "capacity", errors);
  validate_amounts(value_of(node, "status"), "allocatable", errors);
  std::set<std::string_view> types;
  const api::Json::Array& conditions = elements(value_of(node, "status"), "conditions");
  for (std::size_t i = 0; i < conditions.size() && !errors.full(); ++i) {
    if (!types.insert(text(conditions[i], "type")).second) {
      errors.duplicate(api::index_path("status.conditions", i), value_of(conditions[i], "type"));
    }
  }
}

void validate_node_update(const api::Json& node, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return validate_node_status(node, errors);
  const api::Json& spec = value_of(node, "spec");
  const api::Json& before = value_of(old, "spec");
  validate_taints(spec, errors);
  validate_pod_ranges(spec, errors);
  if (!text(before, "providerID").empty() && text(before, "providerID") != text(spec, "providerID")) {
    errors.forbidden("spec.providerID", "node updates may not change providerID except from \"\" to valid");
  }
  if (!elements(before, "podCIDRs").empty() && !(value_of(before, "podCIDRs") == value_of(spec, "podCIDRs"))) {
    errors.forbidden("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
  }
}

/// An empty list is no list.
void default_csi_node(api::Json& node) {
  if (api::Json* drivers = node.at({"spec", "drivers"});
      drivers != nullptr && elements(node["spec"], "drivers") != nullptr) {
    if (drivers->if_array()->empty()) *drivers = api::Json();
  }
}

void validate_csi_node(const api::Json& node, api::FieldErrors& errors) {
  const api::Json::Array& drivers = elements(value_of(node, "spec"), "drivers");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < drivers.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("spec.drivers", i);
    const std::string_view name = text(drivers[i], "name");
    if (name.empty()) {
      errors.required(path + ".name");
    } else if (!names.insert(name).second) {
      errors.duplicate(path + ".name", name);
    }
    if (text(drivers[i], "nodeID").empty()) errors.required(path + ".nodeID");
  }
}

void validate_lease(const api::Json& lease, api::FieldErrors& errors) {
  const api::Json& spec = value_of(lease, "spec");
  if (const auto duration = integer(spec, "leaseDurationSeconds"); duration && *duration <= 0) {
    errors.invalid("spec.leaseDurationSeconds", *duration, "must be greater than 0");
  }
  require_non_negative(spec, "leaseTransitions", "spec.leaseTransitions", errors);
}

void validate_runtime_class(const api::Json& runtime_class, api::FieldErrors& errors) {
  require_valid(api::dns1123_label_errors(text(runtime_class, "handler")), value_of(runtime_class, "handler"),
                "handler", errors);
}

void validate_runtime_class_update(const api::Json& runtime_class, const api::Json& old, Endpoint,
                                   api::FieldErrors& errors) {
  validate_runtime_class(runtime_class, errors);
  if (text(runtime_class, "handler") != text(old, "handler")) {
    errors.invalid("handler", value_of(runtime_class, "handler"), kImmutable);
  }
}

}  // namespace

KindHooks node_hooks() {
  const TableDefinition table = node_table();
  return {.set_defaults = default_node,
          .prepare_create = add_not_ready_taint,
          .validate_create = validate_node,
          .validate_update = validate_node_update,
          .columns = table.columns,
          .table_row = table.row};
}

KindHooks csi_node_hooks() {
  const TableDefinition table = csi_node_table();
  return {.set_defaults = default_csi_node,
          .validate_create = validate_csi_node,
          .columns = table.columns,
          .table_row = table.row};
}

KindHooks lease_hooks() {
  const TableDefinition table = lease_table();
  return {.validate_create = validate_lease, .columns = table.columns, .table_row = table.row};
}

KindHooks runtime_class_hooks() {
  const TableDefinition table = runtime_class_table();
  return {.validate_create = validate_runtime_class,
          .validate_update = validate_runtime_class_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
