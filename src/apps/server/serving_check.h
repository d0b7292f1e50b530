// Values of the flags of an API server, checked before the first file, directory or port is touched.
// Thread: main; it reads files.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "cli/flags/command_line.h"

#include <string>

namespace spillway::apps {

/// kInvalid: a file that cannot be read or used, an address that this machine does not have, a directory that is not
/// there; `at` names the flag. `data_dir` and the directories above it may be missing.
Outcome check_serving(const cli::ServingArgs& args, const std::string& data_dir, WallTime now);

}  // namespace spillway::apps
