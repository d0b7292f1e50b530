// The kubelet's Summary API (stats v1alpha1) as a value: what a node measured in one pass. Absent is absent, never
// zero. Eviction rules read it, /stats/summary prints it. Thread: any. Source: Kubernetes docs, "Node metrics data";
// spec "Eviction manager", 2.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::api {

struct MemoryStats {
  std::optional<WallTime> time;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> usage_bytes;
  std::optional<std::uint64_t> working_set_bytes;
  std::optional<std::uint64_t> rss_bytes;
  // Not of upstream's Summary, and in no document:
  std::optional<std::uint64_t> mem_available_bytes;  // what could be taken without swapping; of a cgroup: within it
  std::optional<std::int64_t> swap_left_bytes;       // what could be swapped out besides

  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;
};

struct CpuStats {
  std::optional<WallTime> time;
  std::optional<std::uint64_t> usage_nano_cores;
  std::optional<std::uint64_t> usage_core_nano_seconds;

  friend bool operator==(const CpuStats&, const CpuStats&) = default;
};

struct FsStats {
  std::optional<WallTime> time;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> capacity_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> inodes_free;
  std::optional<std::uint64_t> inodes;
  std::optional<std::uint64_t> inodes_used;

  friend bool operator==(const FsStats&, const FsStats&) = default;
};

struct ContainerStats {
  std::string name;
  std::optional<CpuStats> cpu;
  std::optional<MemoryStats> memory;
  std::optional<FsStats> rootfs;
  std::optional<FsStats> logs;

  friend bool operator==(const ContainerStats&, const ContainerStats&) = default;
};

struct VolumeStats {
  std::string name;
  FsStats fs;

  friend bool operator==(const VolumeStats&, const VolumeStats&) = default;
};

struct PodStats {
  std::string uid;
  std::string ns;
  std::string name;
  std::vector<ContainerStats> containers;
  std::optional<CpuStats> cpu;
  std::optional<MemoryStats> memory;
  std::vector<VolumeStats> volumes;
  std::optional<FsStats> ephemeral_storage;
  std::optional<std::uint64_t> process_count;

  friend bool operator==(const PodStats&, const PodStats&) = default;
};

struct RlimitStats {
  std::optional<WallTime> time;
  std::optional<std::int64_t> max_pid;
  std::optional<std::int64_t> running_processes;

  friend bool operator==(const RlimitStats&, const RlimitStats&) = default;
};

struct NodeStats {
  std::string node_name;
  std::vector<ContainerStats> system_containers;
  std::optional<CpuStats> cpu;
  std::optional<MemoryStats> memory;
  std::optional<FsStats> fs;
  std::optional<FsStats> image_fs;
  std::optional<FsStats> container_fs;
  std::optional<RlimitStats> rlimit;

  friend bool operator==(const NodeStats&, const NodeStats&) = default;
};

struct Summary {
  NodeStats node;
  std::vector<PodStats> pods;

  friend bool operator==(const Summary&, const Summary&) = default;
};

}  // namespace spillway::api
