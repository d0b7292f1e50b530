// Reads what an overview of a cluster needs from its API server, and the thresholds of its nodes. Thread: main.
#pragma once

#include "apps/view/cluster_view.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/outlook/overview.h"

#include <string>
#include <vector>

namespace spillway::apps {

/// The number of nodes whose agents are queried for their thresholds; of a larger cluster the first by name.
inline constexpr std::size_t kNodesAskedMax = 50;

struct OverviewReading {
  outlook::Overview overview;
  std::vector<std::string> unread;  // lists that could not be read, with the reason
};

/// `name_space`: only its pods, claims and Services; empty: all. Nodes and pods have to be readable, other lists may be
/// refused.
Result<OverviewReading> read_overview(ClusterView& cluster, const std::string& name_space, Now now);

}  // namespace spillway::apps
