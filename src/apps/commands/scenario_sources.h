// The sources of scenarios: files, and those in the program. Thread: main.
#pragma once

#include "base/error.h"
#include "sim/scenario/parser.h"

#include <string>
#include <vector>

namespace spillway::apps {

/// Each of `wanted` is a file, or a scenario of the program; "all" means every one of these. `instead`: replaces their
/// clusters. kInvalid, kNotFound: the first one that does not exist or cannot be read.
Result<std::vector<sim::Scenario>> read_scenarios(const std::vector<std::string>& wanted,
                                                  const sim::ClusterOverride& instead);

/// Reads files that a scenario names, beside it.
sim::ReadText reader_beside(const std::string& file);

}  // namespace spillway::apps
