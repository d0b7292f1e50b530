#include "apiserver/nodes/pod_container.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

namespace spillway::apiserver {

using api::Json;
using api::StatusResult;

namespace {

std::vector<std::string> container_names(const Json& pod, std::initializer_list<std::string_view> lists) {
  std::vector<std::string> names;
  for (const std::string_view list : lists) {
    const Json* containers = pod.at({"spec", list});
    if (containers == nullptr || containers->if_array() == nullptr) continue;
    for (const Json& container : *containers->if_array()) names.emplace_back(container.string_at({"name"}));
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace

StatusResult<std::string> pick_container(const Json& pod, const std::string* wanted) {
  const std::string name(pod.string_at({"metadata", "name"}));
  if (wanted != nullptr && !wanted->empty()) {
    const auto all = container_names(pod, {"containers", "initContainers", "ephemeralContainers"});
    if (std::ranges::find(all, *wanted) != all.end()) return *wanted;
    return make_error(ErrorCode::kBadRequest, "container {} is not valid for pod {}", *wanted, name);
  }
  const auto names = container_names(pod, {"containers"});
  if (names.size() == 1) return names.front();
  const auto init = container_names(pod, {"initContainers"});
  std::string choice = fmt::format("choose one of: [{}]", joined(names));
  if (!init.empty()) choice += fmt::format(" or one of the init containers: [{}]", joined(init));
  return make_error(ErrorCode::kBadRequest, "a container name must be specified for pod {}, {}", name, choice);
}

StatusResult<PodAgent> agent_of(const Core& core, const Json& pod) {
  std::string node_name(pod.string_at({"spec", "nodeName"}));
  if (node_name.empty())
    return make_error(ErrorCode::kBadRequest, "pod {} does not have a host assigned",
                      pod.string_at({"metadata", "name"}));
  const ObjectPtr node = core.cache.of(core.registry.get("nodes")).find(node_name);
  if (!node) return api::not_found_status({"", "nodes"}, node_name);
  const auto address = node_address(node->document());
  if (!address) return address.error();
  return PodAgent{std::move(node_name), *address};
}

Error no_way_to(const std::string& node) {
  return make_error(ErrorCode::kServiceUnavailable, "this server has no way to the agent of node {}", node);
}

}  // namespace spillway::apiserver
