// The reason, in one line, why a pod does not work, from its own status. Thread: any (pure).
// Source: Kubernetes docs, "Pod Lifecycle".
#pragma once

#include "api/object/pod.h"

#include <string>

namespace spillway::workloads {

/// "ImagePullBackOff: no such image" of the first container with a problem, else of a condition.
std::string why_not_ready(const api::Pod& pod);
/// "main exited with 3 (Error)" for the first container that failed, else the reason in the status; for a pod that
/// failed.
std::string why_failed(const api::Pod& pod);

}  // namespace spillway::workloads
