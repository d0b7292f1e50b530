// Why a container says it has ended: what it wrote into its message file, else, if it wants that, the end of its log.
// Thread: any; reads two files of the node's own. Source: Kubernetes docs, "Determine the Reason for Pod Failure"; spec
// "Pod lifecycle", 9.10.
#pragma once

#include "agent/contract/ports.h"

#include <string>

namespace spillway::host {

/// `folder`: of the files that the node made for the container. `log`: of this attempt.
std::string read_termination_message(const agent::StartContainer& command, const std::string& folder,
                                     const std::string& log, const agent::ContainerExited& event);

}  // namespace spillway::host
