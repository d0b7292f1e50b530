// Removes cgroups of pods that no longer exist, left behind by a failed removal. Thread: loop. Never waits. Source:
// Kubernetes docs, "Node" (the kubelet's housekeeping of pod cgroups).
#pragma once

#include "base/error.h"
#include "host/cgroup/node_slice.h"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

class OrphanedCgroups {
 public:
  explicit OrphanedCgroups(const NodeSlice& slice) : slice_(slice) {}

  /// Kills and removes the cgroups of pods that `is_known` denies now and denied the last time: one that is being
  /// removed by others has that long. What cannot be removed yet is left for the next time. Returns the removed ones.
  std::vector<std::string> clear(const std::function<bool(std::string_view uid)>& is_known);

 private:
  const NodeSlice& slice_;
  std::set<std::string> seen_;  // paths
};

}  // namespace spillway::host
