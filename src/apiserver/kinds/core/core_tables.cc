#include "apiserver/kinds/core/core_tables.h"

#include "apiserver/kinds/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

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

constexpr std::array kNamespaceColumns{kNameColumn, TableColumn{"Status", "string", "", 0, "Active or Terminating"},
                                       kAgeColumn};

TableRow namespace_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"status", "phase"}), age_of(object, now)}, nullptr};
}

constexpr std::array kComponentColumns{kNameColumn,
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
constexpr std::array kConfigMapColumns{kNameColumn, kData, kAgeColumn};

TableRow config_map_row(const api::Json& object, WallTime now) {
  return {{name_of(object), size_at(object, "data") + size_at(object, "binaryData"), age_of(object, now)}, nullptr};
}

constexpr std::array kSecretColumns{kNameColumn, TableColumn{"Type", "string", "", 0, "What the secret is for"}, kData,
                                    kAgeColumn};

TableRow secret_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"type"}), size_at(object, "data"), age_of(object, now)}, nullptr};
}

constexpr std::array kServiceAccountColumns{kNameColumn, kAgeColumn};

TableRow service_account_row(const api::Json& object, WallTime now) {
  return {{name_of(object), age_of(object, now)}, nullptr};
}

constexpr std::array kServiceColumns{kNameColumn,
                                     TableColumn{"Type", "string", "", 0, "How the service is reached"},
                                     TableColumn{"Cluster-IP", "string", "", 0, "Address inside the cluster"},
                                     TableColumn{"External-IP", "string", "", 0, "Address outside"},
                                     TableColumn{"Port(s)", "string", "", 0, "Ports"},
                                     kAgeColumn,
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

/// Addresses that a load balancer has given the Service, each once, sorted as upstream does.
std::vector<std::string> balancer_addresses(const api::Json& service) {
  std::set<std::string> found;
  const api::Json* ingress = service.at({"status", "loadBalancer", "ingress"});
  if (ingress == nullptr || ingress->if_array() == nullptr) return {};
  for (const api::Json& each : *ingress->if_array()) {
    const std::string address = or_else(each.string_at({"ip"}), each.string_at({"hostname"}));
    if (!address.empty()) found.insert(address);
  }
  return {found.begin(), found.end()};
}

std::string external_addresses(const api::Json& service) {
  const std::string_view type = service.string_at({"spec", "type"});
  if (type == "ExternalName") return or_else(service.string_at({"spec", "externalName"}), kNone);
  std::vector<std::string> texts;
  if (type == "LoadBalancer") texts = balancer_addresses(service);
  const api::Json* external = service.at({"spec", "externalIPs"});
  if (external != nullptr && external->if_array() != nullptr) {
    for (const api::Json& address : *external->if_array()) {
      if (address.if_string() != nullptr) texts.push_back(*address.if_string());
    }
  }
  if (!texts.empty()) return fmt::format("{}", fmt::join(texts, ","));
  return type == "LoadBalancer" ? "<pending>" : std::string(kNone);
}

TableRow service_row(const api::Json& object, WallTime now) {
  const std::string_view type = object.string_at({"spec", "type"});
  const std::string addresses = external_addresses(object);
  return {{name_of(object), type, or_else(object.string_at({"spec", "clusterIP"}), kNone), addresses,
           service_ports(object), age_of(object, now), label_text(object.at({"spec", "selector"}))},
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

}  // namespace spillway::apiserver::kinds
