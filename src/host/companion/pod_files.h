// Files that a kubelet and its runtime keep on disk for a pod outside its containers: logs and the hosts file. Counted
// in blocks taken, as du does. Bounds: kEntriesMax entries per directory. Thread: not the loop: a disk may hang.
// Source: spec "Node agent", 10.6, 10.8; Kubernetes docs, "Logging Architecture", log locations.
#pragma once

#include "agent/companion/foreign_storage.h"

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::host {

/// The directory of one pod's files.
struct PodFolder {
  std::string uid;        // UID as the kubelet has it
  std::string logs;       // "/var/log/pods/<namespace>_<name>_<uid>": a folder for each container
  std::string directory;  // "/var/lib/kubelet/pods/<uid>"
  std::vector<agent::DiskVolume> volumes;
};

inline constexpr std::size_t kEntriesMax = 10'000;

/// Missing and oversized files are left out. The times are not set.
agent::PodFiles read_pod_files(const PodFolder& folder);

}  // namespace spillway::host
