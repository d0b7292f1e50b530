// The end of a container as its status tells it. Thread: any (pure). Source: Kubernetes API reference, core/v1
// ContainerStateTerminated; spec "Pod lifecycle", 5.8.
#pragma once

#include "agent/contract/ports.h"
#include "api/object/pod.h"

namespace spillway::agent {

/// With the runtime's reason, or the one that follows from the code. Its container id is the event's: empty if that is
/// to be made from the names.
api::ContainerState::Terminated terminated_by(const ContainerExited& event);

}  // namespace spillway::agent
