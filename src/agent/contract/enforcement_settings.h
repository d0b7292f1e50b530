// What enforceNodeAllocatable says of the daemons that something is reserved for.
// Thread: any (plain values). Source: Kubernetes docs, "Reserve Compute Resources for System Daemons".
#pragma once

#include <string>

namespace spillway::agent {

/// kCompressible: of what is reserved only CPU, which slows down and ends nobody.
enum class ReservedLimits { kNone, kCompressible, kAll };

struct ReservedGroup {
  std::string cgroup;  // its path in the hierarchy; given wherever there are limits
  ReservedLimits limits = ReservedLimits::kNone;
};

/// Whether pods are limited together is eviction::ThresholdConfig::enforce_pods, which thresholds depend on as well.
struct EnforcementSettings {
  ReservedGroup system;
  ReservedGroup kube;
};

}  // namespace spillway::agent
