// Limits all pods together to the allocatable, and daemons to their reservations, as enforceNodeAllocatable requires;
// records events about it; retries once a minute until each limit is set.
// Thread: loop. Source: Kubernetes docs, "Reserve Compute Resources for System Daemons", enforcing node allocatable;
// spec "Node agent", 9.3.
#pragma once

#include "agent/contract/context.h"
#include "api/json/json.h"

#include <string>
#include <vector>

namespace spillway::agent {

/// "Failed to enforce Kube Reserved Cgroup Limits on "/runtime.slice": ...": why the limits of a group do not hold.
std::string enforcement_failure(const LimitGroup& wanted, const Error& why);

class AllocatableEnforcement {
 public:
  /// `limits`: at most one of each group.
  AllocatableEnforcement(AgentContext& context, std::vector<LimitGroup> limits);

  void start(Now now);
  void on_limited(const GroupLimited& event, Now now);

  /// Every limit that is wanted, and whether it holds.
  api::Json state() const;

 private:
  struct Limit {
    LimitGroup wanted;
    bool holds = false;
    std::string problem;  // error of the last try
  };

  void apply(LimitedGroup group);
  Limit* find(LimitedGroup group);

  AgentContext& context_;
  std::vector<Limit> limits_;
};

}  // namespace spillway::agent
