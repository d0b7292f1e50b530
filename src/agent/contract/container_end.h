// The end of a container in the form of its status. Thread: any (pure). Source: Kubernetes API reference, core/v1
// ContainerStateTerminated; spec "Pod lifecycle", 5.8.
#pragma once

#include "agent/contract/ports.h"
#include "api/object/pod.h"

namespace spillway::agent {

/// Uses the runtime's reason, or one that follows from the code. The container id is the event's: empty if it is made
/// from the names.
api::ContainerState::Terminated terminated_by(const ContainerExited& event);

}  // namespace spillway::agent
