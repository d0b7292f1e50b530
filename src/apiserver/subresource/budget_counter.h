// Counts the pods of a disruption budget from the cache: for its status, and again for each eviction, once all
// acknowledged writes are in the cache. No document of a pod or of its owners is read: the cache keeps the counted
// fields. A count can be interrupted after any number of steps and is then continued. The arithmetic is
// policy/disruption's. Thread: loop. Source: Kubernetes docs, "Specifying a Disruption Budget for your Application";
// spec "API server contract", 13.5.
#pragma once

#include "api/json/json.h"
#include "api/object/disruption_budget.h"
#include "apiserver/read/core.h"
#include "apiserver/read/selection.h"
#include "apiserver/read/watch_cache.h"
#include "base/time.h"
#include "policy/disruption/budget.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// An eviction that did not lead to a deletion stops counting after this time.
inline constexpr Duration kDisruptionTimeout = minutes(2);

/// Steps of one count that are taken without a pause: some 30 ms. A pod costs one and what its comparison with the
/// selector costs, so this is 100,000 pods with a selector of two terms.
inline constexpr std::size_t kSurveyStepsMax = 500'000;

struct BudgetSurvey {
  /// nullopt: a percentage or maxUnavailable, and a pod whose controller states no number of replicas, or no pod with a
  /// controller at all.
  std::optional<disruption::BudgetCount> count;
  /// status.disruptedPods without pods that are terminating, or whose deletion did not happen in time.
  api::Json disrupted;
};

class BudgetCounter {
 public:
  /// A count under way.
  struct Count {
    std::optional<api::PodDisruptionBudget> budget;  // nullopt: the budget cannot be decoded, and counts nothing
    api::Json disrupted;
    std::set<std::string, std::less<>> disrupted_names;
    std::size_t steps_of_pod = 1;
    std::string after;  // key of the pod that was counted last
    std::int64_t pods = 0;
    std::int64_t healthy = 0;
    std::map<std::string, std::int64_t, std::less<>> scale_by_uid;
    bool is_unscaled = false;  // a controller states no number of replicas
  };

  explicit BudgetCounter(Core& core);

  /// `document`: the same budget, or one that cannot be decoded (`budget` null), which counts nothing.
  Count begin(const api::Json& document, const api::PodDisruptionBudget* budget) const;
  /// Takes steps from `steps`; true: all pods have been counted.
  bool advance(Count& count, std::size_t& steps) const;
  static BudgetSurvey result(const Count& count);

  const ResourceCache& pods() const { return pods_; }

  /// True if objects of this kind may state a number of replicas.
  bool scales(const ResourceCache& cache) const;

 private:
  /// Objects of a kind that scales its pods; null: of another kind.
  const ResourceCache* scaled(const OwnerLink& owner) const;
  void count_pod(Count& count, const StoredObject& pod) const;
  /// Adds the scale of the pod's controller; false: the controller has no scale, or does not exist.
  bool add_scale(Count& count, const StoredObject& pod) const;
  api::Json disrupted_of(const api::Json& document) const;

  const Core& core_;
  const ResourceCache& pods_;
  const ResourceCache& replica_sets_;
  const ResourceCache& replication_controllers_;
  const ResourceCache& deployments_;
  const ResourceCache& stateful_sets_;
};

/// The controller among the owners of an object; null: it has none.
const OwnerLink* controller_of(const StoredObject& object);

}  // namespace spillway::apiserver
