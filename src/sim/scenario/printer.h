// A scenario as the file that says the same: what parser.h reads from it plays to the same trace hash. Thread: any
// (pure).
#pragma once

#include "sim/scenario/document.h"

#include <string>

namespace spillway::sim {

/// YAML, an event per line. Of a generated cluster alone; members with their default are left out.
std::string scenario_yaml(const Scenario& scenario);

/// "crash: {only: [3]}": what happens in an event, as its line says it.
std::string event_text(const TimelineEvent& event);

}  // namespace spillway::sim
