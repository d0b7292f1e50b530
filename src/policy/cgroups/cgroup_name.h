// Names of the cgroups that a kubelet makes, for both cgroup drivers. A name is the list of steps below the root of the
// hierarchy: {"kubepods", "burstable", "poda-b"}.
//   cgroupfs  /kubepods/burstable/poda-b
//   systemd   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_b.slice
// Thread: any (pure). Source: Kubernetes docs, "About cgroup v2", "Container Runtimes"; systemd.slice(5); vectors
// kubelet-surface/systemd_names.
#pragma once

#include "api/object/pod.h"
#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cgroups {

enum class CgroupDriver { kCgroupfs, kSystemd };

/// "cgroupfs", "systemd".
std::string_view to_string(CgroupDriver driver);
/// nullopt: no such driver.
std::optional<CgroupDriver> parse_cgroup_driver(std::string_view text);

using CgroupName = std::vector<std::string>;

/// `base` with more steps. kInvalid: a step has a '/', which would be two steps, or a '_', which systemd's names cannot
/// distinguish from a '-'.
Result<CgroupName> cgroup_below(CgroupName base, const std::vector<std::string>& steps);

/// Empty steps are skipped; "/" without any.
std::string cgroupfs_path(const CgroupName& name);
/// kInvalid: a step is empty or has a '/', so that no slice can have the name.
Result<std::string> systemd_path(const CgroupName& name);
Result<std::string> path_of(CgroupDriver driver, const CgroupName& name);

/// A slice unit of systemd.
struct SliceUnit {
  std::string name;                // "kubepods-burstable.slice"; empty: the root, which always exists
  std::string parent = "-.slice";  // "kubepods.slice"

  friend bool operator==(const SliceUnit&, const SliceUnit&) = default;
};

/// Errors as systemd_path().
Result<SliceUnit> slice_unit(const CgroupName& name);

/// The last step of the path names all steps of a slice. A '_' becomes a '-', whichever it was.
CgroupName parse_systemd_path(std::string_view path);
CgroupName parse_cgroupfs_path(std::string_view path);
/// The path ends with a slice.
bool is_systemd_style(std::string_view path);

/// The cgroup of all pods below the kubelet's cgroupRoot. A root for the systemd driver may be given as the slice that
/// it is: "/edge.slice" is "/edge".
CgroupName kubepods_name(CgroupDriver driver, std::string_view cgroup_root);
/// The parent of the cgroups of pods: that of all pods for Guaranteed ones, else "burstable" or "besteffort" in it.
CgroupName class_name(CgroupName kubepods, api::QosClass qos);
/// The cgroup of a pod. kInvalid: the uid has a '/' or a '_'.
Result<CgroupName> pod_name(CgroupName kubepods, api::QosClass qos, std::string_view uid);

/// The uid in the name of a child of the parent of pods: "poda-b" for cgroupfs, "kubepods-burstable-poda_b.slice" for
/// systemd. nullopt: the child is no pod's.
std::optional<std::string> uid_of_child(CgroupDriver driver, const CgroupName& parent, std::string_view child);

}  // namespace spillway::cgroups
