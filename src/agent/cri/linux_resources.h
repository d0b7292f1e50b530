// Limits and weights of containers and pods, in the form of requests to a container runtime.
// Thread: any (pure). The result is a document with the field names of the CRI. Source: Kubernetes docs, "Resource
// Management for Pods and Containers", "Swap memory management", "Manage HugePages"; KEP-2570; spec "Pod lifecycle",
// 6.5; vectors kubelet-surface/cpu_weights, swap_limits, hugepage_limits, memory_qos.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/bytes.h"
#include "base/error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// Gate MemoryQoS: memory.min and memory.high (cgroup version 2).
struct MemoryQos {
  double throttling_factor = 0.9;                // in (0, 1]: how far between request and limit memory.high is
  std::int64_t page_size = 4096;                 // bytes
  std::optional<std::int64_t> allocatable = {};  // the node's, in bytes; the limit of containers without one
};

/// Gate QOSReserved: memory that lower classes of pods leave to higher ones.
struct QosReserve {
  std::int64_t percent = 0;  // share of what the higher classes request
  Bytes allocatable;         // the node's memory without reservations
};

/// Facts about the machine and its configuration.
struct ResourceFacts {
  bool cgroup_v2 = true;
  bool cpu_cfs_quota = true;
  std::int64_t cpu_period_micros = 100'000;
  bool single_process_oom_kill = false;  // as configured; version 1 always does
  bool node_swap = true;                 // gate NodeSwap
  std::string swap_behavior;             // "", NoSwap, LimitedSwap
  bool swap_controller = false;
  Bytes machine_memory;
  Bytes machine_swap;
  std::vector<std::string> huge_page_sizes;        // sizes that the machine has: "2MB", "1GB"
  std::vector<std::int64_t> huge_page_bytes = {};  // sizes that cgroups limit
  std::optional<MemoryQos> memory_qos = {};
  std::optional<QosReserve> qos_reserve = {};
};

api::Json container_resources(const api::Pod& pod, const api::Container& container, const ResourceFacts& facts);

/// The share of the machine's swap that a container may use with swapBehavior LimitedSwap: that of its memory request
/// in the machine's memory. kInvalid: it requests more than there is.
Result<std::int64_t> swap_share(std::int64_t request_bytes, const ResourceFacts& facts);

/// memory.min of a pod's cgroup with the gate MemoryQoS: what its containers request together. nullopt: nothing.
std::optional<Bytes> protected_memory(const api::Pod& pod);

/// The page sizes, as the CRI names them, of the files in /sys/kernel/mm/hugepages ("hugepages-2048kB" → "2MB"), in
/// their order. Other files are left out.
std::vector<std::string> huge_page_sizes(const std::vector<std::string>& files);
/// Huge pages that the pod may use: page size in bytes → bytes. Sizes that it does not request are left out.
std::map<std::int64_t, Bytes> requested_huge_pages(const api::Pod& pod);

/// Resources of all containers of a pod together, without its overhead.
api::Json sandbox_resources(const api::Pod& pod, const ResourceFacts& facts);
/// Resources of the pod's overhead.
api::Json sandbox_overhead(const api::Pod& pod, const ResourceFacts& facts);

}  // namespace spillway::agent
