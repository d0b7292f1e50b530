// Parses the faults in a scenario file: random ones, those of processes of the control plane, of etcd, and objects that
// are created and deleted. Thread: any (pure).
#pragma once

#include "sim/scenario/document.h"
#include "yaml/place.h"

namespace spillway::sim {

/// The member `faults`.
Result<ChanceFaults> parse_faults(const yaml::Place& place);

// Parsers of actions; `place` is that of the value behind the action's name.
Result<Action> read_create(const yaml::Place& place);
Result<Action> read_delete(const yaml::Place& place);
Result<Action> read_etcd(const yaml::Place& place);
/// "controllers", "scheduler" or "server-1".
Result<Action> read_crash_of_process(const yaml::Place& place);
Result<Action> read_restart_of_process(const yaml::Place& place);

/// Checks that every member and server that the timeline names exists.
Outcome check_servers(const yaml::Place& scenario, const ServerPlan& plan, const std::vector<TimelineEvent>& timeline);

}  // namespace spillway::sim
