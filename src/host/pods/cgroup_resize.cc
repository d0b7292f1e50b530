#include "host/pods/cgroup_resize.h"

#include <vector>

namespace spillway::host {
namespace {

using containers::GroupChange;
using containers::ResizedResource;

/// A limit that is as much more or less than the wanted one as the present one.
template <typename Amount>
std::optional<Amount> limit_before(std::strong_ordering present_to_wanted, const std::optional<Amount>& wanted) {
  if (present_to_wanted == 0) return wanted;
  return present_to_wanted < 0 ? std::optional(Amount{}) : std::nullopt;
}

/// The change as it is from the limits that the cgroup has now, as far as they can be read. `before` gets the order of
/// the present value to the wanted one, not the value: files round, and two spellings can have one effect.
GroupChange from_present(const CgroupDir& cgroup, GroupChange change, const agent::ResourceFacts& facts) {
  const CgroupLimits memory = step_limits({.resource = ResizedResource::kMemory, .amounts = change.after}, facts, {});
  if (const auto order = compare_memory(cgroup, *memory.memory)) {
    change.before.memory_limit = limit_before(*order, change.after.memory_limit);
  }
  const CgroupLimits cpu = step_limits({.resource = ResizedResource::kCpu, .amounts = change.after}, facts, {});
  const auto quota = compare_cpu_quota(cgroup, *cpu.cpu_quota_micros, cpu.cpu_period_micros);
  const auto shares = compare_cpu_shares(cgroup, *cpu.cpu_shares);
  if (!quota || !shares) return change;
  change.before.cpu_limit_milli = limit_before(*quota, change.after.cpu_limit_milli);
  change.before.cpu_request_milli = change.after.cpu_request_milli;
  if (*shares != 0) change.before.cpu_request_milli += *shares < 0 ? -1 : 1;
  return change;
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
  if (step.resource == ResizedResource::kMemory) {
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

std::vector<containers::ResizeStep> steps_from_present(const agent::ResizePod& command, const ResizedGroup& group_of,
                                                       const agent::ResourceFacts& facts) {
  const auto present = [&](const GroupChange& change) {
    const CgroupDir* cgroup = group_of(change.container);
    return cgroup == nullptr || !*cgroup ? change : from_present(*cgroup, change, facts);
  };
  std::vector<GroupChange> changes;
  for (const GroupChange& each : command.containers) changes.push_back(present(each));
  return containers::resize_steps(present(command.pod), changes);
}

Outcome resize_groups(const agent::ResizePod& command, const ResizedGroup& group_of,
                      const agent::ResourceFacts& facts) {
  const std::vector<containers::ResizeStep> steps = steps_from_present(command, group_of, facts);
  if (auto problem = refuse_resize(steps, group_of)) return make_error(ErrorCode::kConflict, "{}", *problem);
  for (const containers::ResizeStep& step : steps) {
    const CgroupDir* cgroup = group_of(step.container);
    if (cgroup == nullptr || !*cgroup) continue;
    SPILLWAY_TRY_VOID(apply_limits(*cgroup, step_limits(step, facts, Swap::kForbidden)));
  }
  return {};
}

}  // namespace spillway::host
