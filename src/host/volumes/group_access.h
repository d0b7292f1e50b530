// The files of a volume given to a group, as fsGroup asks for. Thread: any; may wait for a file system. Source:
// Kubernetes docs, "Configure a Security Context for a Pod or Container", fsGroup; spec "Pod lifecycle", 7.7.
#pragma once

#include "base/error.h"

#include <sys/types.h>

namespace spillway::host {

enum class GroupAccess { kRead, kReadWrite };

/// The directory and everything in it, a hundred levels deep, without following links. The first error; the others are
/// done nevertheless.
Outcome give_to_group(int directory, gid_t group, GroupAccess access);

}  // namespace spillway::host
