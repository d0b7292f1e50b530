// Where scenarios come from: files, and those that come with the program. Thread: main.
#pragma once

#include "base/error.h"
#include "sim/scenario/parser.h"

#include <string>
#include <vector>

namespace spillway::apps {

/// Each of `wanted` is a file, or one that comes with the program; "all" is every one of these. `instead`: what takes
/// the place of their clusters. kInvalid, kNotFound: there is none, or it cannot be read; the first such.
Result<std::vector<sim::Scenario>> read_scenarios(const std::vector<std::string>& wanted,
                                                  const sim::ClusterOverride& instead);

/// Reads files that a scenario names, beside it.
sim::ReadText reader_beside(const std::string& file);

}  // namespace spillway::apps
