#include "policy/disruption/budget.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::disruption {

namespace {

/// "40%" → 40; nullopt for anything else.
std::optional<std::int64_t> percent_of(const api::Json& value) {
  const std::string* text = value.if_string();
  if (text == nullptr || !text->ends_with('%')) return std::nullopt;
  std::int64_t percent = 0;
  const char* end = text->data() + text->size() - 1;
  const auto [stop, failed] = std::from_chars(text->data(), end, percent);
  return failed == std::errc() && stop == end ? std::optional(percent) : std::nullopt;
}

/// A number, or a percentage of `total` rounded up.
std::int64_t scaled(const api::Json& value, std::int64_t total) {
  if (const auto percent = percent_of(value)) return (*percent * total + 99) / 100;
  return value.if_int64().value_or(0);
}

bool unready_may_go(const api::PodDisruptionBudget& budget) {
  if (budget.unhealthy_pod_eviction_policy == "AlwaysAllow") return true;
  return budget.status.desired_healthy > 0 && budget.status.current_healthy >= budget.status.desired_healthy;
}

Passage decide(const PodStanding& pod, const api::PodDisruptionBudget& budget) {
  if (!pod.ready && unready_may_go(budget)) return Passage::kUnready;
  if (budget.status.observed_generation < budget.metadata.generation) return Passage::kNotCountedYet;
  if (budget.status.disruptions_allowed <= 0) return Passage::kExhausted;
  const auto* unsettled = budget.status.disrupted_pods.if_object();
  if (unsettled != nullptr && unsettled->size() >= kUnsettledMax) return Passage::kTooManyUnsettled;
  return Passage::kSpends;
}

}  // namespace

std::int64_t BudgetCount::disruptions_allowed() const {
  return expected_pods > 0 ? std::max<std::int64_t>(0, current_healthy - desired_healthy) : 0;
}

bool expects_pods_that_match(const api::PodDisruptionBudget& budget) {
  return !budget.min_available.is_null() && !percent_of(budget.min_available);
}

std::int64_t desired_healthy(const api::PodDisruptionBudget& budget, std::int64_t expected) {
  if (!budget.max_unavailable.is_null()) {
    return std::max<std::int64_t>(0, expected - scaled(budget.max_unavailable, expected));
  }
  if (budget.min_available.is_null()) return std::max<std::int64_t>(0, expected - 1);
  return scaled(budget.min_available, expected);
}

api::PodDisruptionBudget held_to(api::PodDisruptionBudget budget, const BudgetCount& now) {
  api::PodDisruptionBudgetStatus& status = budget.status;
  status.current_healthy = std::min(status.current_healthy, now.current_healthy);
  status.desired_healthy = std::max(status.desired_healthy, now.desired_healthy);
  status.disruptions_allowed = std::min(status.disruptions_allowed, now.disruptions_allowed());
  return budget;
}

std::string_view to_string(Passage passage) {
  switch (passage) {
    case Passage::kUnprotected:
      return "unprotected";
    case Passage::kNoBudget:
      return "no-budget";
    case Passage::kUnready:
      return "unready";
    case Passage::kSpends:
      return "spends";
    case Passage::kSeveralBudgets:
      return "several-budgets";
    case Passage::kNotCountedYet:
      return "not-counted-yet";
    case Passage::kExhausted:
      return "exhausted";
    case Passage::kTooManyUnsettled:
      return "too-many-unsettled";
  }
  return {};
}

Ruling decide_passage(const PodStanding& pod, std::span<const api::PodDisruptionBudget* const> budgets) {
  const bool unprotected =
      pod.terminating || pod.phase == "Pending" || pod.phase == "Succeeded" || pod.phase == "Failed";
  if (unprotected) return {.passage = Passage::kUnprotected};
  if (budgets.empty()) return {.passage = Passage::kNoBudget};
  if (budgets.size() > 1) return {.passage = Passage::kSeveralBudgets};
  const api::PodDisruptionBudget& budget = *budgets.front();
  return {.passage = decide(pod, budget),
          .budget = budget.metadata.name,
          .desired_healthy = budget.status.desired_healthy,
          .current_healthy = budget.status.current_healthy,
          .disruptions_allowed = budget.status.disruptions_allowed};
}

policy::Reason reason_of(const Ruling& ruling) {
  policy::Reason reason{policy::ReasonCode::kBudgetRefuses, {{"why", std::string(to_string(ruling.passage))}}};
  if (ruling.budget.empty()) return reason;
  reason.facts.push_back({"budget", ruling.budget});
  reason.facts.push_back({"desired_healthy_pods", ruling.desired_healthy});
  reason.facts.push_back({"current_healthy_pods", ruling.current_healthy});
  reason.facts.push_back({"disruptions_allowed", ruling.disruptions_allowed});
  return reason;
}

}  // namespace spillway::disruption
