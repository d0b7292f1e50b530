#include "agent/node/shutdown_plan.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr std::int32_t kCriticalPriority = 2'000'000'000;

}  // namespace

std::vector<PriorityGrace> shutdown_groups(const ShutdownSettings& settings) {
  std::vector<PriorityGrace> groups = settings.by_priority;
  if (groups.empty()) {
    if (settings.grace_seconds <= 0 || settings.critical_grace_seconds > settings.grace_seconds) return {};
    groups = {{0, settings.grace_seconds - settings.critical_grace_seconds},
              {kCriticalPriority, settings.critical_grace_seconds}};
  }
  std::ranges::stable_sort(groups, {}, &PriorityGrace::priority);
  return groups;
}

std::vector<ShutdownStep> plan_shutdown(const std::vector<PriorityGrace>& groups,
                                        const std::vector<ShutdownPod>& pods) {
  std::vector<ShutdownStep> steps;
  for (const PriorityGrace& group : groups) steps.push_back({group, {}});
  if (steps.empty()) return steps;
  for (const ShutdownPod& pod : pods) {
    auto step =
        std::ranges::upper_bound(steps, pod.priority, {}, [](const ShutdownStep& each) { return each.group.priority; });
    if (step != steps.begin()) --step;
    const std::int64_t grace = step->group.grace_seconds;
    step->pods.push_back({pod.name, std::min(grace, pod.spec_grace_seconds.value_or(grace))});
  }
  return steps;
}

std::int64_t shutdown_delay_seconds(const std::vector<PriorityGrace>& groups) {
  std::int64_t sum = 0;
  for (const PriorityGrace& group : groups) sum += group.grace_seconds;
  return sum;
}

}  // namespace spillway::agent
