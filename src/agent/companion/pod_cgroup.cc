#include "agent/companion/pod_cgroup.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr std::string_view kHashAnnotation = "kubernetes.io/config.hash";
constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kScope = ".scope";

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) segments.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(path.size(), slash + 1));
  }
  return segments;
}

/// Each slice is named after the way to it, and a dash would be a step of it: "a-b", "c" → a_b.slice/a_b-c.slice.
std::string systemd_path(const std::vector<std::string>& segments) {
  std::string path;
  std::string prefix;
  for (std::string segment : segments) {
    std::ranges::replace(segment, '-', '_');
    prefix += (prefix.empty() ? "" : "-") + segment;
    path += "/" + prefix + std::string(kSlice);
  }
  return path;
}

std::string plain_path(const std::vector<std::string>& segments) {
  std::string path;
  for (const std::string& segment : segments) path += "/" + segment;
  return path;
}

/// A root may be written as the slice it is: "/edge.slice" means "edge".
std::vector<std::string> root_segments(CgroupDriver driver, std::string_view cgroup_root) {
  std::vector<std::string> segments = segments_of(cgroup_root);
  if (driver == CgroupDriver::kCgroupfs) return segments;
  for (std::string& segment : segments) {
    if (segment.ends_with(kSlice)) segment.resize(segment.size() - kSlice.size());
  }
  return segments;
}

std::string path_of(CgroupDriver driver, const std::vector<std::string>& segments) {
  return driver == CgroupDriver::kSystemd ? systemd_path(segments) : plain_path(segments);
}

bool is_container_id(std::string_view text) {
  return text.size() >= 12 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

}  // namespace

std::string_view to_string(CgroupDriver driver) {
  return driver == CgroupDriver::kCgroupfs ? "cgroupfs" : "systemd";
}

std::optional<CgroupDriver> parse_cgroup_driver(std::string_view text) {
  if (text == "cgroupfs") return CgroupDriver::kCgroupfs;
  if (text == "systemd") return CgroupDriver::kSystemd;
  return std::nullopt;
}

std::string kubepods_cgroup(CgroupDriver driver, std::string_view cgroup_root) {
  std::vector<std::string> segments = root_segments(driver, cgroup_root);
  segments.emplace_back("kubepods");
  return path_of(driver, segments);
}

std::string pod_cgroup(CgroupDriver driver, std::string_view cgroup_root, api::QosClass qos, std::string_view uid) {
  std::vector<std::string> segments = root_segments(driver, cgroup_root);
  segments.emplace_back("kubepods");
  if (qos == api::QosClass::kBurstable) segments.emplace_back("burstable");
  if (qos == api::QosClass::kBestEffort) segments.emplace_back("besteffort");
  segments.push_back("pod" + std::string(uid));
  return path_of(driver, segments);
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
