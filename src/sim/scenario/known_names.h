// The names that events of a scenario may use: the nodes and workloads of its cluster, their pods, and objects that
// other events create. An event about anything else would silently do nothing. Thread: any (pure).
#pragma once

#include "base/error.h"
#include "sim/scenario/document.h"
#include "yaml/place.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

/// The first names, and the number of the others: "a, b and 7 more"; "none".
std::string list_names(const std::vector<std::string>& known);

/// Checks every name in the timeline against the cluster and the whole timeline. The error names it, its place, and the
/// nearest known name.
Outcome check_names(const yaml::Place& root, const Scenario& scenario);

}  // namespace spillway::sim
