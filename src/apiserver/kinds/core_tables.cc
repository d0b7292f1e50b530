#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

constexpr TableColumn kName{"Name", "string", "name", 0, "Name of the object"};
constexpr TableColumn kAge{"Age", "string", "", 0, "Time since creation"};

std::string_view name_of(const api::Json& object) {
  return object.string_at({"metadata", "name"});
}

std::int64_t size_at(const api::Json& object, std::string_view key) {
  const api::Json* found = object.find(key);
  if (found == nullptr) return 0;
  if (const api::Json::Object* members = found->if_object()) return static_cast<std::int64_t>(members->size());
  if (const api::Json::Array* elements = found->if_array()) return static_cast<std::int64_t>(elements->size());
  return 0;
}

constexpr std::array kEventColumns{TableColumn{"Last Seen", "string", "", 0, "Time since it was last seen"},
                                   TableColumn{"Type", "string", "", 0, "Normal or Warning"},
                                   TableColumn{"Reason", "string", "", 0, "Why, in one word"},
                                   TableColumn{"Object", "string", "", 0, "What it is about"},
                                   TableColumn{"Subobject", "string", "", 1, "Part of the object"},
                                   TableColumn{"Source", "string", "", 1, "Who reports it"},
                                   TableColumn{"Message", "string", "", 0, "What happened"},
                                   TableColumn{"First Seen", "string", "", 1, "Time since it was first seen"},
                                   TableColumn{"Count", "string", "", 1, "How often it was seen"},
                                   TableColumn{"Name", "string", "name", 1, "Name of the event"}};

const api::Json* first_time(std::initializer_list<const api::Json*> candidates) {
  for (const api::Json* time : candidates) {
    if (time != nullptr && time->is_string()) return time;
  }
  return nullptr;
}

std::string event_object(const api::Json& event) {
  std::string kind(event.string_at({"involvedObject", "kind"}));
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const std::string_view name = event.string_at({"involvedObject", "name"});
  return name.empty() ? kind : fmt::format("{}/{}", kind, name);
}

std::string_view trimmed_message(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t from = text.find_first_not_of(kSpace);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

std::string event_source(const api::Json& event) {
  const std::string_view component = event.string_at({"source", "component"});
  const std::string_view host = event.string_at({"source", "host"});
  const std::string who(component.empty() ? event.string_at({"reportingComponent"}) : component);
  const std::string_view where = host.empty() ? event.string_at({"reportingInstance"}) : host;
  return where.empty() ? who : fmt::format("{}, {}", who, where);
}

TableRow event_row(const api::Json& event, WallTime now) {
  const api::Json* first = event.find("firstTimestamp");
  const api::Json* last = event.find("lastTimestamp");
  const api::Json* event_time = event.find("eventTime");
  std::int64_t count = count_at(event, {"series", "count"});
  if (count == 0) count = count_at(event, {"count"});
  return {{age_since(first_time({event.at({"series", "lastObservedTime"}), last, first, event_time}), now),
           event.string_at({"type"}), event.string_at({"reason"}), event_object(event),
           event.string_at({"involvedObject", "fieldPath"}), event_source(event),
           trimmed_message(event.string_at({"message"})), age_since(first_time({first, event_time}), now),
           count == 0 ? 1 : count, name_of(event)},
          nullptr};
}

constexpr std::array kNamespaceColumns{kName, TableColumn{"Status", "string", "", 0, "Active or Terminating"}, kAge};

TableRow namespace_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"status", "phase"}), age_of(object, now)}, nullptr};
}

constexpr std::array kComponentColumns{kName,
                                       TableColumn{"Status", "string", "", 0, "Status of the component conditions"},
                                       TableColumn{"Message", "string", "", 0, "Message of the component conditions"},
                                       TableColumn{"Error", "string", "", 0, "Error of the component conditions"}};

