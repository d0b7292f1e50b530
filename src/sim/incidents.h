// Named incidents: what has gone wrong in real clusters, played on the product, with the lifecycle brakes off or on,
// and what was done to the cluster counted. Thread: one. The same arguments give the same report.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

class Cluster;

enum class Brakes { kOff, kOn };

struct Incident {
  std::string_view name;
  std::string_view story;
  std::int32_t nodes = 30;
  std::int32_t zones = 3;
  /// Breaks the cluster, lets time pass and repairs it.
  void (*play)(Cluster& cluster) = nullptr;
};

struct IncidentReport {
  std::uint64_t readiness_flips = 0;  // a node's Ready left True
  std::uint64_t taints = 0;           // NoExecute for a node that is not ready or unreachable
  std::uint64_t deletions = 0;        // pods that began to be deleted
  std::string held_by;                // brakes that held an act, comma-separated
  std::string trace_hash;
  std::vector<std::string> violations;  // of the invariants; and: not everything recovered
};

std::span<const Incident> incidents();

/// Ten minutes after the repair every node must be ready and untainted.
IncidentReport run_incident(const Incident& incident, Brakes brakes, std::uint64_t seed);

}  // namespace spillway::sim
