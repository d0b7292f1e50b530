#include "agent/cri/runtime_status.h"

#include <fmt/format.h>

#include <string_view>

namespace spillway::agent {
namespace {

using api::Json;

const Json::Array& elements_of(const Json* list) {
  static const Json::Array kNone;
  return list == nullptr || list->if_array() == nullptr ? kNone : *list->if_array();
}

bool is_set(const Json* document, std::string_view member) {
  const Json* found = document == nullptr ? nullptr : document->find(member);
  return found != nullptr && found->if_bool().value_or(false);
}

}  // namespace

RuntimeStatus runtime_status(const Json& answer) {
  RuntimeStatus status;
  for (const Json& each : elements_of(answer.at({"status", "conditions"}))) {
    if (is_set(&each, "status")) continue;
    const std::string_view type = each.string_at({"type"});
    const std::string text =
        fmt::format("{}=false reason:{} message:{}", type, each.string_at({"reason"}), each.string_at({"message"}));
    if (type == "RuntimeReady") status.problem = "container runtime not ready: " + text;
    if (type == "NetworkReady") status.network_problem = "container runtime network not ready: " + text;
  }
  for (const Json& each : elements_of(answer.find("runtime_handlers"))) {
    if (status.handlers.size() == kHandlersMax) break;
    const Json* features = each.find("features");
    status.handlers.push_back({.name = std::string(each.string_at({"name"})),
                               .recursive_read_only_mounts = is_set(features, "recursive_read_only_mounts"),
                               .user_namespaces = is_set(features, "user_namespaces")});
  }
  if (const Json* features = answer.find("features"))
    status.supplemental_groups_policy = is_set(features, "supplemental_groups_policy");
  return status;
}

}  // namespace spillway::agent
