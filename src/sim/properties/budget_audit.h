// Disruption budgets with a number as minAvailable, checked against every pod that the eviction API marks: property
// budgets-kept. A server counts with all changes that it has received, and marks the pod some time after: for
// kMarksWithin after a pod has stopped being healthy by itself the budgets that count it are not checked. Thread: one.
#pragma once

#include "api/object/disruption_budget.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "sim/properties/verdicts.h"

#include <cstdint>
#include <map>
#include <string>

namespace spillway::sim {

class BudgetAudit {
 public:
  static constexpr Duration kMarksWithin = seconds(10);  // two writes, each given up after 3 s

  explicit BudgetAudit(Verdicts& verdicts) : verdicts_(verdicts) {}

  void on_budget(const api::PodDisruptionBudget* before, const api::PodDisruptionBudget* after, Now now);
  void on_pod(const api::Pod* before, const api::Pod* after, Now now);

 private:
  struct Budget {
    std::string ns;
    api::LabelSelector selector;
    std::int64_t healthy_min = 0;
    Instant changed{};  // the budget, or the health of one of its pods without an eviction

    bool counts(const api::Pod& pod) const { return pod.metadata.ns == ns && selector.matches(pod.metadata.labels); }
  };

  void check(const Budget& budget, const api::Pod& evicted, Now now);

  Verdicts& verdicts_;
  std::map<std::string, Budget> budgets_;    // by namespace/name
  std::map<std::string, api::Pod> healthy_;  // by uid
};

}  // namespace spillway::sim
