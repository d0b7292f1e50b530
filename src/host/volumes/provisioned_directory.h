// The directories of provisioned volumes: one folder per node holds them, each is named after its volume. Pods write
// below them and may create links, mounts and folders of any depth there: this code never leaves the tree, follows no
// link, and needs the same few descriptors for every depth.
// Thread: any; may wait for a file system, and removal of many files takes long.
// Source: Kubernetes docs, "Volumes", local; openat(2), renameat(2), unlinkat(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <string>

namespace spillway::host {

/// The folder of a node's provisioned volumes, below the node's state directory.
std::string provisioned_folder(const std::string& state_dir);

/// Makes the directory: mode 0777, because the ids of the pods that will write to it are unknown; the folder above
/// belongs to root alone. An existing directory is not changed. kInvalid: the name is not that of a directory.
Outcome make_provisioned(const std::string& folder, const std::string& name);

/// Opens the directory for reading. kNotFound: it does not exist.
Result<UniqueFd> open_provisioned(const std::string& folder, const std::string& name);

/// Removes the directory with all that is in it; it need not be there. After an error what is left is removed by the
/// next call, and no longer has its name.
Outcome remove_provisioned(const std::string& folder, const std::string& name);

}  // namespace spillway::host
