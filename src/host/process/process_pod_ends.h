// The end of pods of the process runtime, from StopPod to the removal of their directories. The order of it stands in
// ProcessPodEnds::advance(). Thread: loop; files are removed on threads of their own. Never waits.
// Source: spec "Pod lifecycle", 6; agent/contract/ports.h, StopPod, RemovePod.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "base/time.h"
#include "host/kernel/blocking_thread.h"
#include "host/observation/observer.h"
#include "host/process/container_supervisors.h"
#include "host/process/pod_attachments.h"
#include "host/process/pod_maker.h"
#include "host/process/process_options.h"
#include "host/process/process_pods.h"
#include "host/volumes/volume_thread.h"

#include <functional>
#include <string>

namespace spillway::host {

class ProcessPodEnds {
 public:
  /// Classes of the runtime that release what a pod has. All outlive this object.
  struct Means {
    Observer& observer;
    VolumeThread& volumes;
    BlockingThread& files;
    const ContainerSupervisors& supervisors;
    PodAttachments& attachments;
    PodMaker& maker;
  };

  /// All outlive this object.
  ProcessPodEnds(const ProcessHost& host, ProcessPods& pods, Means means) : host_(host), pods_(pods), means_(means) {}

  ProcessPodEnds(const ProcessPodEnds&) = delete;
  ProcessPodEnds& operator=(const ProcessPodEnds&) = delete;
  ~ProcessPodEnds() = default;

  void stop(const agent::StopPod& command);
  void remove(const agent::RemovePod& command);

  /// Ends all pods. `done`: called once none runs anything; replaces an earlier one.
  void shut_down(Duration grace, std::function<void()> done);

  /// Takes the next step of the end of a known pod, if it ends: after a container has ended, or failed to start.
  void advance(const std::string& uid);

 private:
  void stop_containers(ProcessPod& pod, Duration grace);
  void free_storage(const std::string& uid);
  void remove_work_files(const std::string& folder, const std::function<void()>& then);
  void release_volumes(ProcessPod& pod, std::function<void()> done = {});
  void remove_volume_files(const std::string& folder, const std::function<void()>& done);
  void remove_pod(const std::string& uid);
  void remove_directory(ProcessPod& pod);
  void remove_cgroup(api::QosClass qos, const std::string& name, int tries);
  void report_shut_down();

  const ProcessHost& host_;
  ProcessPods& pods_;
  Means means_;
  std::function<void()> on_shut_down_;
  Alive alive_;
};

}  // namespace spillway::host
