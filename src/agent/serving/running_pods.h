// /runningpods/ as a kubelet answers it: the pods that the runtime runs, whatever the API server says about them.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet authentication/authorization"; spec "Node agent", 12.3.
#pragma once

#include "agent/contract/running_pod.h"
#include "api/object/pod.h"

#include <string>
#include <vector>

namespace spillway::agent {

/// A PodList with uid, name, namespace and running containers alone, the newest pod first. Images are those that the
/// statuses of `pods` report, else those of their specs; empty for a pod that is not among them.
std::string running_pods_page(std::vector<RunningPod> running, const std::vector<api::Pod>& pods);

}  // namespace spillway::agent
