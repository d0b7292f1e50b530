// Could the replacement of a pod be placed now, on another node than its own, by the scheduler's own rules? Two pods
// that are let go within the same second do not count on the same room.
// Thread: loop. Bounds: the loads of all nodes are counted anew at most once a second, and only while somebody asks.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/node_load.h"
#include "policy/reason.h"
#include "policy/scheduling/surroundings.h"

#include <map>
#include <optional>
#include <string>

namespace spillway::controllers {

class ReplacementCheck {
 public:
  explicit ReplacementCheck(Shared shared) : shared_(shared) {}

  /// nullopt: there is room, and it is taken. Pods that nobody would replace elsewhere (no controller, or a DaemonSet)
  /// need none.
  std::optional<policy::Reason> find_obstacle(const api::Pod& pod, Now now);

 private:
  void count_anew(Now now);

  Shared shared_;
  std::map<std::string, policy::NodeLoad> loads_;
  scheduling::Surroundings around_;  // labels of namespaces are not known to it
  std::optional<Instant> counted_;
};

}  // namespace spillway::controllers
