// Memory that lower classes of pods leave to higher ones: the limits of the cgroups of Burstable and BestEffort pods.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)", qosReserved; gate QOSReserved.
#pragma once

#include "base/bytes.h"

#include <cstdint>
#include <optional>

namespace spillway::cgroups {

/// Sums of the memory that pods of a class request.
struct RequestedMemory {
  Bytes guaranteed;
  Bytes burstable;
};

struct ClassMemory {
  Bytes burstable;
  Bytes best_effort;

  friend bool operator==(const ClassMemory&, const ClassMemory&) = default;
};

/// Burstable pods leave `percent` of what Guaranteed pods request, BestEffort pods that and `percent` of what Burstable
/// pods request. `allocatable`: the node's memory without reservations of daemons. nullopt: there is none to share.
std::optional<ClassMemory> class_memory(Bytes allocatable, const RequestedMemory& requested, std::int64_t percent);

}  // namespace spillway::cgroups