TableRow component_row(const api::Json& object, WallTime) {
  const api::Json* conditions = object.find("conditions");
  const bool known = conditions != nullptr && conditions->if_array() != nullptr && !conditions->if_array()->empty();
  const api::Json condition = known ? conditions->if_array()->front() : api::Json::object();
  const std::string_view status = condition.string_at({"status"});
  const std::string_view shown = status == "True" ? "Healthy" : status == "False" ? "Unhealthy" : "Unknown";
  return {{name_of(object), shown, condition.string_at({"message"}), condition.string_at({"error"})}, nullptr};
}

constexpr TableColumn kData{"Data", "string", "", 0, "Number of entries"};
constexpr std::array kConfigMapColumns{kName, kData, kAge};

TableRow config_map_row(const api::Json& object, WallTime now) {
  return {{name_of(object), size_at(object, "data") + size_at(object, "binaryData"), age_of(object, now)}, nullptr};
}

constexpr std::array kSecretColumns{kName, TableColumn{"Type", "string", "", 0, "What the secret is for"}, kData, kAge};

TableRow secret_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"type"}), size_at(object, "data"), age_of(object, now)}, nullptr};
}

constexpr std::array kServiceAccountColumns{kName, kAge};

TableRow service_account_row(const api::Json& object, WallTime now) {
  return {{name_of(object), age_of(object, now)}, nullptr};
}

constexpr std::array kServiceColumns{kName,
                                     TableColumn{"Type", "string", "", 0, "How the service is reached"},
                                     TableColumn{"Cluster-IP", "string", "", 0, "Address inside the cluster"},
                                     TableColumn{"External-IP", "string", "", 0, "Address outside"},
                                     TableColumn{"Port(s)", "string", "", 0, "Ports"},
                                     kAge,
                                     TableColumn{"Selector", "string", "", 1, "Labels of its pods"}};

std::string service_ports(const api::Json& service) {
  std::vector<std::string> ports;
  const api::Json* list = service.at({"spec", "ports"});
  if (list != nullptr && list->if_array() != nullptr) {
    for (const api::Json& port : *list->if_array()) {
      const std::int64_t node_port = count_at(port, {"nodePort"});
      const std::string protocol = or_else(port.string_at({"protocol"}), "TCP");
      ports.push_back(node_port == 0 ? fmt::format("{}/{}", count_at(port, {"port"}), protocol)
                                     : fmt::format("{}:{}/{}", count_at(port, {"port"}), node_port, protocol));
    }
  }
  return ports.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(ports, ","));
}

TableRow service_row(const api::Json& object, WallTime now) {
  const std::string_view type = object.string_at({"spec", "type"});
  const api::Json* external = object.at({"spec", "externalIPs"});
  std::string addresses(kNone);
  if (type == "ExternalName") {
    addresses = or_else(object.string_at({"spec", "externalName"}), kNone);
  } else if (external != nullptr && external->if_array() != nullptr && !external->if_array()->empty()) {
    std::vector<std::string> texts;
    for (const api::Json& address : *external->if_array()) {
      if (address.if_string() != nullptr) texts.push_back(*address.if_string());
    }
    addresses = fmt::format("{}", fmt::join(texts, ","));
  } else if (type == "LoadBalancer") {
    addresses = "<pending>";
  }
  return {{name_of(object), type, or_else(object.string_at({"spec", "clusterIP"}), kNone), addresses,
           service_ports(object), age_of(object, now), label_text(object.at({"spec", "selector"}))},
          nullptr};
}

constexpr std::array kLeaseColumns{kName, TableColumn{"Holder", "string", "", 0, "Who holds it"}, kAge};

TableRow lease_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"spec", "holderIdentity"}), age_of(object, now)}, nullptr};
}

constexpr std::array kPriorityClassColumns{
    kName, TableColumn{"Value", "integer", "", 0, "Priority it stands for"},
    TableColumn{"Global-Default", "boolean", "", 0, "Whether pods without a class get it"}, kAge,
    TableColumn{"PreemptionPolicy", "string", "", 0, "Whether its pods preempt others"}};

