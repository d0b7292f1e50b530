// Files that a node writes for a container: /etc/hosts and others that combine data of the machine and of the pod.
// Thread: that of the volumes; waits for the disk. Source: agent/contract/volume_ports.h; spec "Pod lifecycle", 6.9.
#pragma once

#include "agent/contract/volume_ports.h"
#include "base/error.h"
#include "host/volumes/volume_set.h"

#include <cstdint>
#include <string>

namespace spillway::host {

/// Writes it anew into `folder`, which is the container's own, for the pod whose first id is this.
Result<OpenedMount> open_managed_file(const std::string& folder, const agent::ManagedFile& file,
                                      std::uint32_t first_id);

/// The file with the container's termination message.
std::string message_file(const std::string& folder);

}  // namespace spillway::host
