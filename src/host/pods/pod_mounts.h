// Mounts below the directories of a node's pods, in the mount namespace of this process. Thread: any; reads /proc.
#pragma once

#include <string>
#include <vector>

namespace spillway::host {

/// Mount points below "<state_dir>/pods", as paths below the state directory as it was given. None if they cannot be
/// read.
std::vector<std::string> mounts_of_pods(const std::string& state_dir);

}  // namespace spillway::host
