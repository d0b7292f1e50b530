// Stops of single containers while their pod continues: preStop hook, stop signal, grace.
// Thread: loop. Bounds: one stop for each container that runs. Source: Kubernetes docs, "Pod Lifecycle"; spec "Pod
// lifecycle", 5, 10.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/container_plan.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_table.h"
#include "agent/pods/lifecycle_hooks.h"

#include <cstdint>
#include <string>

namespace spillway::agent {

class ContainerStops {
 public:
  ContainerStops(AgentContext& context, PodTable& pods, PodEvents& events, LifecycleHooks& hooks)
      : context_(context), pods_(pods), events_(events), hooks_(hooks) {}

  /// Stops a container that a plan names.
  void stop(PodWorker& worker, const PlannedStop& planned, Now now);
  /// Stops the containers that still run in a lost sandbox.
  void stop_in_lost_sandbox(PodWorker& worker, Now now);
  /// Stops one container with the grace of its pod.
  void stop(const PodWorker& worker, const ContainerRun& run, Now now);

 private:
  void stop_after_hook(const PodWorker& worker, const ContainerRun& run, Duration grace, Now now);
  /// The hook began at `began` and has ended: it used up a part of the grace.
  void send_stop(const std::string& uid, const std::string& container, std::int32_t attempt, Duration grace,
                 Instant began, Now now);

  AgentContext& context_;
  PodTable& pods_;
  PodEvents& events_;
  LifecycleHooks& hooks_;
};

}  // namespace spillway::agent
