// Settings of memory observation beyond thresholds, for nodes of this program and beside a kubelet alike. All of them
// are off, or as upstream, by default.
// Thread: any (plain values). Source: spec "Wake-up sources", 1 and 3; spec "Eviction manager", 1.
#pragma once

#include "base/bytes.h"
#include "policy/eviction/signal.h"

#include <optional>

namespace spillway::eviction {

/// The brake sets memory.high on the cgroup of all pods.
enum class Brake { kOff, kOn };

struct MemoryWatch {
  /// The estimator for memory.available and allocatableMemory.available.
  MemoryEstimator estimator = MemoryEstimator::kWorkingSet;
  /// The guard: less MemAvailable than that is memory pressure, independent of the estimator, and a pod is evicted as
  /// at a hard threshold. nullopt: off.
  std::optional<Bytes> mem_available_floor = {};
  /// Slow all pods down shortly before a hard memory threshold.
  Brake brake = Brake::kOff;
  /// Wakes of the kernel's memory controller are used where there are any: usage thresholds, memory.events.
  bool kernel_notifications = true;

  friend bool operator==(const MemoryWatch&, const MemoryWatch&) = default;
};

}  // namespace spillway::eviction
