// Receivers of an agent's or companion's reports, beside the API server.
// Lifetime: what the pointers point to outlives the engine.
#pragma once

#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace spillway::recording {
class Sink;
}

namespace spillway::agent {

class Journal;
class Reaction;

/// The pointers may be null. Without `reaction` nothing acts between two observations of the engine.
struct AgentSinks {
  telemetry::Log log;
  telemetry::Registry* metrics = nullptr;
  Journal* journal = nullptr;
  Reaction* reaction = nullptr;
  recording::Sink* recording = nullptr;
};

}  // namespace spillway::agent
