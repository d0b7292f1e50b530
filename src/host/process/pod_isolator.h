// Confines pods: each gets ids, namespaces, and a view of this machine's files.
// Thread: loop. Waits only for some system calls of processes that are made for it.
// Source: agent/contract/ports.h, PodIsolation; spec "Pod lifecycle", 6.12.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/kernel/pod_namespaces.h"
#include "host/process/id_ranges.h"
#include "host/process/pod_root.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// Namespaces and ids of a confined pod.
struct IsolatedPod {
  std::optional<PodNamespaces> namespaces;  // nullopt: those of the host
  std::optional<std::uint32_t> first_id;    // first of the pod's ids on the machine; nullopt: the pod is not confined
};

class PodIsolator {
 public:
  /// Tests everything that a confined container needs, up to the start of a program that does not exist. `pods`: the
  /// folder of their directories, which this process owns from then on. Errors name what the kernel or a missing right
  /// prevents.
  static Result<PodIsolator> create(const std::string& pods, std::vector<std::string> hidden, CgroupVersion cgroups);

  /// An isolator that confines no pod.
  PodIsolator() = default;

  /// `work`: the pod's directory, which becomes its own.
  Result<IsolatedPod> isolate(const agent::CreatePod& pod, const std::string& work);

  /// The ids of a pod that was isolated by an earlier process.
  void keep(std::uint32_t first_id) { ids_.keep(first_id); }

  /// Frees the ids of a pod that is gone.
  void release(std::uint32_t first_id) { ids_.release(first_id); }

 private:
  Result<ConfinedView> view_of(const agent::PodIsolation& wish, std::uint32_t first_id, const std::string& work,
                               const PodRoot& root, UniqueFd& home, UniqueFd& shared_memory) const;
  Result<PodNamespaces> make_namespaces(const agent::PodIsolation& wish, std::optional<std::uint32_t> first_id,
                                        const std::string& work) const;

  /// Options of a pod's root; nullopt: no pod is confined. Each pod has its own: mount points are made in it, which are
  /// directories for one pod and files for another, and whose names other pods must not see.
  std::optional<PodRootOptions> root_;
  IdRanges ids_;
};

}  // namespace spillway::host
