// Carries out the steps of an incident on a simulated cluster. Thread: one.
#pragma once

#include "sim/incident.h"

#include <vector>

namespace spillway::sim {

class Cluster;

void play(const std::vector<Step>& steps, Cluster& cluster);

}  // namespace spillway::sim
