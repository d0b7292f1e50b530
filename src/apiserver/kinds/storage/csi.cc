// CSIDrivers, and CSINodes: which of them a node has.
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/storage/storage_kinds.h"
#include "apiserver/kinds/storage/volumes.h"
#include "apiserver/kinds/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::size_t kNodeIdMax = 256;
constexpr std::int64_t kAllocatableSecondsMin = 10;
constexpr std::int64_t kDriverTokenSecondsMin = 600;
constexpr std::int64_t kDriverTokenSecondsMax = std::int64_t{1} << 32U;
constexpr std::array<std::string_view, 3> kGroupPolicies{"File", "None", "ReadWriteOnceWithFSType"};
constexpr std::array<std::string_view, 2> kLifecycleModes{"Ephemeral", "Persistent"};

// CSINodes.

/// Stores an empty list as null, as upstream does.
void default_csi_node(Json& node) {
  const auto empty_to_null = [](Json* list) {
    if (list != nullptr && std::as_const(*list).if_array() != nullptr && std::as_const(*list).if_array()->empty())
      *list = Json();
  };
  Json* spec = node.find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  empty_to_null(spec->find("drivers"));
  if (Json::Array* drivers = elements(*spec, "drivers")) {
    for (Json& driver : *drivers) empty_to_null(driver.find("topologyKeys"));
  }
}

void validate_topology_keys(const Json& driver, const std::string& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (const Json& key : elements(driver, "topologyKeys")) {
    if (errors.full()) return;
    const std::string_view name = key.string_at({});
    if (name.empty()) errors.required(path);
    if (!seen.insert(name).second) errors.duplicate(path, key);
    require_valid(api::qualified_name_errors(name), value_of(driver, "topologyKeys"), path, errors);
  }
}

void validate_csi_node(const Json& node, FieldErrors& errors) {
  const Json::Array& drivers = elements(value_of(node, "spec"), "drivers");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < drivers.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("spec.drivers", i);
    check_driver_name(CheckedField(drivers[i].find("name"), path + ".name", errors));
    const std::string_view id = text(drivers[i], "nodeID");
    if (id.empty()) errors.required(path + ".nodeID");
    if (id.size() > kNodeIdMax)
      errors.invalid(path + ".nodeID", id, fmt::format("must be {} characters or less", kNodeIdMax));
    require_non_negative(value_of(drivers[i], "allocatable"), "count", path + ".allocatable.count", errors);
    if (!names.insert(text(drivers[i], "name")).second) errors.duplicate(path + ".name", value_of(drivers[i], "name"));
    validate_topology_keys(drivers[i], path, errors);
  }
}

/// Two entries of one driver are equal in all but `allocatable`, which the driver may change while it runs.
bool same_but_allocatable(Json before, Json driver) {
  before["allocatable"] = Json();
  driver["allocatable"] = Json();
  return before == driver;
}

/// Drivers are added and removed; the members of an entry are immutable except for `allocatable`.
void validate_csi_node_update(const Json& node, const Json& old, Endpoint, FieldErrors& errors) {
  validate_csi_node(node, errors);
  for (const Json& before : elements(value_of(old, "spec"), "drivers")) {
    for (const Json& driver : elements(value_of(node, "spec"), "drivers")) {
      if (errors.full()) return;
      if (text(before, "name") == text(driver, "name") && !same_but_allocatable(before, driver)) {
        errors.invalid("spec.drivers", driver, kImmutable);
      }
    }
  }
}

// CSIDrivers.

void default_csi_driver(Json& driver) {
  Json& spec = driver.make({"spec"});
  if (!spec.is_object()) spec = Json::object();
  const auto default_if_absent = [&spec](std::string_view key, Json value) {
    if (!has(spec, key)) spec[key] = std::move(value);
  };
  default_if_absent("attachRequired", true);
  default_if_absent("fsGroupPolicy", "ReadWriteOnceWithFSType");
  for (const std::string_view key : {"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"}) {
    default_if_absent(key, false);
  }
  if (elements(std::as_const(spec), "volumeLifecycleModes").empty()) {
    spec["volumeLifecycleModes"] = Json::array({"Persistent"});
  }
}

/// Generations are counted from the first change on.
void count_generation(Json& driver, const Json& old, Endpoint) {
  if (value_of(std::as_const(driver), "spec") == value_of(old, "spec")) return;
  driver.make({"metadata", "generation"}) = integer(value_of(old, "metadata"), "generation").value_or(0) + 1;
}

void validate_token_requests(const Json& spec, FieldErrors& errors) {
  std::set<std::string_view> audiences;
  const Json::Array& requests = elements(spec, "tokenRequests");
  for (std::size_t i = 0; i < requests.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("spec.tokenRequests", i);
    if (!audiences.insert(text(requests[i], "audience")).second) {
      errors.duplicate(path + ".audience", value_of(requests[i], "audience"));
      continue;
    }
    const auto seconds = integer(requests[i], "expirationSeconds");
    if (seconds && *seconds < kDriverTokenSecondsMin) {
      errors.invalid(path + ".expirationSeconds", *seconds, "may not specify a duration less than 10 minutes");
    }
    if (seconds && *seconds > kDriverTokenSecondsMax) {
      errors.invalid(path + ".expirationSeconds", *seconds, "may not specify a duration larger than 2^32 seconds");
    }
  }
}

