// The age of the statistics on which decisions are based.
// Thread: any (pure). Source: spec "Node agent", 11.
#pragma once

#include "api/object/summary.h"
#include "base/time.h"

#include <string_view>
#include <vector>

namespace spillway::agent {

/// The age of the newest figures of one part of the statistics.
struct StatsAge {
  std::string_view part;  // "node", "pods", "filesystem", "pod_disk"
  double seconds = 0;
};

/// The ages of all measured parts; for pods the oldest one counts.
std::vector<StatsAge> ages_of(const api::Summary& summary, WallTime now);

}  // namespace spillway::agent
