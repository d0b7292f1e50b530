// Checks rolling updates of Deployments against all pods that their controllers take away: property
// rollout-availability. It counts pods that are ready and that no controller is about to take: of each ReplicaSet as
// many as it asks for at most. Pods that are lost otherwise (by a node, a drain, an administrator) are not held against
// the controllers: they count as if they were there, and of the numbers that the Deployment asked for the lowest one
// counts, until it is whole again, and for kHearsWithin in any case, which is how late controllers may learn of a
// change. The bounds that the Deployment sets are calculated here, not by the rules under test. Thread: one.
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
  static constexpr Duration kHearsWithin = minutes(2);

  explicit RolloutAudit(Verdicts& verdicts) : verdicts_(verdicts) {}

  /// Null: the object did not exist before, or does not any more.
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
    std::int64_t available_said = 0;  // in its status
    std::set<std::string> available;  // uids
  };

  struct Rollout {
    std::string name;
    bool is_rolling = false;
    std::int64_t wanted = 0;
    std::int64_t least = 0;                                 // the number that it promises now
    std::vector<std::pair<Instant, std::int64_t>> earlier;  // promises, and when they were replaced
    std::map<std::string, Instant> lost;                    // pods, and when one was lost or came back last
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
