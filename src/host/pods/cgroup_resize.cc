#include "host/pods/cgroup_resize.h"

#include "host/kernel/kernel_file.h"

#include <vector>

namespace spillway::host {
namespace {

std::optional<Bytes> memory_used(const CgroupDir& cgroup) {
  const bool v2 = cgroup.version() == CgroupVersion::kV2;
  const auto text = cgroup.read(Controller::kMemory, v2 ? "memory.current" : "memory.usage_in_bytes");
  const auto bytes = text ? parse_number(*text) : std::nullopt;
  return bytes ? std::optional(Bytes{static_cast<std::int64_t>(*bytes)}) : std::nullopt;
}

}  // namespace

std::optional<std::string> refuse_resize(std::span<const containers::ResizeStep> steps, const ResizedGroup& group_of) {
  std::vector<containers::MemoryUse> uses;
  for (const containers::ResizeStep& step : steps) {
    const CgroupDir* cgroup = step.lowers_memory ? group_of(step.container) : nullptr;
    const auto used = cgroup == nullptr ? std::nullopt : memory_used(*cgroup);
    if (used) uses.push_back({step.container, *used});
  }
  return containers::refuse_to_lower(steps, uses);
}

CgroupLimits step_limits(const containers::ResizeStep& step, const agent::ResourceFacts& facts, Swap swap) {
  CgroupLimits limits;
  if (step.resource == containers::ResizedResource::kMemory) {
    limits.memory = step.amounts.memory_limit.value_or(kUnlimitedMemory);
    limits.swap = swap;
    return limits;
  }
  limits.cpu_shares = cpu_shares_of(step.amounts.cpu_request_milli);
  limits.cpu_period_micros = facts.cpu_period_micros;
  const auto quota = facts.cpu_cfs_quota
                         ? cpu_quota_micros_of(step.amounts.cpu_limit_milli.value_or(0), facts.cpu_period_micros)
                         : std::nullopt;
  limits.cpu_quota_micros = quota.value_or(kNoCpuQuota);
  return limits;
}

Outcome resize_groups(std::span<const containers::ResizeStep> steps, const ResizedGroup& group_of,
                      const agent::ResourceFacts& facts) {
  if (auto problem = refuse_resize(steps, group_of)) return make_error(ErrorCode::kConflict, "{}", *problem);
  for (const containers::ResizeStep& step : steps) {
    const CgroupDir* cgroup = group_of(step.container);
    if (cgroup == nullptr || !*cgroup) continue;
    SPILLWAY_TRY_VOID(apply_limits(*cgroup, step_limits(step, facts, Swap::kForbidden)));
  }
  return {};
}

}  // namespace spillway::host
