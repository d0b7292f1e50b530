// Sandboxes of pods whose containers need one: requested before the first container starts, and again after the runtime
// has lost one. Steps of a request: the RuntimeClass is read, if the pod names one; the runtime makes the sandbox; the
// pod is synced. A failure is tried again after kRetry, a loss after a back-off and not before the pod is empty.
// Thread: loop. Bounds: one request for each pod. Source: spec "Pod lifecycle", 4, 5.13, 8.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_sync.h"
#include "agent/pod_state/pod_table.h"
#include "agent/pod_state/pod_timers.h"

#include <string>

namespace spillway::agent {

class PodSandboxes {
 public:
  static constexpr Duration kRetry = seconds(10);

  PodSandboxes(AgentContext& context, PodTable& pods, PodEvents& events, PodTimers& timers, PodSync& sync)
      : context_(context), pods_(pods), events_(events), timers_(timers), sync_(sync) {}

  /// True if containers of the pod may start now. False: the sandbox is requested first, and the pod is synced then.
  bool ensure(PodWorker& worker, Now now);
  void on_ran(const SandboxRan& event, Now now);
  /// All containers end with the sandbox; the next sandbox is made when a container is to be started.
  void on_lost(const std::string& uid, Now now);

 private:
  void request(PodWorker& worker);
  void on_runtime_class(const std::string& uid, const Result<api::Json>& answer, Now now);
  void fail(const PodWorker& worker, const std::string& problem, Now now);
  void retry(const std::string& uid, Now now);

  AgentContext& context_;
  PodTable& pods_;
  PodEvents& events_;
  PodTimers& timers_;
  PodSync& sync_;
};

}  // namespace spillway::agent
