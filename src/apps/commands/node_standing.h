// The distance of a node to evictions, and the next victim: the answer of a Spillway agent, or the same rule over the
// data of a kubelet. Thread: main. Source: Kubernetes docs, "Node metrics data", "Node-pressure Eviction".
#pragma once

#include "apps/view/cluster_view.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/reason.h"

#include <string>

namespace spillway::apps {

/// Asks through the API server's node proxy: an agent for its decisions; where there is none (kNotFound), a kubelet for
/// /configz and /stats/summary, and the API server for its pods. Without an agent there is no forecast, and disks count
/// as one file system. Otherwise the error of the request that failed.
Result<policy::Decision> node_standing(ClusterView& cluster, const std::string& node, Now now);

}  // namespace spillway::apps
