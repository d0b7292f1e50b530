#include "agent/node_object.h"

#include "api/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace spillway::agent {
namespace {

using api::Json;
using api::NodeCondition;

constexpr std::string_view kControllerManagedAttach = "volumes.kubernetes.io/controller-managed-attach-detach";
constexpr std::array<std::string_view, 12> kDefaultLabels{"kubernetes.io/hostname",
                                                          "topology.kubernetes.io/zone",
                                                          "topology.kubernetes.io/region",
                                                          "failure-domain.beta.kubernetes.io/zone",
                                                          "failure-domain.beta.kubernetes.io/region",
                                                          "node.kubernetes.io/instance-type",
                                                          "beta.kubernetes.io/instance-type",
                                                          "kubernetes.io/os",
                                                          "kubernetes.io/arch",
                                                          "node.kubernetes.io/windows-build",
                                                          "beta.kubernetes.io/os",
                                                          "beta.kubernetes.io/arch"};

/// The last of several with the same type counts, as upstream's loop leaves it.
NodeCondition* find_last(std::vector<NodeCondition>& conditions, std::string_view type) {
  NodeCondition* found = nullptr;
  for (NodeCondition& condition : conditions) {
    if (condition.type == type) found = &condition;
  }
  return found;
}

std::string status_changed(const std::string& node, std::string_view reason) {
  return fmt::format("Node {} status is now: {}", node, reason);
}

void update_pressure(api::Node& node, eviction::Condition pressure, bool held, WallTime now,
                     std::vector<NodeEvent>& events) {
  auto& conditions = node.status.conditions;
  NodeCondition* condition = find_last(conditions, to_string(pressure));
  if (condition == nullptr) {
    condition = &conditions.emplace_back();
    condition->type = to_string(pressure);
    condition->status = "Unknown";
  }
  condition->last_heartbeat_time = now;
  const std::string_view status = held ? "True" : "False";
  if (condition->status == status) return;
  const eviction::ConditionText text =
      text_of(pressure, held ? eviction::ConditionStatus::kTrue : eviction::ConditionStatus::kFalse);
  condition->status = status;
  condition->reason = text.reason;
  condition->message = text.message;
  condition->last_transition_time = now;
  events.push_back({std::string(text.event_reason), status_changed(node.metadata.name, text.event_reason)});
}

std::string aggregate(std::vector<std::string> errors) {
  std::vector<std::string> distinct;
  for (std::string& error : errors) {
    if (std::ranges::find(distinct, error) == distinct.end()) distinct.push_back(std::move(error));
  }
  if (distinct.size() == 1) return distinct.front();
  return fmt::format("[{}]", fmt::join(distinct, ", "));
}

void update_ready(api::Node& node, const NodeFacts& facts, WallTime now, std::vector<NodeEvent>& events) {
  NodeCondition ready{.type = "Ready",
                      .status = "True",
                      .reason = "KubeletReady",
                      .message = "kubelet is posting ready status",
                      .last_heartbeat_time = now,
                      .last_transition_time = now};
  std::vector<std::string> errors = facts.not_ready;
  std::string missing;
  for (const std::string_view resource : {"cpu", "memory", "pods", "ephemeral-storage"}) {
    if (node.status.capacity.contains(resource)) continue;
    missing += missing.empty() ? "" : ", ";
    missing += resource;
  }
  if (!missing.empty()) errors.push_back("missing node capacity for resources: " + missing);
  if (!errors.empty()) {
    ready.status = "False";
    ready.reason = "KubeletNotReady";
    ready.message = aggregate(std::move(errors));
  }
  NodeCondition* existing = find_last(node.status.conditions, ready.type);
  if (existing == nullptr) {
    node.status.conditions.push_back(std::move(ready));
    return;
  }
  if (existing->status == ready.status) {
    ready.last_transition_time = existing->last_transition_time;
  } else {
    const std::string reason = ready.status == "True" ? "NodeReady" : "NodeNotReady";
    events.push_back({reason, status_changed(node.metadata.name, reason)});
  }
  *existing = std::move(ready);
}

Json map_patch(const Json* before, const Json* after) {
  Json changes = Json::object();
  if (after != nullptr && after->if_object() != nullptr) {
    for (const auto& [key, value] : *after->if_object()) {
      const Json* old = before == nullptr ? nullptr : before->find(key);
      if (old == nullptr || *old != value) changes[key] = value;
    }
  }
  if (before != nullptr && before->if_object() != nullptr) {
    for (const auto& [key, value] : *before->if_object()) {
      if (after == nullptr || after->find(key) == nullptr) changes[key] = nullptr;
    }
  }
  return changes;
}

/// Lists of conditions merge by type: only what changed of each, with the order of all.
void patch_conditions(const Json* before, const Json* after, Json& status) {
  if (after == nullptr || after->if_array() == nullptr) return;
  Json changed = Json::array();
  Json order = Json::array();
  for (const Json& condition : *after->if_array()) {
    const std::string_view type = condition.string_at({"type"});
    order.if_array()->push_back(Json::object({{"type", type}}));
    const Json* old = nullptr;
    if (before != nullptr && before->if_array() != nullptr) {
      for (const Json& each : *before->if_array()) {
        if (each.string_at({"type"}) == type) old = &each;
      }
    }
    Json element = map_patch(old, &condition);
    if (element.if_object()->empty()) continue;
    element["type"] = type;
    changed.if_array()->push_back(std::move(element));
  }
  if (changed.if_array()->empty()) return;
  status["$setElementOrder/conditions"] = std::move(order);
  status["conditions"] = std::move(changed);
}

/// In the same order, as is usual.
bool same_but_heartbeats(const std::vector<NodeCondition>& one, const std::vector<NodeCondition>& other) {
  return std::ranges::equal(one, other, [](const NodeCondition& a, const NodeCondition& b) {
    return a.type == b.type && a.status == b.status && a.reason == b.reason && a.message == b.message &&
           a.last_transition_time == b.last_transition_time;
  });
}

std::vector<NodeCondition> comparable(std::vector<NodeCondition> conditions) {
  for (NodeCondition& condition : conditions) condition.last_heartbeat_time.reset();
  std::ranges::sort(conditions, [](const NodeCondition& a, const NodeCondition& b) {
    return std::tie(a.type, a.status, a.reason, a.message) < std::tie(b.type, b.status, b.reason, b.message);
  });
  return conditions;
}

}  // namespace

