// Where scenarios come from: files, and those that come with the program. Thread: main.
#pragma once

#include "base/error.h"
#include "sim/scenario/parser.h"

#include <string>
#include <vector>

namespace spillway::apps {

struct ScenarioSource {
  std::string file;
  std::string text;
};

/// A file, or one that comes with the program; "all" is every one of these. kInvalid, kNotFound: there is none.
Result<std::vector<ScenarioSource>> find_sources(const std::string& wanted);

/// Reads files that a scenario names, beside it.
sim::ReadText reader_beside(const std::string& file);

}  // namespace spillway::apps
