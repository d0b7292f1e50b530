// The settings of the kubelet beside a companion, from the kubelet's own /configz, and the thresholds of the companion
// itself. Without access to the container runtime it acts on memory and processes only, because only the runtime knows
// the disk usage of pods.
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
  api::Json config;  // the KubeletConfiguration in effect
  eviction::ThresholdConfig thresholds;
  std::string cgroup_root;  // "" and "/": the root of the hierarchy
  CgroupDriver driver = CgroupDriver::kCgroupfs;
  std::string log_directory{kPodLogsDirectory};  // for all pods
};

/// Parses {"kubeletconfig": {...}}. kInvalid: another form.
Result<KubeletSettings> parse_configz(const api::Json& configz);

/// The socket of the container runtime that `own`, a checked KubeletConfiguration, names by containerRuntimeEndpoint
/// ("unix:///run/containerd/containerd.sock", or the path alone); empty: it names none. kInvalid: it is something else.
Result<std::string> runtime_socket(const api::Json& own);

/// The socket named by imageServiceEndpoint; empty: images are served at the socket of the runtime.
Result<std::string> image_socket(const api::Json& own);

/// Disks are watched only if a container runtime is configured.
Disks disks_of(const api::Json& own);

/// The eviction options of a companion: those of the kubelet, except for the members of `own`, a checked
/// KubeletConfiguration. Any threshold there replaces all of the kubelet's. kInvalid: an impossible threshold, one
/// about a disk that the kubelet manages, or a key without a meaning for a companion.
Result<EvictionOptions> companion_eviction(const api::Json& own, const KubeletSettings* kubelet);

/// Checks that a companion with these thresholds may act beside the kubelet. kConflict: one line that names the
/// overlapping two and the setting that corrects them.
Outcome check_clearance(const eviction::ThresholdConfig& ours, const KubeletSettings& kubelet,
                        const eviction::Capacities& capacities);

}  // namespace spillway::agent
