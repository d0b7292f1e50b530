// Which containers of a pod to start now: init containers one after the other, then all others at once, restarts
// according to policy and back-off; and which to stop, to start them again by their new definition.
// Thread: any (pure). Source: Kubernetes docs, "Init Containers", "Sidecar Containers", "Pod Lifecycle", container
// restart policy; spec "Pod lifecycle", 5.5, 5.6.
#pragma once

#include "agent/pods/pod_worker.h"
#include "base/time.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct ContainerPlan {
  std::vector<ContainerRun*> start;
  std::vector<ContainerRun*> stop;    // they run by a definition that is not theirs any more
  std::optional<Instant> look_again;  // a back-off ends then
  bool finished = false;              // nothing runs and nothing will: the pod is to be ended
};

/// For a worker in kSyncing. Containers already starting or running are left alone.
ContainerPlan plan_containers(PodWorker& worker, Instant now);

/// The containers of a pod that this agent has not run yet. What an earlier agent left in the pod's status counts:
/// finished containers stay finished, containers that ran then are gone now and start again if their policy says so.
void restore_containers(PodWorker& worker);

/// Lets the containers of a worker follow a change of its pod. True: a definition changed.
bool adopt_definitions(PodWorker& worker);

/// What an event says about a container of ContainerPlan::stop.
std::string outdated_message(const PodWorker& worker, const ContainerRun& run);

/// Takes the end of the current run into account; says when the container may start again, if it does.
void record_exit(PodWorker& worker, ContainerRun& run, api::ContainerState::Terminated ended, Now now);

/// The container could not be started.
void record_start_failure(PodWorker& worker, ContainerRun& run, std::string reason, std::string message, Now now);

/// What is known about a container whose end nobody saw.
api::ContainerState::Terminated unseen_end(std::string message);

}  // namespace spillway::agent
