// Prints a scenario as a file: parser.h reads a scenario from it that plays to the same trace hash. Thread: any (pure).
#pragma once

#include "sim/scenario/document.h"

#include <string>

namespace spillway::sim {

/// YAML, an event per line. Of a generated cluster alone; members with their default are left out.
std::string scenario_yaml(const Scenario& scenario);

/// "crash: {only: [3]}": the action of an event, as a line.
std::string event_text(const TimelineEvent& event);

}  // namespace spillway::sim