api::Node initial_node(const AgentOptions& options, const MachineInfo& machine) {
  api::Node node;
  node.metadata.name = options.node_name;
  node.metadata.labels = {{"kubernetes.io/hostname", machine.hostname.empty() ? options.node_name : machine.hostname},
                          {"kubernetes.io/os", options.operating_system},
                          {"kubernetes.io/arch", options.architecture},
                          {"beta.kubernetes.io/os", options.operating_system},
                          {"beta.kubernetes.io/arch", options.architecture}};
  for (const auto& [key, value] : options.labels) node.metadata.labels.insert_or_assign(key, value);
  node.metadata.annotations = {{std::string(kControllerManagedAttach), "true"}};
  node.spec.taints = options.taints;
  if (options.registration == Registration::kUnschedulable) {
    node.spec.unschedulable = true;
    const bool tainted = std::ranges::any_of(
        node.spec.taints, [](const api::Taint& taint) { return taint.key == api::kTaintNodeUnschedulable; });
    if (!tainted) {
      node.spec.taints.push_back({.key = std::string(api::kTaintNodeUnschedulable),
                                  .value = {},
                                  .effect = std::string(api::kNoSchedule),
                                  .time_added = {}});
    }
  }
  return node;
}

std::vector<NodeEvent> update_status(api::Node& node, const AgentOptions& options, const MachineInfo& machine,
                                     const NodeFacts& facts, WallTime now) {
  std::vector<NodeEvent> events;
  api::NodeStatus& status = node.status;
  status.addresses.clear();
  if (!machine.internal_ip.empty()) status.addresses.push_back({"InternalIP", machine.internal_ip});
  status.addresses.push_back({"Hostname", machine.hostname.empty() ? options.node_name : machine.hostname});
  for (const auto& [resource, amount] : facts.capacity) status.capacity.insert_or_assign(resource, amount);
  for (const auto& [resource, amount] : facts.allocatable) status.allocatable.insert_or_assign(resource, amount);
  api::NodeSystemInfo& info = status.node_info;
  if (!info.boot_id.empty() && info.boot_id != machine.boot_id) {
    events.push_back(
        {"Rebooted", fmt::format("Node {} has been rebooted, boot id: {}", node.metadata.name, machine.boot_id), true});
  }
  info = {.machine_id = machine.machine_id,
          .system_uuid = machine.system_uuid,
          .boot_id = machine.boot_id,
          .kernel_version = machine.kernel_version,
          .os_image = machine.os_image,
          .container_runtime_version = machine.container_runtime_version,
          .kubelet_version = options.kubelet_version,
          .kube_proxy_version = options.kubelet_version,
          .operating_system = options.operating_system,
          .architecture = options.architecture};
  status.kubelet_port = options.daemon_port;
  for (const eviction::Condition condition : eviction::kConditions) {
    update_pressure(node, condition, facts.pressure.contains(condition), now, events);
  }
  update_ready(node, facts, now, events);
  node.metadata.labels.insert_or_assign("kubernetes.io/os", options.operating_system);
  node.metadata.labels.insert_or_assign("kubernetes.io/arch", options.architecture);
  return events;
}

