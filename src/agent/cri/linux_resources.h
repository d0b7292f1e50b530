// Limits and weights of containers and pods, as the runtime is told them.
// Thread: any (pure). The result is a document with the field names of the CRI. Source: Kubernetes docs, "Resource
// Management for Pods and Containers", "Swap memory management"; spec "Pod lifecycle", 6.5.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/bytes.h"

#include <string>
#include <vector>

namespace spillway::agent {

/// What the machine has to do with it.
struct ResourceFacts {
  bool cgroup_v2 = true;
  bool cpu_cfs_quota = true;
  bool single_process_oom_kill = false;  // as configured; version 1 always does
  std::string swap_behavior;             // "", NoSwap, LimitedSwap
  bool swap_controller = false;
  Bytes machine_memory;
  Bytes machine_swap;
  std::vector<std::string> huge_page_sizes;  // of the machine: "2MB", "1GB"
};

api::Json container_resources(const api::Pod& pod, const api::Container& container, const ResourceFacts& facts);

/// Of all containers of a pod together, without its overhead.
api::Json sandbox_resources(const api::Pod& pod, bool cpu_cfs_quota);
/// Of the pod's overhead.
api::Json sandbox_overhead(const api::Pod& pod, bool cpu_cfs_quota);

}  // namespace spillway::agent
