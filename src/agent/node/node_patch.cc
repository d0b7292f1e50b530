#include "agent/node/node_patch.h"

#include "api/codec/codec.h"

#include <algorithm>
#include <tuple>

namespace spillway::agent {
namespace {

using api::Json;
using api::NodeCondition;

/// Fast path: both have the same order, as usual.
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

/// Sets `patch[key]` to what turns one value into the other: objects member by member, everything else as a whole.
void diff(std::string_view key, const Json* before, const Json* after, Json& patch) {
  if (before == nullptr && after == nullptr) return;
  if (after == nullptr) {
    patch[key] = nullptr;
    return;
  }
  if (before != nullptr && *before == *after) return;
  if (before == nullptr || !before->is_object() || !after->is_object()) {
    patch[key] = *after;
    return;
  }
  Json changes = Json::object();
  for (const auto& [name, value] : *after->if_object()) diff(name, before->find(name), &value, changes);
  for (const auto& [name, value] : *before->if_object()) {
    if (after->find(name) == nullptr) changes[name] = nullptr;
  }
  patch[key] = std::move(changes);
}

const Json::Array& elements(const Json* list) {
  static const Json::Array kNone;
  return list == nullptr || list->if_array() == nullptr ? kNone : *list->if_array();
}

const Json* find_type(const Json::Array& conditions, std::string_view type) {
  for (const Json& condition : conditions) {
    if (condition.string_at({"type"}) == type) return &condition;
  }
  return nullptr;
}

Json types_of(const Json::Array& conditions) {
  Json types = Json::array();
  for (const Json& each : conditions) types.if_array()->push_back(Json::object({{"type", each.string_at({"type"})}}));
  return types;
}

/// Writes only the changed members of each condition, in the new order; removed conditions last. $setElementOrder has
/// the order of all.
void diff_conditions(const Json* before, const Json* after, Json& status) {
  const Json::Array& old_list = elements(before);
  const Json::Array& new_list = elements(after);
  Json changed = Json::array();
  for (const Json& condition : new_list) {
    const std::string_view type = condition.string_at({"type"});
    Json holder = Json::object();
    diff("element", find_type(old_list, type), &condition, holder);
    Json* element = holder.find("element");
    if (element == nullptr) continue;
    (*element)["type"] = type;
    changed.if_array()->push_back(std::move(*element));
  }
  std::vector<std::string> gone;
  for (const Json& condition : old_list) {
    const std::string_view type = condition.string_at({"type"});
    if (find_type(new_list, type) == nullptr) gone.emplace_back(type);
  }
  std::ranges::sort(gone);
  for (const std::string& type : gone)
    changed.if_array()->push_back(Json::object({{"$patch", "delete"}, {"type", type}}));
  Json order = types_of(new_list);
  if (changed.if_array()->empty() && order == types_of(old_list)) return;
  status["$setElementOrder/conditions"] = std::move(order);
  if (!changed.if_array()->empty()) status["conditions"] = std::move(changed);
}

}  // namespace

bool is_changed(const api::NodeStatus& before, const api::NodeStatus& after) {
  if (!same_but_heartbeats(before.conditions, after.conditions) &&
      comparable(before.conditions) != comparable(after.conditions)) {
    return true;
  }
  const auto rest = [](const api::NodeStatus& status) {
    const auto& [capacity, allocatable, conditions, addresses, node_info, port, images, in_use, attached, handlers,
                 features, declared, phase, config_error] = status;
    return std::tie(capacity, allocatable, addresses, node_info, port, images, in_use, attached, handlers, features,
                    declared, phase, config_error);
  };
  return rest(before) != rest(after);
}

Json node_patch(const api::Node& before, const api::Node& after) {
  const Json old_document = api::encode(before);
  const Json new_document = api::encode(after);
  Json patch = Json::object();
  diff("metadata", old_document.find("metadata"), new_document.find("metadata"), patch);

  const Json nothing = Json::object();
  const Json* old_status = old_document.find("status");
  const Json* new_status = new_document.find("status");
  if (old_status == nullptr) old_status = &nothing;
  if (new_status == nullptr) new_status = &nothing;
  Json status = Json::object();
  for (const std::string_view part :
       {"allocatable", "capacity", "config", "daemonEndpoints", "declaredFeatures", "features", "images", "nodeInfo",
        "phase", "runtimeHandlers", "volumesAttached", "volumesInUse"}) {
    diff(part, old_status->find(part), new_status->find(part), status);
  }
  diff_conditions(old_status->find("conditions"), new_status->find("conditions"), status);
  if (before.status.addresses != after.status.addresses) {
    // Types of addresses are not unique, so a merge by them would mix up two of one type.
    Json addresses = Json(elements(new_status->find("addresses")));
    addresses.if_array()->push_back(Json::object({{"$patch", "replace"}}));
    status["addresses"] = std::move(addresses);
  }
  if (!status.if_object()->empty()) patch["status"] = std::move(status);
  return patch;
}

}  // namespace spillway::agent
