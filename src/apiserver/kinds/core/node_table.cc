#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array kNodeColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the node"},
    TableColumn{"Status", "string", "", 0, "Readiness, and whether pods are scheduled to it"},
    TableColumn{"Roles", "string", "", 0, "Roles its labels name"},
    TableColumn{"Age", "string", "", 0, "Time since creation"},
    TableColumn{"Version", "string", "", 0, "Version of the node agent"},
    TableColumn{"Internal-IP", "string", "", 1, "First internal address"},
    TableColumn{"External-IP", "string", "", 1, "First external address"},
    TableColumn{"OS-Image", "string", "", 1, "Operating system"},
    TableColumn{"Kernel-Version", "string", "", 1, "Kernel"},
    TableColumn{"Container-Runtime", "string", "", 1, "Container runtime and version"}};

constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";

std::string status_of(const api::Json& node) {
  std::string text = "Unknown";
  const api::Json* conditions = node.at({"status", "conditions"});
  if (conditions != nullptr && conditions->if_array() != nullptr) {
    for (const api::Json& condition : *conditions->if_array()) {
      if (condition.string_at({"type"}) == "Ready")
        text = condition.string_at({"status"}) == "True" ? "Ready" : "NotReady";
    }
  }
  const api::Json* unschedulable = node.at({"spec", "unschedulable"});
  if (unschedulable != nullptr && unschedulable->if_bool().value_or(false)) text += ",SchedulingDisabled";
  return text;
}

std::string roles_of(const api::Json& node) {
  std::set<std::string> roles;
  const api::Json* labels = node.at({"metadata", "labels"});
  if (labels != nullptr && labels->if_object() != nullptr) {
    for (const auto& [key, value] : *labels->if_object()) {
      if (key.starts_with(kRolePrefix) && key.size() > kRolePrefix.size()) roles.insert(key.substr(kRolePrefix.size()));
      if (key == "kubernetes.io/role" && value.if_string() != nullptr && !value.if_string()->empty()) {
        roles.insert(*value.if_string());
      }
    }
  }
  return roles.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(roles, ","));
}

std::string address_of(const api::Json& node, std::string_view type) {
  const api::Json* addresses = node.at({"status", "addresses"});
  if (addresses != nullptr && addresses->if_array() != nullptr) {
    for (const api::Json& address : *addresses->if_array()) {
      if (address.string_at({"type"}) == type) return std::string(address.string_at({"address"}));
    }
  }
  return std::string(kNone);
}

TableRow node_row(const api::Json& node, WallTime now) {
  const auto info = [&node](std::string_view field) { return node.string_at({"status", "nodeInfo", field}); };
  return {
      {node.string_at({"metadata", "name"}), status_of(node), roles_of(node), age_of(node, now), info("kubeletVersion"),
       address_of(node, "InternalIP"), address_of(node, "ExternalIP"), or_else(info("osImage"), kUnknown),
       or_else(info("kernelVersion"), kUnknown), or_else(info("containerRuntimeVersion"), kUnknown)},
      nullptr};
}

}  // namespace

TableDefinition node_table() {
  return {kNodeColumns, node_row};
}

}  // namespace spillway::apiserver::kinds
