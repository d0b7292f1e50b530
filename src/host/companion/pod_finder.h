// Finds the cgroups that a kubelet and its runtime made for pods and containers. What was found is held as long as the
// name leads to it. Thread: loop. Source: agent/companion/pod_cgroup.h.
#pragma once

#include "agent/companion/foreign_pods.h"
#include "agent/companion/pod_cgroup.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// Detects the driver that made the tree below `cgroup_root`: the one whose kubepods exists, `configured` if both do.
/// kNotFound: neither exists; the error names possible causes.
Result<agent::CgroupDriver> detect_driver(const CgroupDir& root, const std::string& cgroup_root,
                                          agent::CgroupDriver configured);

struct FoundContainer {
  std::string id;
  bool monitor = false;
  CgroupDir cgroup;
};

class PodFinder {
 public:
  /// `root`: of the hierarchy; must outlive the finder.
  PodFinder(const CgroupDir& root, agent::CgroupDriver driver, std::string cgroup_root)
      : root_(root), driver_(driver), cgroup_root_(std::move(cgroup_root)) {}

  /// `held`: what was found before, if anything; it is kept if it is still there. kNotFound: the pod has no cgroup.
  Result<CgroupDir> find(const agent::PodPlace& pod, CgroupDir held);

  /// Children of a pod's cgroup that belong to containers, by name. `held`: what was found before.
  static std::vector<FoundContainer> containers(const CgroupDir& pod, std::vector<FoundContainer> held);

 private:
  Result<const CgroupDir*> parent(const std::string& path);

  const CgroupDir& root_;
  agent::CgroupDriver driver_;
  std::string cgroup_root_;
  std::map<std::string, CgroupDir> parents_;  // the classes', by path
};

}  // namespace spillway::host
