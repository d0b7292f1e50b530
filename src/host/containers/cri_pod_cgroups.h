// The cgroups of pods whose containers a container runtime runs: made and limited here, as a kubelet's cgroupfs driver
// does, or by systemd as slices, and removed with their pods; those of the runtime's containers are found in them.
// Thread: loop. Never waits. Source: docs/adr/0011-container-runtime.md; spec "Node agent", 9.4.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pods.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace spillway::host {

class CriPodCgroups {
 public:
  struct Listeners {
    std::function<void(const std::string& uid)> on_slice_started;  // for a known pod, made or broken
    std::function<void()> on_slice_stopped;
  };

  /// All outlive this object.
  CriPodCgroups(const CriHost& host, CriPods& pods, Listeners listeners)
      : host_(host), pods_(pods), listeners_(std::move(listeners)) {}

  CriPodCgroups(const CriPodCgroups&) = delete;
  CriPodCgroups& operator=(const CriPodCgroups&) = delete;
  ~CriPodCgroups() = default;

  /// Makes the cgroup of a pod with its limits. With systemd's driver it is made later: pod.slice_starting.
  Outcome make(CriPod& pod);
  /// Finds the cgroup of a running container, and its first process.
  void find(const CriPod& pod, const std::string& name, CriContainer& container) const;
  /// The parent cgroup of the pod's sandbox, as the runtime is given it: below the root of the hierarchy.
  Result<std::string> parent_of_sandbox(const CriPod& pod) const;
  /// Removes the cgroup of a pod that is gone.
  void remove(api::QosClass qos, const std::string& uid);

  /// Slices that systemd is stopping.
  std::size_t stopping() const { return slices_stopping_; }

  /// Limits all pods together, or a cgroup of daemons, and reports it.
  void limit_group(const agent::LimitGroup& command);
  /// Writes weights and protected memory of the classes of pods, which follow from the pods in them.
  void update_class_limits();
  /// The function that passes limits of a running pod on to systemd; empty: the pod has no slice.
  std::function<void(const CgroupLimits& limits)> limits_of_slice(const std::string& uid) const;

 private:
  Outcome open(CriPod& pod) const;
  Outcome start_slice(CriPod& pod);
  void on_slice(const std::string& uid, api::QosClass qos, Outcome started);
  Result<CgroupDir> open_container(const CriPod& pod, const std::string& id) const;
  static std::shared_ptr<ContainerHandle> hold_process(const CgroupDir& cgroup, const std::string& name);
  void remove_directory(api::QosClass qos, const std::string& uid, int tries);
  void stop_slice(api::QosClass qos, const std::string& uid);
  bool limit_class(api::QosClass qos, CgroupLimits limits);

  const CriHost& host_;
  CriPods& pods_;
  Listeners listeners_;
  std::map<api::QosClass, CgroupLimits> class_limits_;  // as they were last written
  std::size_t slices_stopping_ = 0;
  bool limits_again_ = false;  // a class uses more than its limit: the limits are written again later
  Alive alive_;
};

}  // namespace spillway::host
