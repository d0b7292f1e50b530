// `spillway stress`: allocates and touches memory at a rate, holds it, and ends by itself. For demos and experiments.
#pragma once

#include "cli/command_line.h"

namespace spillway::apps {

/// Returns an exit code. SIGTERM ends it at once, as for any process.
int run_stress(const cli::StressCommand& command);

}  // namespace spillway::apps
