// The settings of the kubelet beside a companion, from the kubelet's own /configz, and the thresholds the companion
// itself acts by. Without access to the container runtime it acts on memory and processes only, because only the
// runtime knows the disk usage of pods.
// Thread: any (pure). Source: spec "Node agent", 12.3, 21; spec "Eviction manager", 3; docs/adr/0007-companion.md.
#pragma once

#include "agent/companion/pod_cgroup.h"
#include "agent/contract/log_paths.h"
#include "agent/contract/options.h"
#include "api/json/json.h"
#include "base/error.h"
#include "policy/eviction/clearance.h"
#include "policy/eviction/threshold_parse.h"

#include <string>

namespace spillway::agent {

/// Owner of the disk thresholds: the kubelet alone, or the companion as well.
enum class Disks { kLeftToKubelet, kWatched };

struct KubeletSettings {
  api::Json config;  // its KubeletConfiguration in effect
  eviction::ThresholdConfig thresholds;
  std::string cgroup_root;  // "" and "/": the root of the hierarchy
  CgroupDriver driver = CgroupDriver::kCgroupfs;
  std::string log_directory{kPodLogsDirectory};  // for all pods
};

/// From {"kubeletconfig": {...}}. kInvalid: it is something else.
Result<KubeletSettings> parse_configz(const api::Json& configz);

/// The socket of the container runtime that `own`, a checked KubeletConfiguration, names by containerRuntimeEndpoint
/// ("unix:///run/containerd/containerd.sock", or the path alone); empty: it names none. kInvalid: it is something else.
Result<std::string> runtime_socket(const api::Json& own);

/// Disks are watched where there is a container runtime to ask.
Disks disks_of(const api::Json& own);

/// How a companion evicts: as the kubelet does, except for the members of `own`, a checked KubeletConfiguration. Any
/// threshold there replaces all of the kubelet's. kInvalid: a threshold that cannot be, or is about a disk that is left
/// to the kubelet; a key that means nothing to a companion.
Result<EvictionOptions> companion_eviction(const api::Json& own, const KubeletSettings* kubelet);

/// Checks that a companion with these thresholds may act beside the kubelet. kConflict: one line that says which two
/// overlap and how to set them.
Outcome check_clearance(const eviction::ThresholdConfig& ours, const KubeletSettings& kubelet,
                        const eviction::Capacities& capacities);

}  // namespace spillway::agent
