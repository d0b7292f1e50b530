// Gives the files of a volume to a group, as fsGroup requires, or to the ids of another pod. Thread: any; may wait for
// a file system. Source: Kubernetes docs, "Configure a Security Context for a Pod or Container", fsGroup; spec "Pod
// lifecycle", 7.7.
#pragma once

#include "base/error.h"

#include <sys/types.h>

#include <cstdint>

namespace spillway::host {

enum class GroupAccess { kRead, kReadWrite };

/// The directory and everything in it, a hundred levels deep, without following links. The first error; the others are
/// done nevertheless.
Outcome give_to_group(int directory, gid_t group, GroupAccess access);

/// Gives the directory and everything in it, in the same way, to the pod whose ids begin at `first_id`: what belonged
/// to user and group N of an earlier pod belongs to N of this one. The ids of a pod begin at a multiple of 65,536.
Outcome give_to_pod_ids(int directory, std::uint32_t first_id);

}  // namespace spillway::host
