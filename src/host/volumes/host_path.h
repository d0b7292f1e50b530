// A file or directory of the machine that a pod names. Thread: any; may wait for a file system. Source: Kubernetes
// docs, "Volumes", hostPath; spec "Pod lifecycle", 7.4.
#pragma once

#include "agent/contract/volume_ports.h"
#include "base/error.h"
#include "base/unique_fd.h"

#include <span>
#include <string>

namespace spillway::host {

/// Opens the host path as a path, after making it if its type requires that. kForbidden: it is, holds or lies below one
/// of the `hidden` files and directories, or a link on the way is not root's. Errors of the type are upstream's. A
/// refused path is not made: the nearest existing directory is checked first.
Result<UniqueFd> open_host_path(const agent::HostPath& wanted, std::span<const std::string> hidden);

/// The directory of a local volume, opened for reading, under the same rules. Errors are upstream's.
Result<UniqueFd> open_local_directory(const std::string& path, std::span<const std::string> hidden);

}  // namespace spillway::host
