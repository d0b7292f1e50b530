// The postStart and preStop hooks of containers. Hooks of pods that are gone end unheard.
// Thread: loop. Bounds: one call for each hook that runs; kHookTimeMax. Source: Kubernetes docs, "Container Lifecycle
// Hooks"; spec "Pod lifecycle", 9.7.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_table.h"
#include "agent/probes/handler_calls.h"
#include "api/object/probe.h"

#include <functional>

namespace spillway::agent {

/// No postStart hook takes longer: there is no limit upstream.
inline constexpr Duration kHookTimeMax = hours(24);

/// True if the hook did its work, perhaps by another protocol.
bool has_succeeded(const containers::ProbeVerdict& hook);

class LifecycleHooks {
 public:
  using PostStartDone =
      std::function<void(PodWorker& worker, ContainerRun& run, const containers::ProbeVerdict& verdict, Now now)>;

  LifecycleHooks(AgentContext& context, HandlerCalls& calls, PodTable& pods, PodEvents& events)
      : context_(context), calls_(calls), pods_(pods), events_(events) {}

  /// `done` is called if the same run of the container still starts when the hook has ended.
  void run_post_start(const PodWorker& worker, const ContainerRun& run, const api::Handler& hook, PostStartDone done,
                      Now now);
  /// `done` is called without a hook as well, at once.
  void run_pre_stop(const PodWorker& worker, const ContainerRun& run, Duration grace, std::function<void(Now)> done,
                    Now now);

 private:
  void record_fallback(const PodWorker& worker, const containers::ProbeVerdict& verdict, Now now);
  void on_pre_stop(const std::string& uid, const std::string& container, const containers::ProbeVerdict& verdict,
                   const std::function<void(Now)>& done, Now now);

  AgentContext& context_;
  HandlerCalls& calls_;
  PodTable& pods_;
  PodEvents& events_;
};

}  // namespace spillway::agent
