// The part of enforceNodeAllocatable about daemons with reservations.
// Thread: any (plain values). Source: Kubernetes docs, "Reserve Compute Resources for System Daemons".
#pragma once

#include <string>

namespace spillway::agent {

/// kCompressible: only the CPU of the reservation, whose shortage slows down and ends no process.
enum class ReservedLimits { kNone, kCompressible, kAll };

struct ReservedGroup {
  std::string cgroup;  // path of the group's cgroup; required wherever there are limits
  ReservedLimits limits = ReservedLimits::kNone;
};

/// The limit of all pods together is eviction::ThresholdConfig::enforce_pods, because thresholds depend on it as well.
struct EnforcementSettings {
  ReservedGroup system;
  ReservedGroup kube;
};

}  // namespace spillway::agent
