// The state of a pod as its workload's controller counts it. Thread: any (pure).
// Source: Kubernetes docs, "Pod Lifecycle"; kube-controller-manager 1.32.
#pragma once

#include "api/object/pod.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace spillway::workloads {

using PodPtr = std::shared_ptr<const api::Pod>;

/// Neither terminal nor on its way out.
bool is_active(const api::Pod& pod);
bool is_ready(const api::Pod& pod);
/// Its node has evicted it, or turned it away because of its own pressure.
bool was_evicted(const api::Pod& pod);

/// A pod is available when it has been ready for so long. Zero: it is; nullopt: it is not ready.
std::optional<Duration> until_available(const api::Pod& pod, std::int32_t min_ready_seconds, WallTime now);

}  // namespace spillway::workloads
