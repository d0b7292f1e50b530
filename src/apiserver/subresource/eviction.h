// pods/eviction: deletes a pod if its disruption budget allows it, spending the allowance in one conditional write. The
// ruling is policy/disruption's.
// Thread: loop. Bounds: 1 MiB of budgets are read and kSurveyStepsMax steps are counted for one eviction; it is refused
// (429) if that is not enough. Source: spec "API server contract", 13.1-13.4; Kubernetes docs, "API-initiated
// Eviction".
#pragma once

#include "api/object/disruption_budget.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/subresource/budget_counter.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"
#include "policy/disruption/budget.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

class EvictionPath {
 public:
  EvictionPath(Core& core, Writer& writer, Remover& remover)
      : core_(core), counter_(core), writer_(writer), remover_(remover) {}

  void create(const ExchangePtr& exchange);

 private:
  struct Eviction;
  using EvictionPtr = std::shared_ptr<Eviction>;

  void decide(const EvictionPtr& eviction, const ObjectPtr& pod);
  void spend(const EvictionPtr& eviction, const std::string& budget);
  /// `budget`: the one that let it go; empty: none had to.
  void mark_pod(const EvictionPtr& eviction, const std::string& budget);
  void remove_unprotected(const EvictionPtr& eviction, const ObjectPtr& judged);
  void remove_pod(const EvictionPtr& eviction);
  static void finish(const EvictionPtr& eviction, const api::StatusResult<Removed>& result);
  /// The first two at most, as several refuse the eviction; nullopt: the budgets are too many to be read at once.
  std::optional<std::vector<api::PodDisruptionBudget>> budgets_of(const StoredObject& pod) const;

  /// nullopt: the pods are too many to be counted at once.
  std::optional<disruption::Ruling> rule(const disruption::PodStanding& pod, const api::Json& document,
                                         const api::PodDisruptionBudget& budget) const;
  api::StatusResult<api::Json> without_disruption(api::Json budget, Eviction& eviction) const;

  Core& core_;
  const BudgetCounter counter_;
  Writer& writer_;
  Remover& remover_;
};

}  // namespace spillway::apiserver
