// policy/v1 PodDisruptionBudget, as far as the counting of budgets and the eviction API read it. Thread: any.
// Source: Kubernetes API reference, PodDisruptionBudget.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/object/selector.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::api {

struct PodDisruptionBudgetStatus {
  std::int64_t expected_pods = 0;
  std::int64_t current_healthy = 0;
  std::int64_t desired_healthy = 0;
  std::int64_t disruptions_allowed = 0;
  std::int64_t observed_generation = 0;
  Json disrupted_pods;  // name → time of an eviction that is not yet seen to have happened; null: none

  friend bool operator==(const PodDisruptionBudgetStatus&, const PodDisruptionBudgetStatus&) = default;
};

struct PodDisruptionBudget {
  static constexpr std::string_view kKind = "PodDisruptionBudget";
  static constexpr std::string_view kApiVersion = "policy/v1";
  ObjectMeta metadata;
  LabelSelector selector{.requirements = {}, .nothing = true};
  Json min_available;    // a number of pods, or a text like "40%"; null: not given
  Json max_unavailable;  // a number of pods, or a text like "40%"; null: not given
  std::string unhealthy_pod_eviction_policy;
  PodDisruptionBudgetStatus status;

  friend bool operator==(const PodDisruptionBudget&, const PodDisruptionBudget&) = default;
};

}  // namespace spillway::api