void validate_csi_driver(const Json& driver, FieldErrors& errors) {
  const Json& spec = value_of(driver, "spec");
  require_listed(spec, "fsGroupPolicy", "spec.fsGroupPolicy", kGroupPolicies, errors);
  for (const Json& mode : elements(spec, "volumeLifecycleModes")) {
    if (errors.full()) return;
    if (std::ranges::find(kLifecycleModes, mode.string_at({})) == kLifecycleModes.end()) {
      errors.not_supported("spec.volumeLifecycleModes", mode, kLifecycleModes);
    }
  }
  validate_token_requests(spec, errors);
  const auto period = integer(spec, "nodeAllocatableUpdatePeriodSeconds");
  if (period && *period < kAllocatableSecondsMin) {
    errors.invalid("spec.nodeAllocatableUpdatePeriodSeconds", *period, "must be greater than or equal to 10 seconds");
  }
  if (has(spec, "serviceAccountTokenInSecrets") && elements(spec, "tokenRequests").empty()) {
    errors.invalid("spec.serviceAccountTokenInSecrets", value_of(spec, "serviceAccountTokenInSecrets"),
                   "may only be set when tokenRequests is set");
  }
}

void validate_csi_driver_update(const Json& driver, const Json& old, Endpoint, FieldErrors& errors) {
  validate_csi_driver(driver, errors);
  const Json& spec = value_of(driver, "spec");
  const Json& before = value_of(old, "spec");
  const auto require_same = [&](std::string_view key, std::string_view path) {
    if (value_of(spec, key) != value_of(before, key)) errors.invalid(path, value_of(spec, key), kImmutable);
  };
  require_same("attachRequired", "spec.attachedRequired");  // as upstream writes it
  require_same("volumeLifecycleModes", "spec.volumeLifecycleModes");
}

constexpr std::array kDriverColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"AttachRequired", "boolean", "", 0, "Whether volumes are attached before they are mounted"},
    TableColumn{"PodInfoOnMount", "boolean", "", 0, "True if the driver gets the name of the pod for which it mounts"},
    TableColumn{"StorageCapacity", "boolean", "", 0, "Whether the driver says how much it can still provision"},
    TableColumn{"TokenRequests", "string", "", 0, "Audiences of the tokens that the driver is given"},
    TableColumn{"RequiresRepublish", "boolean", "", 0, "Whether volumes are published again and again"},
    TableColumn{"Modes", "string", "", 0, "Which volumes the driver has"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

/// The texts of a list joined by commas.
std::string joined(const Json::Array& list, std::string_view (*text_of)(const Json&)) {
  std::string all;
  for (const Json& each : list) {
    if (!all.empty()) all += ',';
    all += text_of(each);
  }
  return all;
}

TableRow driver_row(const Json& driver, WallTime now) {
  const Json& spec = value_of(driver, "spec");
  const auto mode = [](const Json& each) { return each.string_at({}); };
  const auto audience = [](const Json& each) { return each.string_at({"audience"}); };
  const bool asks = value_of(spec, "tokenRequests").if_array() != nullptr;
  return {{driver.string_at({"metadata", "name"}), is_true(spec, "attachRequired"), is_true(spec, "podInfoOnMount"),
           is_true(spec, "storageCapacity"), asks ? joined(elements(spec, "tokenRequests"), audience) : "<unset>",
           is_true(spec, "requiresRepublish"), or_else(joined(elements(spec, "volumeLifecycleModes"), mode), kNone),
           age_of(driver, now)},
          nullptr};
}

constexpr std::array kCsiNodeColumns{kNameColumn, TableColumn{"Drivers", "integer", "", 0, "Drivers on the node"},
                                     kAgeColumn};

TableRow csi_node_row(const api::Json& object, WallTime now) {
  const api::Json* spec = object.find("spec");
  return {{name_of(object), spec != nullptr ? size_at(*spec, "drivers") : 0, age_of(object, now)}, nullptr};
}

}  // namespace

Resource csi_node_kind() {
  static const KindHooks kHooks{.set_defaults = default_csi_node,
                                .validate_create = validate_csi_node,
                                .validate_update = validate_csi_node_update,
                                .columns = kCsiNodeColumns,
                                .table_row = csi_node_row};
  return {.group = "storage.k8s.io",
          .version = "v1",
          .plural = "csinodes",
          .singular = "csinode",
          .kind = "CSINode",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("csinodes"),
          .metadata = kWholeOnly,
          .hooks = &kHooks};
}

Resource csi_driver_kind() {
  static const KindHooks kHooks{.set_defaults = default_csi_driver,
                                .validate_create = validate_csi_driver,
                                .prepare_update = count_generation,
                                .validate_update = validate_csi_driver_update,
                                .columns = kDriverColumns,
                                .table_row = driver_row};
  return {.group = "storage.k8s.io",
          .version = "v1",
          .plural = "csidrivers",
          .singular = "csidriver",
          .kind = "CSIDriver",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("csidrivers"),
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
