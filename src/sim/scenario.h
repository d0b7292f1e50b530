// What can be asked of a simulated cluster: random work under random faults.
// Thread: one. The same arguments give the same report, trace hash included.
#pragma once

#include "base/time.h"
#include "telemetry/log.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::sim {

struct Report {
  std::vector<std::string> violations;  // empty: everything held
  std::string trace_hash;
  std::uint64_t writes = 0;
  std::uint64_t messages = 0;
  std::uint64_t events = 0;
  std::uint64_t tainted_nodes_max = 0;  // NoExecute, at the same time
  std::uint64_t pods_moved = 0;
  std::string summary;  // what was drawn, for a person
};

/// A cluster of a few nodes, random pods, and five minutes of lost, late, repeated and reordered messages, crashes also
/// between two commands, partitions, refused writes, names that are used again; then everything is healed and must come
/// to rest within ten minutes. One server with its store in memory, or one to three of them over an etcd of one or
/// three members, which fail as well. All of it drawn from the seed. In a third of the seeds nothing that makes pods is
/// lost or crashes, and there may never be a pod too many. `log`: lines of every engine, each with its virtual time as
/// the field t_s.
Report run_swarm_seed(std::uint64_t seed, telemetry::Log::Sink log = {});

}  // namespace spillway::sim
