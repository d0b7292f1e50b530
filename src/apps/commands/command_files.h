// The command line together with the files it names: `spillway controller --config FILE --config-dir DIRECTORY`.
// Thread: main.
#pragma once

#include "cli/flags/command_line.h"

#include <variant>

namespace spillway::apps {

/// Parses like cli::parse_command_line. The content of files is read as flags before those given; warnings about them
/// are printed. Unusable files are a mistake like any other; all their errors are reported at once.
std::variant<cli::CommandLine, cli::EarlyExit> parse_with_files(int argc, const char* const* argv);

}  // namespace spillway::apps
