#include "agent/cri/container_config.h"

#include "agent/containers/container_hash.h"
#include "agent/contract/log_paths.h"
#include "agent/cri/sandbox_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace spillway::agent {
namespace {

using api::Json;

constexpr int kTarget = 3;
constexpr int kContainerMode = 1;

/// Fields are in the order in which upstream's encoder writes them; other agents compare the text.
std::string ports_text(const std::vector<api::ContainerPort>& ports) {
  std::string text = "[";
  for (const api::ContainerPort& port : ports) {
    if (text.size() > 1) text += ',';
    text += '{';
    if (!port.name.empty()) text += fmt::format("\"name\":{},", api::to_text(Json(port.name)));
    if (port.host_port != 0) text += fmt::format("\"hostPort\":{},", port.host_port);
    text += fmt::format("\"containerPort\":{}", port.container_port);
    if (!port.protocol.empty()) text += fmt::format(",\"protocol\":{}", api::to_text(Json(port.protocol)));
    if (!port.host_ip.empty()) text += fmt::format(",\"hostIP\":{}", api::to_text(Json(port.host_ip)));
    text += '}';
  }
  return text + ']';
}

Json annotations_of(const api::Pod& pod, const api::Container& container, const ContainerWish& wish) {
  Json made = Json::object();
  for (const auto& [name, value] : wish.annotations) made[name] = value;
  made["io.kubernetes.container.hash"] = container_hash(container.name, container.image);
  made["io.kubernetes.container.restartCount"] = fmt::format("{}", wish.restart_count);
  made["io.kubernetes.container.terminationMessagePath"] = container.termination_message_path;
  made["io.kubernetes.container.terminationMessagePolicy"] = container.termination_message_policy;
  if (const Json* hook = container.lifecycle.find("preStop"); hook != nullptr && !hook->is_null())
    made["io.kubernetes.container.preStopHandler"] = api::to_text(*hook);
  if (!container.ports.empty()) made["io.kubernetes.container.ports"] = ports_text(container.ports);
  if (pod.spec.termination_grace_period_seconds)
    made["io.kubernetes.pod.terminationGracePeriod"] = fmt::format("{}", *pod.spec.termination_grace_period_seconds);
  if (pod.metadata.deletion_grace_period_seconds)
    made["io.kubernetes.pod.deletionGracePeriod"] = fmt::format("{}", *pod.metadata.deletion_grace_period_seconds);
  return made;
}

Json mount_document(const HostMount& mount) {
  Json made = Json::object({{"container_path", mount.container_path}, {"host_path", mount.host_path}});
  if (mount.read_only) made["readonly"] = true;
  if (mount.recursively) made["recursive_read_only"] = true;
  if (mount.propagation != Propagation::kNone) made["propagation"] = static_cast<int>(mount.propagation);
  return made;
}

Json mounts_of(const api::Container& container, const ContainerWish& wish) {
  Json list = Json::array();
  for (const HostMount& each : wish.mounts) list.if_array()->push_back(mount_document(each));
  std::string path = container.termination_message_path;
  if (path.empty() || wish.termination_log.empty()) return list;
  if (!path.starts_with('/')) path.insert(0, "/");
  list.if_array()->push_back(mount_document({.container_path = path, .host_path = wish.termination_log}));
  return list;
}

Json devices_of(const ContainerWish& wish) {
  Json list = Json::array();
  for (const HostDevice& each : wish.devices) {
    list.if_array()->push_back(Json::object(
        {{"container_path", each.container_path}, {"host_path", each.host_path}, {"permissions", each.permissions}}));
  }
  return list;
}

void put(Json& config, std::string_view name, Json list) {
  if (!list.if_array()->empty()) config[name] = std::move(list);
}

/// The words from `first` on, `count` of them.
Json list_of(const std::vector<std::string>& words, std::size_t first, std::size_t count) {
  Json list = Json::array();
  for (std::size_t i = first; i < first + count; ++i) list.if_array()->emplace_back(words[i]);
  return list;
}

Json environment_document(const Environment& environment) {
  Json list = Json::array();
  for (const auto& [name, value] : environment) {
    Json entry = Json::object({{"key", name}});
    if (!value.empty()) entry["value"] = value;
    list.if_array()->push_back(std::move(entry));
  }
  return list;
}

void add_streams(const api::Container& container, Json& config) {
  if (container.standard_input) config["stdin"] = true;
  if (container.standard_input_once) config["stdin_once"] = true;
  if (container.tty) config["tty"] = true;
}

Result<Json> linux_part(const api::Pod& pod, const api::Container& container, const ContainerWish& wish) {
  SPILLWAY_TRY(security, security_context(pod, container, wish.security));
  Json& namespaces = security["namespace_options"];
  const Json* pid = namespaces.find("pid");
  if (!wish.target_container.empty() && pid != nullptr && *pid == Json(kContainerMode)) {
    namespaces["pid"] = kTarget;
    namespaces["target_id"] = wish.target_container;
  }
  return Json::object(
      {{"resources", container_resources(pod, container, wish.resources)}, {"security_context", std::move(security)}});
}

}  // namespace

Result<Json> container_config(const api::Pod& pod, const api::Container& container, const ContainerWish& wish) {
  SPILLWAY_TRY(linux, linux_part(pod, container, wish));
  Json config = Json::object({{"annotations", annotations_of(pod, container, wish)}, {"linux", std::move(linux)}});
  config["metadata"] = Json::object({{"name", container.name}});
  if (wish.restart_count != 0) config["metadata"]["attempt"] = std::int64_t{wish.restart_count};
  config["image"] = Json::object({{"image", wish.image_ref}});
  if (!container.image.empty()) config["image"]["user_specified_image"] = container.image;
  config["labels"] = Json::object({{kPodNameLabel, pod.metadata.name},
                                   {kPodNamespaceLabel, pod.metadata.ns},
                                   {kPodUidLabel, pod.metadata.uid},
                                   {kContainerNameLabel, container.name}});
  config["log_path"] = container_log_path(container.name, wish.restart_count);
  SPILLWAY_TRY(words, words_of(container, wish.environment));
  put(config, "command", list_of(words, 0, container.command.size()));
  put(config, "args", list_of(words, container.command.size(), container.args.size()));
  if (!container.working_dir.empty()) config["working_dir"] = container.working_dir;
  put(config, "envs", environment_document(wish.environment));
  put(config, "mounts", mounts_of(container, wish));
  put(config, "devices", devices_of(wish));
  Json cdi = Json::array();
  for (const std::string& each : wish.cdi_devices) cdi.if_array()->push_back(Json::object({{"name", each}}));
  put(config, "CDI_devices", std::move(cdi));
  add_streams(container, config);
  return config;
}

}  // namespace spillway::agent
