// The supervisors by which containers outlive this process: the program and the cgroup of all, the one that holds the
// namespaces of a pod without containers, the record of a container's end, and supervisors that belong to no container.
// Thread: loop. Never waits. Source: docs/adr/0013-supervised-pods.md.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/process/container_process.h"
#include "host/process/process_options.h"
#include "host/process/process_pods.h"
#include "host/supervisor/supervisor.h"

#include <sys/types.h>

#include <optional>
#include <set>
#include <vector>

namespace spillway::host {

class ContainerSupervisors {
 public:
  /// `host` outlives this object.
  explicit ContainerSupervisors(const ProcessHost& host) : host_(host) {}

  ContainerSupervisors(const ContainerSupervisors&) = delete;
  ContainerSupervisors& operator=(const ContainerSupervisors&) = delete;
  ~ContainerSupervisors() = default;

  /// From now on containers are started with supervisors.
  Outcome open();

  bool is_open() const { return static_cast<bool>(program_); }

  /// Settings of a container's supervisor; nullopt: containers have none. `volumes`: see Supervision.
  std::optional<Supervision> supervision(int volumes) const;
  /// All that run, also those of an earlier process.
  std::vector<pid_t> pids() const;

  /// Records the reported end of a container. The last supervisor of a pod that is not being stopped holds the pod's
  /// namespaces from then on.
  void record_end(ProcessPod& pod, ContainerProcess& container, const agent::ContainerExited& event) const;
  /// This supervisor holds the pod's namespaces from now on.
  void hold(ProcessPod& pod, Supervisor supervisor) const;
  /// Nothing holds the pod's namespaces any more.
  void release_holder(ProcessPod& pod) const;

  void quit(Supervisor supervisor) const { supervisor.quit(host_.loop); }

  /// Ends supervisors that are unknown in two calls in a row: they were started while their agent died, or do not
  /// answer.
  void clear_strays(const ProcessPods& pods);

 private:
  const ProcessHost& host_;
  UniqueFd program_;  // empty: pods end with this process
  CgroupDir cgroup_;
  std::set<pid_t> strays_;  // processes there that the last call could assign to no container
};

}  // namespace spillway::host
