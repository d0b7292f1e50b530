// The command line together with the file it names: `spillway controller --config FILE`. Thread: main.
#pragma once

#include "cli/command_line.h"

#include <variant>

namespace spillway::apps {

/// As cli::parse_command_line. What a file says is read as flags before those given; warnings about it are printed. A
/// file that cannot be used is a mistake like any other.
std::variant<cli::CommandLine, cli::Farewell> parse_with_files(int argc, const char* const* argv);

}  // namespace spillway::apps
