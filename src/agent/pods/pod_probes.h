// Probes of the containers that run: their results as the state of the containers, and what follows when one changes.
// Thread: loop. Bounds: those of the prober. Source: spec "Pod lifecycle", 1.4, 9.1-9.5, 13.1.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/container_plan.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_sync.h"
#include "agent/pod_state/pod_table.h"
#include "agent/probes/prober.h"

#include <optional>
#include <string>

namespace spillway::agent {

class PodProbes final : private ProbedPods {
 public:
  PodProbes(AgentContext& context, Rng rng, HandlerCalls& calls, PodTable& pods, PodEvents& events, PodSync& sync);

  /// Containers that are older than the agent are first probed at a random time within their period.
  void start(Now now) { prober_.start(now); }

  /// Adds the probes of the pod's containers. Does nothing for a known pod.
  void add(const api::Pod& pod, Now now) { prober_.add(pod, now); }

  void remove(const std::string& uid) { prober_.remove(uid); }

  /// The container has just started: its readiness is probed at once.
  void wake(const std::string& uid, const std::string& container, Now now) { prober_.wake(uid, container, now); }

  /// Restores the probe results of containers that kept running, from the status reported earlier.
  void resume(const PodWorker& worker, const api::PodStatus& reported);
  /// Sets `started` and `ready` of all containers.
  void apply(PodWorker& worker) const;
  /// The results by which containers are restarted.
  ProbesSeen results_of(const PodWorker& worker) const;

 private:
  std::optional<containers::ProbedContainer> probed_container(const std::string& uid, const std::string& container,
                                                              Now now) const override;
  HandlerPlace place_of(const std::string& uid, const std::string& container) const override;
  void on_probe_event(const std::string& uid, const std::string& container, const containers::ProbeEvent& event,
                      Now now) override;
  void on_probe_result(const std::string& uid, containers::ProbeKind kind, Now now) override;

  AgentContext& context_;
  PodTable& pods_;
  PodEvents& events_;
  PodSync& sync_;
  Prober prober_;
};

}  // namespace spillway::agent
