#include "host/pods/group_limits.h"

#include "host/cgroup/reserved_cgroup.h"

namespace spillway::host {

CgroupLimits group_limits(const agent::LimitGroup& command) {
  CgroupLimits limits{
      .memory = command.limits.memory, .pids = command.limits.pids_max, .huge_pages = command.limits.huge_pages};
  if (command.limits.cpu_milli) limits.cpu_shares = cpu_shares_of(*command.limits.cpu_milli);
  return limits;
}

agent::GroupLimited limit_reserved_group(const NodeSlice& slice, const agent::LimitGroup& command) {
  const Result<CgroupDir> root = slice.measured().hierarchy_root();
  return {command.group, root ? limit_reserved(*root, command.cgroup, group_limits(command)) : Outcome(root.error())};
}

}  // namespace spillway::host
