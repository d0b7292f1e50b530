// The phase of a pod from the states of its containers.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle", pod phase; spec "Node agent", 15.1; vectors
// node-agent/pod_phase, node-agent/pod_phase_136.
#pragma once

#include "api/object/pod.h"

#include <span>
#include <string>
#include <string_view>

namespace spillway::containers {

/// kTerminal: the pod has been stopped and none of its containers will start again.
enum class PodProgress { kOngoing, kTerminal };

/// kYes: a regular container was started in the sandbox that the pod has now. With a new sandbox the pod is Pending
/// again while its init containers run.
enum class Initialized { kNo, kYes };

/// "Pending", "Running", "Succeeded" or "Failed". `statuses`: those of init and regular containers, by name. Containers
/// that ended count by their own restart policies and rules.
std::string_view phase_of(const api::Pod& pod, std::span<const api::ContainerStatus> statuses, PodProgress progress,
                          Initialized initialized);

/// The phase to report, and its reason. A terminal phase is kept, whether this node or the API server has set it, and
/// so is its reason. `previous`: the status that this node reported last.
struct ReportedPhase {
  std::string phase;
  std::string reason;
  std::string message;

  friend bool operator==(const ReportedPhase&, const ReportedPhase&) = default;
};

ReportedPhase resolve_phase(const api::Pod& pod, const api::PodStatus& previous, std::string_view phase);

}  // namespace spillway::containers
