// An incident played on the product, with the lifecycle brakes off or on, and what was done to the cluster counted.
// Thread: one. The same arguments give the same report.
#pragma once

#include "sim/incident.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::sim {

enum class Brakes { kOff, kOn };

struct IncidentReport {
  std::uint64_t readiness_flips = 0;  // a node's Ready left True
  std::uint64_t taints = 0;           // NoExecute for a node that is not ready or unreachable
  std::uint64_t deletions = 0;        // pods that began to be deleted
  std::string held_by;                // brakes that held an act, comma-separated
  std::string trace_hash;
  std::vector<std::string> violations;  // of the invariants; and: not everything recovered
};

class RunObserver;

/// Ten minutes after the repair every node must be ready and untainted. `observer`: null, or who looks at the run.
IncidentReport run_incident(const Incident& incident, Brakes brakes, std::uint64_t seed,
                            RunObserver* observer = nullptr);

}  // namespace spillway::sim
