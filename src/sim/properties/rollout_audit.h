// Checks rolling updates of Deployments against all pods that their controllers delete: property rollout-availability.
// It counts pods that are ready and that no controller is about to delete: of each ReplicaSet at most its size. Pods
// that are lost otherwise (by a node, a drain, an administrator) are not counted against the controllers: they count as
// present, and of the sizes that the Deployment had the lowest one counts, until it is whole again, and for
// kObservesWithin in any case, the longest delay of a change on its way to controllers. The bounds that the Deployment
// sets are calculated here, not by the rules under test. Thread: one.
#pragma once

#include "api/object/pod.h"
#include "api/object/workload.h"
#include "base/time.h"
#include "sim/properties/verdicts.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::sim {

class RolloutAudit {
 public:
  static constexpr Duration kObservesWithin = minutes(2);

  explicit RolloutAudit(Verdicts& verdicts) : verdicts_(verdicts) {}

  /// `before` null: the Deployment is new; `after` null: it was deleted.
  void on_deployment(const api::Deployment* before, const api::Deployment* after, Now now);
  void on_replica_set(const api::ReplicaSet* before, const api::ReplicaSet* after, Now now);
  void on_pod(const api::Pod* before, const api::Pod* after, Now now);

  /// An administrator or a node, not a controller, is about to delete this pod.
  void on_removal_by_hand(const api::PodKey& pod) { removed_by_hand_.insert(pod); }

 private:
  enum class By { kControllers, kOthers };

  struct Set {
    std::string name;
    std::string rollout;  // uid of the Deployment
    std::int64_t replicas = 0;
    std::int64_t available_said = 0;  // available replicas by its status
    std::set<std::string> available;  // uids
  };

  struct Rollout {
    std::string name;
    bool is_rolling = false;
    std::int64_t wanted = 0;
    std::int64_t least = 0;                                 // the number of pods that the Deployment promises now
    std::vector<std::pair<Instant, std::int64_t>> earlier;  // earlier promises, and when each was replaced
    std::map<std::string, Instant> lost;                    // time of each pod's last loss or recovery
    std::int64_t kept = 0;
    bool is_whole = false;

    std::int64_t least_of_all() const;
  };

  /// Decides if a pod that stops being available was taken by its controller.
  By taker_of(const api::Pod& before, const api::Pod* after);
  void count(const std::string& rollout, By by, Now now);

  Verdicts& verdicts_;
  std::map<std::string, Rollout> rollouts_;  // by uid
  std::map<std::string, Set> sets_;          // sets that belong to Deployments, by uid
  std::set<api::PodKey> removed_by_hand_;
};

}  // namespace spillway::sim
