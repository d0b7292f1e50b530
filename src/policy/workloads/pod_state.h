// The state of a pod as its workload's controller counts it. Thread: any (pure).
// Source: Kubernetes docs, "Pod Lifecycle"; kube-controller-manager 1.32.
#pragma once

#include "api/object/pod.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace spillway::workloads {

using PodPtr = std::shared_ptr<const api::Pod>;

/// True if the pod is neither terminal nor being deleted.
bool is_active(const api::Pod& pod);
bool is_ready(const api::Pod& pod);
/// True if its node has evicted it, or rejected it because of its own pressure.
bool was_evicted(const api::Pod& pod);

/// A pod is available when it has been ready for so long. Zero: it is; nullopt: it is not ready.
std::optional<Duration> until_available(const api::Pod& pod, std::int32_t min_ready_seconds, WallTime now);

}  // namespace spillway::workloads
