// The health checks of a server: one for each of its parts, and those that the process adds. Thread: loop. Bounds: two
// checks for each store. Source: Kubernetes docs, "Kubernetes API health endpoints".
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/health.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class ServingState;

class ServerHealth {
 public:
  /// `more`: the checks of other parts of the process; may be empty.
  ServerHealth(const Core& core, const ServingState& state, std::function<std::vector<HealthCheck>()> more)
      : core_(core), state_(state), more_(std::move(more)) {}

  /// The checks of each part, in the order in which parts start. Names that upstream has mean the same.
  std::vector<HealthCheck> checks() const;

 private:
  void add_stores(std::vector<HealthCheck>& checks) const;
  std::string loading_problem() const;

  const Core& core_;
  const ServingState& state_;
  std::function<std::vector<HealthCheck>()> more_;
};

}  // namespace spillway::apiserver
