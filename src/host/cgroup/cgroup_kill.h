// Killing everything in a cgroup and below it, so that nothing escapes: version 2 by cgroup.kill, version 1 (and old
// kernels) by freezing, SIGKILL to every process through a pidfd, thawing; to be repeated until it is empty.
// Thread: loop. Never waits. Source: kernel documents "cgroup-v2.rst" (cgroup.kill, cgroup.freeze),
// "cgroup-v1/freezer-subsystem.rst".
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "host/cgroup/cgroup.h"

#include <sys/types.h>

#include <string>
#include <vector>

namespace spillway::host {

/// SIGKILL to everything that is there now. Errors are those of reading; a process that is gone is no error.
Outcome kill_all(const CgroupDir& cgroup);

/// True if no process is left, here and below. A cgroup that has been removed is empty.
Result<bool> is_empty(const CgroupDir& cgroup);

/// Processes in this cgroup and those below it, ascending.
Result<std::vector<pid_t>> tree_pids(const CgroupDir& cgroup);

/// Removes child `name` of `parent` with all below it; they must be empty. kConflict while they are not.
Outcome remove_tree(const CgroupDir& parent, const std::string& name);

/// Kills and removes child `name` of `parent`. Waits for the processes to end, at most `patience`; kConflict if some
/// process will not die. For start and end of a node, not for the loop.
Outcome destroy_tree(const CgroupDir& parent, const std::string& name, Duration patience);

}  // namespace spillway::host
