// Checks if the replacement of a pod could be placed now, on another node than its own, by the scheduler's own rules.
// Two pods that are deleted within the same second do not count on the same room.
// Thread: loop. Bounds: the loads of all nodes are counted anew at most once a second, and only while there are checks.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/node_load.h"
#include "policy/reason.h"
#include "policy/scheduling/surroundings.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

class ReplacementCheck {
 public:
  /// `promised`: pods whose replacements are under way and have no node yet, in their order: the room they need is
  /// taken. Null: there are none.
  ReplacementCheck(Shared shared, std::function<std::vector<PodPtr>(Now now)> promised);
  ReplacementCheck(const ReplacementCheck&) = delete;
  ReplacementCheck& operator=(const ReplacementCheck&) = delete;

  /// nullopt: there is room, and it is now reserved. Pods that would not be replaced on another node (without a
  /// controller, or of a DaemonSet) need none.
  std::optional<policy::Reason> find_obstacle(const api::Pod& pod, Now now);

 private:
  void count_anew(Now now);
  /// nullopt: the replacement was placed, and its room is taken.
  std::optional<policy::Reason> take_room(const api::Pod& pod);

  Shared shared_;
  std::function<std::vector<PodPtr>(Now now)> promised_;
  client::Informer<api::Namespace> namespaces_;
  std::map<std::string, policy::NodeLoad> loads_;
  scheduling::Surroundings around_;
  std::optional<Instant> counted_;
};

}  // namespace spillway::controllers
