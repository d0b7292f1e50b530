// One eviction of a pod, from the request to its answer. The order of its steps is at the top of pod_eviction.cc. It
// spends the allowance of a disruption budget in one conditional write before it deletes the pod; the ruling is
// policy/disruption's.
// Thread: loop. Bounds: 1 MiB of budgets are read and kSurveyStepsMax steps are counted for one eviction; it is refused
// (429) if that is not enough. Source: spec "API server contract", 13.1-13.4; Kubernetes docs, "API-initiated
// Eviction".
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/object/disruption_budget.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"
#include "apiserver/subresource/budget_counter.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"
#include "base/step_list.h"
#include "policy/disruption/budget.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

struct EvictionTools {
  Core& core;
  BudgetCounter counter;
  Writer& writer;
  Remover& remover;
};

class PodEviction final : public std::enable_shared_from_this<PodEviction> {
 public:
  enum class Step : std::uint8_t {
    kLoad,          // take the pod from the cache
    kRuling,        // find the budget that protects the pod, if one has to be spent
    kSpending,      // take one disruption from the budget
    kConditioning,  // set the condition DisruptionTarget of the pod
    kRemoval,       // delete the pod; back to kLoad if an unprotected one changed meanwhile
    kAnswer,        // 201
  };

  /// `tools` must outlive the eviction. `options` are those of the deletion.
  PodEviction(EvictionTools& tools, ExchangePtr exchange, WriteContext context, DeleteOptions options);

  /// Runs steps until one waits or the eviction ends. Called by the one that starts it, then by the eviction itself.
  void advance();

 private:
  Next run(Step step);
  Next load();
  Next rule();
  Next spend();
  Next on_spent(const api::StatusResult<Written>& result);
  Next set_condition_of_pod();
  Next on_condition_set(const api::StatusResult<Written>& result);
  Next remove();
  Next on_removed(const api::StatusResult<Removed>& result);
  Next answer();

  void resume(Next next);
  Next refuse(const api::Status& status);

  api::StatusResult<api::Json> without_disruption(api::Json budget);
  api::StatusResult<api::Json> with_condition(const api::Json& pod) const;
  std::optional<std::vector<api::PodDisruptionBudget>> budgets_of_pod() const;
  std::optional<disruption::Ruling> count_ruling(const api::Json& document,
                                                 const api::PodDisruptionBudget& budget) const;

  EvictionTools& tools_;
  ExchangePtr exchange_;
  const Resource& pods_;
  WriteContext context_;
  DeleteOptions options_;
  std::string ns_;
  std::string name_;
  StepList<Step> steps_;

  ObjectPtr pod_;  // state of the pod at the decision
  disruption::PodStanding pod_state_;
  std::string budget_;             // the budget that is charged; empty: none protects the pod
  bool spends_nothing_ = false;    // the budget lets the pod go because it is unready
  bool removes_as_ruled_ = false;  // no budget counts the pod as it is: one that has changed is ruled on again
  int races_lost_ = 0;             // deletions of such a pod that found another version
};

}  // namespace spillway::apiserver
