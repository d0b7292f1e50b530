// The end of a pod's processes, from the decision to the last of them:
//   1. begin() sets the grace, and stops the timers and the updates of volumes;
//   2. the containers are stopped in order, each after its preStop hook, where the pod has such an order and the time;
//   3. StopPod ends what is left. Without an order it is all;
//   4. on_stopped() gives containers whose end was not seen an end.
// A forced end (eviction, shutdown, preemption, deadline) may begin it, shorten its grace, or end it at once (kill()).
// Thread: loop. Bounds: one timer for each pod that ends in order. Source: Kubernetes docs, "Pod Lifecycle",
// termination; spec "Pod lifecycle", 10.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_sync.h"
#include "agent/pod_state/pod_table.h"
#include "agent/pod_state/pod_timers.h"
#include "agent/pods/lifecycle_hooks.h"
#include "agent/volumes/pod_volumes.h"

#include <string>

namespace spillway::agent {

class PodStop {
 public:
  PodStop(AgentContext& context, PodTable& pods, PodVolumes& volumes, PodEvents& events, PodTimers& timers,
          LifecycleHooks& hooks, PodSync& sync)
      : context_(context),
        pods_(pods),
        volumes_(volumes),
        events_(events),
        timers_(timers),
        hooks_(hooks),
        sync_(sync) {}

  /// Ends a pod that is not in kTerminating.
  void begin(PodWorker& worker, Now now);
  /// Ends the pod for that reason; one that is ending may get less grace.
  void force(PodWorker& worker, ForcedEnd how, Now now);
  /// The grace of a pod in kTerminating may have become shorter.
  void shorten_grace(PodWorker& worker);
  /// Takes the remaining grace from a pod in kTerminating.
  void kill(PodWorker& worker);
  /// A container of the pod has ended, or will not start.
  void on_container_gone(PodWorker& worker, const std::string& container, Now now);
  /// No process of a pod in kTerminating is left.
  void on_stopped(PodWorker& worker);

  /// The pod is removed, whatever its state: nothing follows any more.
  void forget(PodWorker& worker) { give_up_order(worker); }

 private:
  void advance_order(PodWorker& worker, Now now);
  void on_hook_done(const std::string& uid, const std::string& container, Now now);
  void arm_order(PodWorker& worker);
  void give_up_order(PodWorker& worker);
  void send_stop(const PodWorker& worker, Duration grace);

  AgentContext& context_;
  PodTable& pods_;
  PodVolumes& volumes_;
  PodEvents& events_;
  PodTimers& timers_;
  LifecycleHooks& hooks_;
  PodSync& sync_;
};

}  // namespace spillway::agent
