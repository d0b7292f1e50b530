// The end of a run: heals everything, and lists objects that do not match their specifications yet. Thread: one.
#pragma once

#include "sim/cluster.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

/// Ends all faults by chance, and brings back every process, machine, network and member of etcd.
void heal_everything(Cluster& cluster);

/// Makes nodes that were drained take pods again, as an administrator does; repeated until it is done.
void uncordon_nodes(Cluster& cluster);
/// Likewise: resumes paused rollouts.
void resume_rollouts(Cluster& cluster);

struct Unrest {
  std::string_view subject;  // a kind: "Node"
  std::string text;
};

/// Nodes that are not ready or tainted, namespaces and pods that should be gone, replicas that are missing, rollouts
/// that are not complete, processes without a pod and pods without a process. Empty: at rest.
std::vector<Unrest> unrest_of(const Cluster& cluster);

}  // namespace spillway::sim
