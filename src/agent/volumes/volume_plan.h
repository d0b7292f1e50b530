// The volumes that a pod needs, and how each is made. Thread: any (pure). Source: Kubernetes docs, "Volumes"; spec "Pod
// lifecycle", 7.1, 7.3, 7.4.
#pragma once

#include "agent/contract/volume_ports.h"
#include "agent/volumes/payload.h"
#include "api/object/pod.h"
#include "base/bytes.h"
#include "base/error.h"

#include <optional>
#include <vector>

namespace spillway::agent {

/// The volumes that a container of the pod mounts, in the order of the specification.
std::vector<const api::Volume*> mounted_volumes(const api::Pod& pod);

/// Volumes that are read-only even if a mount is not.
bool is_always_read_only(const api::Volume& volume);

/// The size of a directory in memory: the smallest of the known limits above zero.
std::optional<Bytes> memory_directory_size(const api::EmptyDirVolume& volume, std::optional<Bytes> pod_memory_limit,
                                           std::optional<Bytes> allocatable);

struct VolumeFacts {
  std::optional<Bytes> pod_memory_limit;  // all containers have one: their sum
  std::optional<Bytes> allocatable_memory;
};

/// The request to the machine; files of a payload are still to be filled in. kInvalid: a kind of volume that is not
/// supported here.
Result<VolumeSetup> setup_of(const api::Pod& pod, const api::Volume& volume, const VolumeFacts& facts);

}  // namespace spillway::agent
