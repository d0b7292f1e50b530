// Addresses of a pod, and of the place where handlers of its containers are executed. Thread: any (pure).
#pragma once

#include "agent/containers/container_env.h"
#include "agent/contract/ports.h"
#include "agent/pod_state/pod_worker.h"
#include "agent/probes/handler_calls.h"

namespace spillway::agent {

/// The addresses of the pod's sandbox; those of the node for pods without a network of their own.
PodAddresses addresses_of(const PodWorker& worker, const MachineInfo& machine);

/// The place of a container's handlers; references in commands are not expanded there.
HandlerPlace place_of(const PodWorker& worker, const ContainerRun& run, containers::HttpPurpose purpose,
                      const MachineInfo& machine);

}  // namespace spillway::agent
