// Holds all pods together to what is not reserved, and says so in an event; tries once a minute until it holds.
// Thread: loop. Source: Kubernetes docs, "Reserve Compute Resources for System Daemons", enforcing node allocatable;
// spec "Node agent", 9.3.
#pragma once

#include "agent/contract/context.h"

#include <optional>
#include <string>

namespace spillway::agent {

class AllocatableEnforcement {
 public:
  /// `limits`: nullopt: nothing is enforced.
  AllocatableEnforcement(AgentContext& context, std::optional<KubepodsLimits> limits)
      : context_(context), limits_(std::move(limits)) {}

  void start(Now now);
  void on_limited(const PodsLimited& event, Now now);

  const std::optional<KubepodsLimits>& limits() const { return limits_; }

  /// The limits hold.
  bool enforced() const { return enforced_; }

 private:
  void apply();

  AgentContext& context_;
  std::optional<KubepodsLimits> limits_;
  bool enforced_ = false;
};

}  // namespace spillway::agent
