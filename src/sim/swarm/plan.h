// The plan of one seed of the swarm: a scenario, drawn. A small cluster, its configuration, a hundred seconds of random
// faults and of events, then everything is healed and has to come to rest. Thread: any (pure): the same seed gives the
// same plan on every build.
#pragma once

#include "sim/scenario/document.h"

#include <cstdint>

namespace spillway::sim {

/// One server with its store in memory, or one to three of them over an etcd of one or three members. In one plan of
/// three nothing that makes pods is lost or crashes, and there may never be a pod too many.
Scenario plan_of(std::uint64_t seed);

}  // namespace spillway::sim
