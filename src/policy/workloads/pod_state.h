// What a pod is to the workload that it belongs to. Thread: any (pure).
// Source: Kubernetes docs, "Pod Lifecycle"; kube-controller-manager 1.32.
#pragma once

#include "api/object/pod.h"

#include <memory>

namespace spillway::workloads {

using PodPtr = std::shared_ptr<const api::Pod>;

/// Neither terminal nor on its way out.
bool is_active(const api::Pod& pod);
bool is_ready(const api::Pod& pod);

}  // namespace spillway::workloads
