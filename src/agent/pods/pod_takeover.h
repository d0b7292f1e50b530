// A pod whose containers outlived the agent: where each stands is what the machine has, and what the pod's status says
// of the same containers. Without what the machine has, restore_containers() is all there is.
// Thread: any (pure). Source: spec "Pod lifecycle", 10.1, 10.2, 13.1, 13.3.
#pragma once

#include "agent/contract/ports.h"
#include "agent/pods/pod_worker.h"
#include "base/time.h"

#include <string_view>

namespace spillway::agent {

/// After restore_containers(). A container that was made by another definition is one whose image has changed. Without
/// a sandbox that is ready none runs, and init containers run again if the pod does.
void take_over(PodWorker& worker, FoundPod found, Now now);

/// Something of the pod runs, be it its sandbox.
bool is_alive(const FoundPod& found);

/// The container's entry in the reported status; nullptr: none.
const api::ContainerStatus* told_of(const api::PodStatus& status, std::string_view container);

/// The end of one of its containers, seen before the pod's object was.
void note_exit(FoundPod& found, const ContainerExited& event);

}  // namespace spillway::agent