TableRow priority_class_row(const api::Json& object, WallTime now) {
  const api::Json* is_default = object.find("globalDefault");
  return {{name_of(object), count_at(object, {"value"}), is_default != nullptr && is_default->if_bool().value_or(false),
           age_of(object, now), object.string_at({"preemptionPolicy"})},
          nullptr};
}

constexpr std::array kRuntimeClassColumns{kName, TableColumn{"Handler", "string", "", 0, "Name in the runtime"}, kAge};

TableRow runtime_class_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"handler"}), age_of(object, now)}, nullptr};
}

constexpr std::array kCsiNodeColumns{kName, TableColumn{"Drivers", "integer", "", 0, "Drivers on the node"}, kAge};

TableRow csi_node_row(const api::Json& object, WallTime now) {
  const api::Json* spec = object.find("spec");
  return {{name_of(object), spec != nullptr ? size_at(*spec, "drivers") : 0, age_of(object, now)}, nullptr};
}

constexpr std::array kRoleColumns{kName, TableColumn{"Created At", "date", "", 0, "When it was created"}};

TableRow role_row(const api::Json& object, WallTime) {
  return {{name_of(object), object.string_at({"metadata", "creationTimestamp"})}, nullptr};
}

constexpr std::array kRoleBindingColumns{kName,
                                         TableColumn{"Role", "string", "", 0, "What is granted"},
                                         kAge,
                                         TableColumn{"Users", "string", "", 1, "Users it is granted to"},
                                         TableColumn{"Groups", "string", "", 1, "Groups it is granted to"},
                                         TableColumn{"ServiceAccounts", "string", "", 1, "Accounts it is granted to"}};

std::string subjects_of(const api::Json& binding, std::string_view kind) {
  std::vector<std::string> names;
  const api::Json* subjects = binding.find("subjects");
  if (subjects != nullptr && subjects->if_array() != nullptr) {
    for (const api::Json& subject : *subjects->if_array()) {
      if (subject.string_at({"kind"}) != kind) continue;
      const std::string name(subject.string_at({"name"}));
      names.push_back(kind == "ServiceAccount" ? fmt::format("{}/{}", subject.string_at({"namespace"}), name) : name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

TableRow role_binding_row(const api::Json& object, WallTime now) {
  return {{name_of(object),
           fmt::format("{}/{}", object.string_at({"roleRef", "kind"}), object.string_at({"roleRef", "name"})),
           age_of(object, now), subjects_of(object, "User"), subjects_of(object, "Group"),
           subjects_of(object, "ServiceAccount")},
          nullptr};
}

}  // namespace

TableDefinition event_table() {
  return {kEventColumns, event_row};
}

TableDefinition namespace_table() {
  return {kNamespaceColumns, namespace_row};
}

TableDefinition component_status_table() {
  return {kComponentColumns, component_row};
}

TableDefinition config_map_table() {
  return {kConfigMapColumns, config_map_row};
}

TableDefinition secret_table() {
  return {kSecretColumns, secret_row};
}

TableDefinition service_table() {
  return {kServiceColumns, service_row};
}

TableDefinition service_account_table() {
  return {kServiceAccountColumns, service_account_row};
}

TableDefinition lease_table() {
  return {kLeaseColumns, lease_row};
}

TableDefinition priority_class_table() {
  return {kPriorityClassColumns, priority_class_row};
}

TableDefinition runtime_class_table() {
  return {kRuntimeClassColumns, runtime_class_row};
}

TableDefinition csi_node_table() {
  return {kCsiNodeColumns, csi_node_row};
}

TableDefinition role_table() {
  return {kRoleColumns, role_row};
}

TableDefinition role_binding_table() {
  return {kRoleBindingColumns, role_binding_row};
}

}  // namespace spillway::apiserver::kinds
