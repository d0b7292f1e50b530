#include "agent/companion/pod_cgroup.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr std::string_view kHashAnnotation = "kubernetes.io/config.hash";
constexpr std::string_view kScope = ".scope";

bool is_container_id(std::string_view text) {
  return text.size() >= 12 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

}  // namespace

std::string kubepods_cgroup(CgroupDriver driver, std::string_view cgroup_root) {
  return cgroups::path_of(driver, cgroups::kubepods_name(driver, cgroup_root)).value_or("/kubepods");
}

Result<std::string> pod_cgroup(CgroupDriver driver, std::string_view cgroup_root, api::QosClass qos,
                               std::string_view uid) {
  SPILLWAY_TRY(name, cgroups::pod_name(cgroups::kubepods_name(driver, cgroup_root), qos, uid));
  return cgroups::path_of(driver, name);
}

std::string cgroup_uid(const api::Pod& pod) {
  const auto hash = pod.metadata.annotations.find(kHashAnnotation);
  return api::is_mirror(pod) && hash != pod.metadata.annotations.end() ? hash->second : pod.metadata.uid;
}

std::optional<ContainerCgroup> parse_container_cgroup(std::string_view name) {
  if (name.ends_with(kScope)) name.remove_suffix(kScope.size());
  bool monitor = false;
  for (const std::string_view prefix : {"cri-containerd-", "crio-conmon-", "crio-", "docker-"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    monitor = prefix == "crio-conmon-";
    break;
  }
  if (!is_container_id(name)) return std::nullopt;
  return ContainerCgroup{std::string(name), monitor};
}

std::vector<NamedContainer> named_containers(const api::Pod& pod) {
  std::vector<NamedContainer> named;
  for (const auto* statuses : {&pod.status.init_container_statuses, &pod.status.container_statuses,
                               &pod.status.ephemeral_container_statuses}) {
    for (const api::ContainerStatus& status : *statuses) {
      const std::size_t scheme = status.container_id.find("://");
      if (scheme == std::string::npos || scheme + 3 == status.container_id.size()) continue;
      named.push_back({status.container_id.substr(scheme + 3), status.name});
    }
  }
  return named;
}

}  // namespace spillway::agent
