#include "agent/garbage/container_gc.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

/// Dead containers of one name in one pod.
using Unit = std::vector<const ContainerOnNode*>;
using Units = std::map<std::pair<std::string, std::string>, Unit>;

bool is_removable(const ContainerGcScope& scope, std::string_view uid) {
  const PodRemains remains = scope.remains(uid);
  return remains == PodRemains::kContent || (scope.ended_pods && remains == PodRemains::kRuntime);
}

template <typename Item>
void sort_newest_first(std::vector<const Item*>& items) {
  std::ranges::stable_sort(items, [](const Item* a, const Item* b) {
    return a->created != b->created ? a->created > b->created : a->id < b->id;
  });
}

class Plan {
 public:
  /// Keeps the newest containers of the unit; the others are removed from the end, in the runtime's order.
  void keep(Unit& unit, std::size_t kept) {
    if (unit.size() <= kept) return;
    if (kept > 0) sort_newest_first(unit);
    for (const ContainerOnNode* each : unit | std::views::drop(kept) | std::views::reverse) {
      removals_.push_back({each->id, each->state == RuntimeState::kUnknown});
    }
    unit.resize(kept);
  }

  void keep_of_each(Units& units, std::size_t kept) {
    for (auto& [key, unit] : units) keep(unit, kept);
  }

  std::vector<ContainerRemoval> take() { return std::move(removals_); }

 private:
  std::vector<ContainerRemoval> removals_;
};

std::size_t count(const Units& units) {
  std::size_t all = 0;
  for (const auto& [key, unit] : units) all += unit.size();
  return all;
}

}  // namespace

std::vector<ContainerRemoval> plan_container_gc(const ContainerGcPolicy& policy, const ContainerGcScope& scope,
                                                const std::vector<ContainerOnNode>& containers, Instant now) {
  Units units;
  for (const ContainerOnNode& each : containers) {
    const bool dead = each.state != RuntimeState::kRunning;
    if (dead && now - each.created >= policy.min_age) units[{each.pod_uid, each.name}].push_back(&each);
  }
  Plan plan;
  if (scope.sources_ready) {
    for (auto it = units.begin(); it != units.end();) {
      if (!is_removable(scope, it->first.first)) {
        ++it;
        continue;
      }
      plan.keep(it->second, 0);
      it = units.erase(it);
    }
  }
  if (policy.max_per_pod_container >= 0) {
    plan.keep_of_each(units, static_cast<std::size_t>(policy.max_per_pod_container));
  }
  if (policy.max_containers < 0) return plan.take();
  const auto total_max = static_cast<std::size_t>(policy.max_containers);
  if (count(units) <= total_max) return plan.take();
  plan.keep_of_each(units, std::max<std::size_t>(1, total_max / units.size()));
  if (count(units) <= total_max) return plan.take();
  Unit all;
  for (const auto& [key, unit] : units) all.insert(all.end(), unit.begin(), unit.end());
  sort_newest_first(all);
  plan.keep(all, total_max);
  return plan.take();
}

std::vector<std::string> plan_sandbox_gc(const ContainerGcScope& scope, const std::vector<SandboxOnNode>& sandboxes,
                                         const std::vector<ContainerOnNode>& containers) {
  std::set<std::string_view> holding;
  for (const ContainerOnNode& each : containers) holding.insert(each.sandbox);
  std::map<std::string, std::vector<const SandboxOnNode*>> by_pod;
  for (const SandboxOnNode& each : sandboxes) by_pod[each.pod_uid].push_back(&each);
  std::vector<std::string> removed;
  for (auto& [uid, of_pod] : by_pod) {
    const std::size_t kept = is_removable(scope, uid) ? 0 : 1;
    sort_newest_first(of_pod);
    for (const SandboxOnNode* each : of_pod | std::views::drop(kept) | std::views::reverse) {
      if (!each->ready && !holding.contains(each->id)) removed.push_back(each->id);
    }
  }
  return removed;
}

std::vector<std::string> plan_log_gc(const ContainerGcScope& scope, const std::vector<std::string>& directories) {
  std::vector<std::string> removed;
  if (!scope.sources_ready) return removed;
  for (const std::string& directory : directories) {
    const std::size_t at = directory.rfind('_');
    const std::string_view uid =
        at == std::string::npos ? std::string_view() : std::string_view(directory).substr(at + 1);
    if (!uid.empty() && scope.remains(uid) == PodRemains::kContent) removed.push_back(directory);
  }
  return removed;
}

}  // namespace spillway::agent