bool is_changed(const api::NodeStatus& before, const api::NodeStatus& after) {
  if (!same_but_heartbeats(before.conditions, after.conditions) &&
      comparable(before.conditions) != comparable(after.conditions)) {
    return true;
  }
  const auto& [capacity, allocatable, conditions, addresses, node_info, port, images] = before;
  return std::tie(capacity, allocatable, addresses, node_info, port, images) !=
         std::tie(after.capacity, after.allocatable, after.addresses, after.node_info, after.kubelet_port,
                  after.images);
}

Json node_patch(const api::Node& before, const api::Node& after) {
  const Json old_document = api::encode(before);
  const Json new_document = api::encode(after);
  Json patch = Json::object();
  for (const std::string_view part : {"labels", "annotations"}) {
    Json changes = map_patch(old_document.at({"metadata", part}), new_document.at({"metadata", part}));
    if (!changes.if_object()->empty()) patch.make({"metadata", part}) = std::move(changes);
  }
  Json status = Json::object();
  const auto old_part = [&](std::string_view part) { return old_document.at({"status", part}); };
  const auto new_part = [&](std::string_view part) { return new_document.at({"status", part}); };
  for (const std::string_view part : {"capacity", "allocatable", "nodeInfo"}) {
    Json changes = map_patch(old_part(part), new_part(part));
    if (!changes.if_object()->empty()) status[part] = std::move(changes);
  }
  if (before.status.addresses != after.status.addresses && new_part("addresses") != nullptr) {
    Json addresses = *new_part("addresses");
    addresses.if_array()->push_back(Json::object({{"$patch", "replace"}}));
    status["addresses"] = std::move(addresses);
  }
  if (before.status.kubelet_port != after.status.kubelet_port && new_part("daemonEndpoints") != nullptr) {
    status["daemonEndpoints"] = *new_part("daemonEndpoints");
  }
  patch_conditions(old_part("conditions"), new_part("conditions"), status);
  if (!status.if_object()->empty()) patch["status"] = std::move(status);
  return patch;
}

bool reconcile_metadata(const api::Node& initial, api::Node& existing) {
  bool changed = false;
  const auto wanted = initial.metadata.annotations.find(kControllerManagedAttach);
  const auto present = existing.metadata.annotations.find(kControllerManagedAttach);
  if (wanted == initial.metadata.annotations.end()) {
    changed = existing.metadata.annotations.erase(std::string(kControllerManagedAttach)) > 0;
  } else if (present == existing.metadata.annotations.end() || present->second != wanted->second) {
    existing.metadata.annotations[std::string(kControllerManagedAttach)] = wanted->second;
    changed = true;
  }
  for (const std::string_view label : kDefaultLabels) {
    const auto ours = initial.metadata.labels.find(label);
    if (ours == initial.metadata.labels.end()) continue;
    const auto theirs = existing.metadata.labels.find(label);
    if (theirs != existing.metadata.labels.end() && theirs->second == ours->second) continue;
    changed = true;
    if (ours->second.empty()) {
      existing.metadata.labels.erase(std::string(label));
    } else {
      existing.metadata.labels[std::string(label)] = ours->second;
    }
  }
  return changed;
}

}  // namespace spillway::agent
