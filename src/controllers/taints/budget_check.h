// Would the API server let a pod go within its disruption budgets? Answered by the same rule from a cache of them, so
// that a pod that may not go costs no call. What it says yes to is still for the API server to allow: only there one
// disruption is spent once.
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

  /// nullopt: no budget is known to stand against it.
  std::optional<policy::Reason> find_obstacle(const api::Pod& pod) const;

 private:
  client::Informer<api::PodDisruptionBudget> budgets_;
};

}  // namespace spillway::controllers
