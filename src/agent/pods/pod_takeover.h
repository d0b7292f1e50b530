// Takes over a pod whose containers outlived the agent: the state of each follows from the machine and from the pod's
// status. For containers that the machine lacks, restore_containers() alone applies.
// Thread: any (pure). Source: spec "Pod lifecycle", 10.1, 10.2, 13.1, 13.3.
#pragma once

#include "agent/contract/ports.h"
#include "agent/pod_state/pod_worker.h"
#include "base/time.h"

#include <string_view>

namespace spillway::agent {

/// Called after restore_containers(). A container with another definition is treated as one whose image has changed.
/// Without a ready sandbox no container runs, and init containers run again if the pod does.
void take_over(PodWorker& worker, FoundPod found, Now now);

/// True if anything of the pod runs, even its sandbox alone.
bool is_alive(const FoundPod& found);

/// The container's entry in the reported status; nullptr: none.
const api::ContainerStatus* reported_status(const api::PodStatus& status, std::string_view container);

/// The end of one of its containers, seen before the pod's object was.
void record_found_exit(FoundPod& found, const ContainerExited& event);

}  // namespace spillway::agent
