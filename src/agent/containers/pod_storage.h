// Ephemeral storage that a pod uses on its node. Thread: any (pure). Source: Kubernetes docs, "Local ephemeral
// storage"; spec "Node agent", 10.8; vectors node-agent/pod_ephemeral_storage.
#pragma once

#include "api/object/summary.h"

#include <optional>
#include <vector>

namespace spillway::agent {

struct ContainerStorage {
  std::optional<api::FsStats> rootfs;
  std::optional<api::FsStats> logs;  // counted only with a rootfs
};

/// The source of statistics. From the container runtime, the inodes of container logs are known and counted.
enum class StatsSource { kCadvisor, kCri };

struct PodStorage {
  std::vector<ContainerStorage> containers;
  std::vector<api::FsStats> ephemeral_volumes;  // emptyDir on disk, configMap, gitRepo
  std::optional<api::FsStats> pod_logs;
  std::optional<api::FsStats> etc_hosts;
};

/// Sizes of the node's file system with the pod's usage; what is unknown of every part is absent. The time is the
/// latest of all parts.
api::FsStats pod_ephemeral_storage(const api::FsStats& node_fs, const PodStorage& storage, StatsSource source);

}  // namespace spillway::agent
