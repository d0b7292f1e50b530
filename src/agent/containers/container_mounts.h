// Plans a container's mounts: which directory of which volume appears at which path. Thread: any (pure). Source:
// Kubernetes docs, "Volumes", subPath, mount propagation, recursive read-only mounts; spec "Pod lifecycle", 6.10.
#pragma once

#include "agent/containers/container_env.h"
#include "agent/contract/volume_ports.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::agent {

struct PlannedMount {
  VolumeBinding binding;
  Propagation propagation = Propagation::kNone;
};

struct MountPlan {
  std::vector<PlannedMount> mounts;  // in the order of the container's volumeMounts
  bool has_own_hosts = false;        // a mount of the container replaces /etc/hosts
  /// The error that ended the list, in upstream's words; the entries of `mounts` precede it.
  std::optional<Error> problem;
};

/// Support of the runtime for read-only mounts below a read-only one.
enum class RecursiveReadOnly { kUnsupported, kSupported };

/// Plans the mounts of one container. `volumes`: names of all volumes of the pod; `read_only`: those among them that
/// are always read-only.
MountPlan plan_mounts(const api::Container& container, const std::set<std::string>& volumes,
                      const std::set<std::string>& read_only, const Environment& environment,
                      RecursiveReadOnly recursion);

inline constexpr std::string_view kHostsPath = "/etc/hosts";

}  // namespace spillway::agent
