#include "agent/node/allocatable_enforcement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kRetry = minutes(1);
constexpr std::string_view kPodsCgroup = "kubepods";

std::string success(const LimitGroup& wanted) {
  switch (wanted.group) {
    case LimitedGroup::kPods:
      return "Updated Node Allocatable limit across pods";
    case LimitedGroup::kSystemReserved:
      return fmt::format("Updated limits on system reserved cgroup {}", wanted.cgroup);
    case LimitedGroup::kKubeReserved:
      return fmt::format("Updated limits on kube reserved cgroup {}", wanted.cgroup);
  }
  return {};
}

/// The name of the group in enforceNodeAllocatable.
std::string_view name_of(LimitedGroup group) {
  switch (group) {
    case LimitedGroup::kPods:
      return "pods";
    case LimitedGroup::kSystemReserved:
      return "system-reserved";
    case LimitedGroup::kKubeReserved:
      return "kube-reserved";
  }
  return {};
}

}  // namespace

std::string enforcement_failure(const LimitGroup& wanted, const Error& why) {
  switch (wanted.group) {
    case LimitedGroup::kPods:
      return fmt::format("Failed to update Node Allocatable Limits \"{}\": {}", kPodsCgroup, why.text());
    case LimitedGroup::kSystemReserved:
      return fmt::format("Failed to enforce System Reserved Cgroup Limits on \"{}\": {}", wanted.cgroup, why.text());
    case LimitedGroup::kKubeReserved:
      return fmt::format("Failed to enforce Kube Reserved Cgroup Limits on \"{}\": {}", wanted.cgroup, why.text());
  }
  return {};
}

AllocatableEnforcement::AllocatableEnforcement(AgentContext& context, std::vector<LimitGroup> limits)
    : context_(context) {
  for (LimitGroup& each : limits) limits_.push_back({.wanted = std::move(each), .problem = {}});
}

AllocatableEnforcement::Limit* AllocatableEnforcement::find(LimitedGroup group) {
  const auto found = std::ranges::find(limits_, group, [](const Limit& each) { return each.wanted.group; });
  return found == limits_.end() ? nullptr : &*found;
}

void AllocatableEnforcement::start(Now) {
  for (const Limit& each : limits_) apply(each.wanted.group);
}

void AllocatableEnforcement::apply(LimitedGroup group) {
  if (const Limit* limit = find(group)) context_.host_commands.emplace_back(limit->wanted);
}

void AllocatableEnforcement::on_limited(const GroupLimited& event, Now now) {
  Limit* limit = find(event.group);
  if (limit == nullptr) return;
  const api::ObjectReference node = node_reference(context_.options.node_name);
  limit->holds = event.outcome.has_value();
  if (limit->holds) {
    limit->problem.clear();
    context_.events.record(node, client::EventType::kNormal, "NodeAllocatableEnforced", success(limit->wanted), now);
    return;
  }
  limit->problem = enforcement_failure(limit->wanted, event.outcome.error());
  context_.events.record(node, client::EventType::kWarning, "FailedNodeAllocatableEnforcement", limit->problem, now);
  context_.api.at(now.mono + kRetry, [this, group = event.group](Now) { apply(group); });
}

api::Json AllocatableEnforcement::state() const {
  api::Json state = api::Json::object();
  for (const Limit& each : limits_) {
    const GroupLimits& limits = each.wanted.limits;
    api::Json group = api::Json::object({{"enforced", each.holds}});
    if (!each.wanted.cgroup.empty()) group["cgroup"] = each.wanted.cgroup;
    if (!each.problem.empty()) group["problem"] = each.problem;
    if (limits.memory) group["memoryBytes"] = limits.memory->count();
    if (limits.cpu_milli) group["cpuMilli"] = *limits.cpu_milli;
    if (limits.pids_max) group["pidsMax"] = *limits.pids_max;
    for (const auto& [page_size, limit] : limits.huge_pages) {
      group["hugePagesBytes"][std::to_string(page_size)] = limit.count();
    }
    state[name_of(each.wanted.group)] = std::move(group);
  }
  return state;
}

}  // namespace spillway::agent
