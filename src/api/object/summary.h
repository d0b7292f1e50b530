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

/// Pressure stall information: the share of time in which some, or all, tasks waited, in hundredths of a percent.
struct PsiShares {
  std::int32_t avg10 = 0;
  std::int32_t avg60 = 0;
  std::int32_t avg300 = 0;
  std::uint64_t total_nanos = 0;

  friend bool operator==(const PsiShares&, const PsiShares&) = default;
};

struct PsiStats {
  PsiShares full;
  PsiShares some;

  friend bool operator==(const PsiStats&, const PsiStats&) = default;
};

struct MemoryStats {
  std::optional<WallTime> time;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> usage_bytes;
  std::optional<std::uint64_t> working_set_bytes;
  std::optional<std::uint64_t> rss_bytes;
  // The next two are not in upstream's Summary, and in no document. Memory that could be taken without swapping; for a
  // cgroup, within it.
  std::optional<std::uint64_t> mem_available_bytes = {};
  std::optional<std::int64_t> swap_left_bytes = {};  // memory that could be swapped out besides
  std::optional<std::uint64_t> page_faults = {};
  std::optional<std::uint64_t> major_page_faults = {};
  std::optional<PsiStats> psi = {};

  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;
};

struct CpuStats {
  std::optional<WallTime> time;
  std::optional<std::uint64_t> usage_nano_cores;
  std::optional<std::uint64_t> usage_core_nano_seconds;
  std::optional<PsiStats> psi = {};

  friend bool operator==(const CpuStats&, const CpuStats&) = default;
};

struct IoStats {
  std::optional<WallTime> time;
  std::optional<PsiStats> psi;

  friend bool operator==(const IoStats&, const IoStats&) = default;
};

struct SwapStats {
  std::optional<WallTime> time;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> usage_bytes;

  friend bool operator==(const SwapStats&, const SwapStats&) = default;
};

/// Counters since the interface exists.
struct InterfaceStats {
  std::string name;
  std::optional<std::uint64_t> rx_bytes;
  std::optional<std::uint64_t> rx_errors;
  std::optional<std::uint64_t> tx_bytes;
  std::optional<std::uint64_t> tx_errors;

  friend bool operator==(const InterfaceStats&, const InterfaceStats&) = default;
};

struct NetworkStats {
  std::optional<WallTime> time;
  InterfaceStats primary;  // eth0; without a name: there is none
  std::vector<InterfaceStats> interfaces;

  friend bool operator==(const NetworkStats&, const NetworkStats&) = default;
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
  std::optional<WallTime> start_time = {};
  std::optional<SwapStats> swap = {};
  std::optional<IoStats> io = {};

  friend bool operator==(const ContainerStats&, const ContainerStats&) = default;
};

struct VolumeStats {
  std::string name;
  FsStats fs;

  friend bool operator==(const VolumeStats&, const VolumeStats&) = default;
};

/// Page cache of a pod's cgroup. Not in upstream's Summary, and in no document.
struct FileCache {
  std::uint64_t inactive_bytes = 0;  // read once, or not for long; no part of the working set
  std::uint64_t active_bytes = 0;
  /// Bytes of files that were reclaimed and read again, since the cgroup was made; nullopt: the kernel does not count
  /// them.
  std::optional<std::uint64_t> refaulted_bytes = {};

  friend bool operator==(const FileCache&, const FileCache&) = default;
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
  std::optional<WallTime> start_time = {};
  std::optional<SwapStats> swap = {};
  std::optional<NetworkStats> network = {};
  std::optional<IoStats> io = {};
  std::optional<FileCache> file_cache = {};

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
  std::optional<WallTime> start_time = {};
  std::optional<SwapStats> swap = {};
  std::optional<NetworkStats> network = {};
  std::optional<IoStats> io = {};

  friend bool operator==(const NodeStats&, const NodeStats&) = default;
};

struct Summary {
  NodeStats node;
  std::vector<PodStats> pods;

  friend bool operator==(const Summary&, const Summary&) = default;
};

}  // namespace spillway::api
