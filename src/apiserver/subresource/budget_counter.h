// What a disruption budget protects, counted from the cache: for its status, and anew for each eviction, whose server
// has taken in everything that was acknowledged before. The arithmetic is policy/disruption's. Thread: loop. Source:
// Kubernetes docs, "Specifying a Disruption Budget for your Application"; spec "API server contract", 13.5.
#pragma once

#include "api/json/json.h"
#include "api/object/disruption_budget.h"
#include "apiserver/read/core.h"
#include "apiserver/read/watch_cache.h"
#include "base/time.h"
#include "policy/disruption/budget.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// After this an eviction that led to nothing no longer counts.
inline constexpr Duration kDisruptionTimeout = minutes(2);

struct BudgetSurvey {
  /// nullopt: a percentage or maxUnavailable, and a pod whose controller does not say how many there should be, or no
  /// pod with a controller at all.
  std::optional<disruption::BudgetCount> count;
  /// status.disruptedPods without those that are on their way out, or have not gone in time. An object.
  api::Json disrupted;
};

class BudgetCounter {
 public:
  explicit BudgetCounter(Core& core);

  /// `document`: the same budget, or one that cannot be decoded (`budget` null), which counts nothing.
  BudgetSurvey survey(const api::Json& document, const api::PodDisruptionBudget* budget) const;

  /// An object of this kind may say how many pods there should be.
  bool counts(const ResourceCache& cache) const;

 private:
  /// Objects of a kind that scales its pods; null: of another kind.
  const ResourceCache* scaled(std::string_view kind) const;
  /// The summed scale of the controllers of the pods; nullopt if one of them cannot be scaled, or there is none.
  std::optional<std::int64_t> expected_by_controllers(const std::vector<ObjectPtr>& pods) const;
  api::Json disrupted_of(const api::Json& document) const;

  const Core& core_;
  const ResourceCache& pods_;
  const ResourceCache& replica_sets_;
  const ResourceCache& replication_controllers_;
  const ResourceCache& deployments_;
  const ResourceCache& stateful_sets_;
};

}  // namespace spillway::apiserver
