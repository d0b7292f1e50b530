#include "agent/node/node_conditions.h"

#include "api/text/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

using api::NodeCondition;

WallTime whole_seconds(WallTime time) {
  return std::chrono::floor<seconds>(time);
}

/// The last of several conditions of one type counts, as in upstream's loop; for Ready it is the first.
NodeCondition* find_last(std::vector<NodeCondition>& conditions, std::string_view type) {
  NodeCondition* found = nullptr;
  for (NodeCondition& condition : conditions) {
    if (condition.type == type) found = &condition;
  }
  return found;
}

/// Finds the condition and renews its heartbeat; a new condition has the status Unknown.
NodeCondition& beat(api::Node& node, std::string_view type, WallTime now) {
  NodeCondition* condition = find_last(node.status.conditions, type);
  if (condition == nullptr) {
    condition = &node.status.conditions.emplace_back();
    condition->type = type;
    condition->status = "Unknown";
  }
  condition->last_heartbeat_time = now;
  return *condition;
}

struct ConditionState {
  std::string_view status;
  std::string_view reason;
  std::string_view message;
};

void move_to(NodeCondition& condition, const ConditionState& state, WallTime now) {
  condition.status = state.status;
  condition.reason = state.reason;
  condition.message = state.message;
  condition.last_transition_time = now;
}

std::string missing_capacity(const api::ResourceList& capacity, LocalStorageIsolation local_storage) {
  std::string missing;
  for (const std::string_view resource : {"cpu", "memory", "pods", "ephemeral-storage"}) {
    if (resource == "ephemeral-storage" && local_storage == LocalStorageIsolation::kOff) continue;
    if (capacity.contains(resource)) continue;
    missing += missing.empty() ? "" : ", ";
    missing += resource;
  }
  return missing;
}

}  // namespace

NodeEvent status_event(const std::string& node_name, std::string_view reason) {
  return {std::string(reason), fmt::format("Node {} status is now: {}", node_name, reason)};
}

void set_pressure(api::Node& node, eviction::Condition pressure, eviction::ConditionStatus wanted, WallTime now,
                  std::vector<NodeEvent>& events) {
  now = whole_seconds(now);
  NodeCondition& condition = beat(node, to_string(pressure), now);
  const std::string_view status = wanted == eviction::ConditionStatus::kTrue ? "True" : "False";
  if (condition.status == status) return;
  const eviction::ConditionText text = text_of(pressure, wanted);
  move_to(condition, {status, text.reason, text.message}, now);
  events.push_back(status_event(node.metadata.name, text.event_reason));
}

void set_ready(api::Node& node, const Readiness& readiness, WallTime now, std::vector<NodeEvent>& events) {
  now = whole_seconds(now);
  NodeCondition ready{.type = "Ready",
                      .status = "True",
                      .reason = "KubeletReady",
                      .message = "kubelet is posting ready status",
                      .last_heartbeat_time = now,
                      .last_transition_time = now};
  std::vector<std::string> errors = readiness.errors;
  const std::string missing = missing_capacity(node.status.capacity, readiness.local_storage);
  if (!missing.empty()) errors.push_back("missing node capacity for resources: " + missing);
  if (!errors.empty()) {
    ready.status = "False";
    ready.reason = "KubeletNotReady";
    ready.message = api::join_errors(errors);
  }
  if (readiness.soft_requirements) ready.message += ". WARNING: " + *readiness.soft_requirements;
  const auto existing = std::ranges::find(node.status.conditions, ready.type, &NodeCondition::type);
  if (existing == node.status.conditions.end()) {
    node.status.conditions.push_back(std::move(ready));
    return;
  }
  if (existing->status == ready.status) {
    ready.last_transition_time = existing->last_transition_time;
  } else {
    events.push_back(status_event(node.metadata.name, ready.status == "True" ? "NodeReady" : "NodeNotReady"));
  }
  *existing = std::move(ready);
}

void set_out_of_disk(api::Node& node, WallTime now, std::vector<NodeEvent>& events) {
  now = whole_seconds(now);
  NodeCondition& condition = beat(node, "OutOfDisk", now);
  if (condition.status == "False") return;
  move_to(condition, {"False", "KubeletHasSufficientDisk", "kubelet has sufficient disk space available"}, now);
  events.push_back(status_event(node.metadata.name, "NodeHasSufficientDisk"));
}

}  // namespace spillway::agent
