#include "sim/properties/budget_audit.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {
namespace {

bool is_evicted_by_api(const api::Pod& pod) {
  const api::PodCondition* target = api::find_condition(pod.status.conditions, "DisruptionTarget");
  return target != nullptr && target->status == "True" && target->reason == "EvictionByEvictionAPI";
}

bool is_healthy(const api::Pod& pod) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  return ready != nullptr && ready->status == "True" && !pod.metadata.deletion_timestamp && !api::is_terminal(pod) &&
         !is_evicted_by_api(pod);
}

}  // namespace

void BudgetAudit::on_budget(const api::PodDisruptionBudget* before, const api::PodDisruptionBudget* after, Now now) {
  const api::ObjectMeta& metadata = (after != nullptr ? after : before)->metadata;
  const std::string key = fmt::format("{}/{}", metadata.ns, metadata.name);
  const auto least = after == nullptr ? std::nullopt : after->min_available.if_int64();
  if (!least) {
    budgets_.erase(key);
    return;
  }
  const bool same = before != nullptr && before->min_available == after->min_available;
  Budget& budget = budgets_[key];
  budget.ns = metadata.ns;
  budget.selector = after->selector;
  budget.healthy_min = *least;
  if (!same) budget.changed = now.mono;
}

void BudgetAudit::on_pod(const api::Pod* before, const api::Pod* after, Now now) {
  if (before != nullptr && (after == nullptr || after->metadata.uid != before->metadata.uid)) {
    if (healthy_.erase(before->metadata.uid) > 0) {
      for (auto& [key, budget] : budgets_)
        if (budget.counts(*before)) budget.changed = now.mono;
    }
  }
  if (after == nullptr) return;
  if (is_healthy(*after)) {
    healthy_.insert_or_assign(after->metadata.uid, *after);
    return;
  }
  if (healthy_.erase(after->metadata.uid) == 0) return;
  const bool evicted = is_evicted_by_api(*after);
  for (auto& [key, budget] : budgets_) {
    if (!budget.counts(*after)) continue;
    if (evicted)
      check(budget, *after, now);
    else
      budget.changed = now.mono;
  }
}

void BudgetAudit::check(const Budget& budget, const api::Pod& evicted, Now now) {
  if (now.mono - budget.changed < kMarksWithin) return;
  const auto left = std::ranges::count_if(healthy_, [&budget](const auto& each) { return budget.counts(each.second); });
  if (left >= budget.healthy_min) return;
  verdicts_.violate(Property::kBudgetsKept, now,
                    fmt::format("eviction of {} leaves {} healthy pods, its budget demands {}", evicted.key().text(),
                                left, budget.healthy_min));
}

}  // namespace spillway::sim
