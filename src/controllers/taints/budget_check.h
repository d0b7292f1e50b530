// Predicts whether the API server would evict a pod within its disruption budgets, by the same rule and a cache of
// budgets, so that a pod that may not be evicted costs no call. The API server still decides: only there a disruption
// is spent once.
// Thread: loop. Cost: the budgets of the pod's namespace.
#pragma once

#include "api/object/disruption_budget.h"
#include "client/informer.h"
#include "controllers/shared/shared.h"
#include "policy/reason.h"

#include <optional>

namespace spillway::controllers {

class BudgetCheck {
 public:
  explicit BudgetCheck(Shared shared);

  /// nullopt: no known budget forbids the eviction.
  std::optional<policy::Reason> find_obstacle(const api::Pod& pod) const;

 private:
  client::Informer<api::PodDisruptionBudget> budgets_;
};

}  // namespace spillway::controllers
