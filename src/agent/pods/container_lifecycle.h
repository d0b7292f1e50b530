// Reports of the machine about containers: one has started, could not be started, or has ended. A report about an
// earlier run than the present one is ignored.
// Thread: loop. Bounds: the containers of the node's pods. Source: Kubernetes docs, "Pod Lifecycle"; spec "Pod
// lifecycle", 5, 9.7.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_sync.h"
#include "agent/pod_state/pod_table.h"
#include "agent/pods/container_stops.h"
#include "agent/pods/lifecycle_hooks.h"
#include "agent/pods/pod_probes.h"
#include "agent/pods/pod_stop.h"

namespace spillway::agent {

class ContainerLifecycle {
 public:
  ContainerLifecycle(PodTable& pods, PodEvents& events, LifecycleHooks& hooks, PodProbes& probes, ContainerStops& stops,
                     PodStop& pod_stop, PodSync& sync)
      : pods_(pods), events_(events), hooks_(hooks), probes_(probes), stops_(stops), pod_stop_(pod_stop), sync_(sync) {}

  /// The container runs once its postStart hook has ended.
  void on_started(const ContainerStarted& event, Now now);
  void on_start_failed(const ContainerStartFailed& event, Now now);
  void on_exited(const ContainerExited& event, Now now);

 private:
  void on_post_start(PodWorker& worker, ContainerRun& run, const containers::ProbeVerdict& verdict, Now now);
  void set_running(PodWorker& worker, ContainerRun& run, Now now);

  PodTable& pods_;
  PodEvents& events_;
  LifecycleHooks& hooks_;
  PodProbes& probes_;
  ContainerStops& stops_;
  PodStop& pod_stop_;
  PodSync& sync_;
};

}  // namespace spillway::agent
