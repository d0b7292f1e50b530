// The cgroup driver of a node: the one that the container runtime uses, which the configuration must not contradict.
// Thread: any (pure). Source: Kubernetes docs, "Configuring a cgroup driver"; KEP-4033.
#pragma once

#include "base/error.h"
#include "policy/cgroups/cgroup_name.h"

#include <optional>
#include <string>

namespace spillway::cgroups {

struct DriverFacts {
  std::optional<CgroupDriver> configured;  // nullopt: the configuration names none
  std::optional<CgroupDriver> runtime;     // nullopt: the runtime does not report it, or does not answer yet
  std::string socket;                      // the runtime's
  std::string problem;                     // why the runtime's driver is unknown; empty: it is known, or not reported
};

/// kConflict: the two differ, with what to change. Without a word from either it is cgroupfs, upstream's default.
Result<CgroupDriver> choose_driver(const DriverFacts& facts);

}  // namespace spillway::cgroups
