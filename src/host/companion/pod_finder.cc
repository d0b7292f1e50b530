#include "host/companion/pod_finder.h"

#include <algorithm>
#include <utility>

namespace spillway::host {

Result<agent::CgroupDriver> detect_driver(const CgroupDir& root, const std::string& cgroup_root,
                                          agent::CgroupDriver configured) {
  const auto exists = [&](agent::CgroupDriver driver) {
    return root.open_path(agent::kubepods_cgroup(driver, cgroup_root)).has_value();
  };
  if (exists(configured)) return configured;
  const auto other =
      configured == agent::CgroupDriver::kSystemd ? agent::CgroupDriver::kCgroupfs : agent::CgroupDriver::kSystemd;
  if (exists(other)) return other;
  return make_error(ErrorCode::kNotFound,
                    "no pods' cgroup: neither {} nor {} is below {}; does the kubelet run here, and "
                    "is the host's cgroup file system mounted?",
                    agent::kubepods_cgroup(agent::CgroupDriver::kSystemd, cgroup_root),
                    agent::kubepods_cgroup(agent::CgroupDriver::kCgroupfs, cgroup_root),
                    root.file_path(Controller::kMemory));
}

Result<const CgroupDir*> PodFinder::parent(const std::string& path) {
  const auto known = parents_.find(path);
  if (known != parents_.end()) {
    const Result<CgroupDir> again = root_.open_path(path);
    if (again && known->second.is_same_as(*again)) return &known->second;
  }
  SPILLWAY_TRY(opened, root_.open_path(path));
  return &parents_.insert_or_assign(path, std::move(opened)).first->second;
}

Result<CgroupDir> PodFinder::find(const agent::PodPlace& pod, CgroupDir held) {
  SPILLWAY_TRY(path, agent::pod_cgroup(driver_, cgroup_root_, pod.qos, pod.cgroup_uid));
  const std::size_t slash = path.rfind('/');
  SPILLWAY_TRY(above, parent(path.substr(0, slash)));
  if (held && held.is_child_of(*above)) return held;
  return above->open_child(path.substr(slash + 1));
}

std::vector<FoundContainer> PodFinder::containers(const CgroupDir& pod, std::vector<FoundContainer> held) {
  std::vector<FoundContainer> found;
  const Result<std::vector<std::string>> names = pod.children();
  if (!names) return found;
  for (const std::string& name : *names) {
    const auto container = agent::parse_container_cgroup(name);
    if (!container) continue;
    const auto known = std::ranges::find_if(held, [&](const FoundContainer& each) {
      return each.id == container->id && each.monitor == container->monitor && each.cgroup;
    });
    if (known != held.end()) {
      found.push_back(std::move(*known));
    } else if (Result<CgroupDir> cgroup = pod.open_child(name)) {
      found.push_back({container->id, container->monitor, *std::move(cgroup)});
    }
  }
  return found;
}

}  // namespace spillway::host
