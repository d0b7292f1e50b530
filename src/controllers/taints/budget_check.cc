#include "controllers/taints/budget_check.h"

#include "controllers/shared/owned_pods.h"
#include "policy/disruption/budget.h"

#include <string>
#include <vector>

namespace spillway::controllers {

BudgetCheck::BudgetCheck(Shared shared)
    : budgets_(shared.client, client::object_path(api::PodDisruptionBudget::kApiVersion, "poddisruptionbudgets", {})) {}

std::optional<policy::Reason> BudgetCheck::find_obstacle(const api::Pod& pod) const {
  std::vector<const api::PodDisruptionBudget*> budgets;
  const auto& all = budgets_.cache().all();
  const std::string below = pod.metadata.ns + "/";
  for (auto it = all.lower_bound(below); it != all.end() && it->first.starts_with(below); ++it) {
    if (it->second->selector.matches(pod.metadata.labels)) budgets.push_back(it->second.get());
  }
  const disruption::PodStanding state{
      .phase = pod.status.phase, .terminating = pod.metadata.deletion_timestamp.has_value(), .ready = is_ready(pod)};
  const disruption::Ruling ruling = disruption::decide_passage(state, budgets);
  return ruling.goes() ? std::nullopt : std::optional(disruption::reason_of(ruling));
}

}  // namespace spillway::controllers
