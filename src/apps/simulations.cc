#include "apps/commands.h"

namespace spillway::apps {
int run_simulate(const cli::SimulateCommand&) {
  return 1;
}

int run_swarm(const cli::SwarmCommand&) {
  return 1;
}
}  // namespace spillway::apps
