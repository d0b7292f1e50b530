// Selects the containers of a worker to start and stop now: those of containers::compute_pod_actions() whose back-off
// is over; and computes their next states. Thread: any (pure). Source: Kubernetes docs, "Init Containers", "Sidecar
// Containers", "Pod Lifecycle", container restart policy; spec "Pod lifecycle", 5.
#pragma once

#include "agent/pod_state/pod_worker.h"
#include "base/time.h"
#include "policy/containers/pod_actions.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct PlannedStop {
  ContainerRun* run = nullptr;
  containers::ContainerToStop stop;
  bool again = false;
};

struct ContainerPlan {
  std::vector<ContainerRun*> start;  // in this order
  std::vector<PlannedStop> stop;
  std::vector<ContainerRun*> backs_off;  // containers that enter CrashLoopBackOff
  std::optional<Instant> requeue_at;     // a back-off ends then
  bool finished = false;                 // nothing runs or will run: end the pod
};

/// Results of probes by container_id().
struct ProbesSeen {
  containers::ProbeResults liveness;
  containers::ProbeResults startup;
};

/// Sandboxes of the pod, newest first. The process runtime has none: there the pod itself counts as one, once it has
/// been created.
std::vector<containers::Sandbox> sandboxes_of(const PodWorker& worker);

/// Plans the containers of a worker in kSyncing.
ContainerPlan plan_containers(PodWorker& worker, const ProbesSeen& probes, Instant now);

/// True if a container runs, starts or stops.
bool holds_container(const PodWorker& worker);

/// Runs the init containers again, because the pod has lost its sandbox. Not while one is running.
void repeat_init_containers(PodWorker& worker);

/// The containers of a pod that this agent has not run yet. The status that an earlier agent wrote counts: finished
/// containers stay finished; containers that ran then count as ended and are started again if their policy allows.
void restore_containers(PodWorker& worker, Instant now);

/// Applies a change of the pod to the containers of its worker. True: a definition changed, or ephemeral containers
/// were added.
bool adopt_definitions(PodWorker& worker);

/// Takes the end of the current run into account.
void record_exit(ContainerRun& run, api::ContainerState::Terminated ended, Instant now);

/// A container could not be started because its pod lost its sandbox meanwhile: it starts anew with the next one.
void forget_start(ContainerRun& run);

/// The container could not be started.
void record_start_failure(PodWorker& worker, ContainerRun& run, std::string reason, std::string message, Now now);

/// The status of a container whose end was not observed.
api::ContainerState::Terminated unseen_end(std::string message);

/// "p_ns(u1)", as events name a pod.
std::string description_of(const api::Pod& pod);

}  // namespace spillway::agent
