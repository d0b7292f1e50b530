// The command line together with the files it names: `spillway controller --config FILE --config-dir DIRECTORY`.
// Thread: main.
#pragma once

#include "cli/flags/command_line.h"

#include <variant>

namespace spillway::apps {

/// As cli::parse_command_line. What the files say is read as flags before those given; warnings about them are printed.
/// Files that cannot be used are a mistake like any other; everything that is wrong with them is said at once.
std::variant<cli::CommandLine, cli::EarlyExit> parse_with_files(int argc, const char* const* argv);

}  // namespace spillway::apps
