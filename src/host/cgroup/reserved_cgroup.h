// The cgroup of daemons with reserved resources: created by the administrator, found by its path; limits are set on it,
// it is never created. Thread: loop. Source: Kubernetes docs, "Reserve Compute Resources for System Daemons", enforcing
// node allocatable.
#pragma once

#include "base/error.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_limits.h"

#include <string>

namespace spillway::host {

/// `root`: of the hierarchies. kNotFound, in upstream's words: it is missing where a limit would go, that is in the
/// hierarchies of memory, cpu and pids (version 1) or without these controllers (version 2).
Result<CgroupDir> open_reserved(const CgroupDir& root, const std::string& path);

/// Sets the limits; its swap is not changed. kConflict: its working set is above the memory limit, and on version 2 the
/// kernel would end daemons to get below it. Other errors are those of open_reserved().
Outcome limit_reserved(const CgroupDir& root, const std::string& path, CgroupLimits limits);

}  // namespace spillway::host
