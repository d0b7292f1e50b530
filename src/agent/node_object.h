// The Node object as the agent writes it: the one it registers, what it keeps right afterwards, and the patches.
// Thread: any (pure). Source: spec "Node agent", 2, 4-7.
#pragma once

#include "agent/options.h"
#include "agent/ports.h"
#include "api/json.h"
#include "api/node.h"
#include "base/time.h"
#include "policy/eviction/conditions.h"

#include <string>
#include <vector>

namespace spillway::agent {

/// What the agent knows about itself at one moment.
struct NodeFacts {
  api::ResourceList capacity;
  api::ResourceList allocatable;
  eviction::ConditionSet pressure;
  std::vector<std::string> not_ready;  // why the node is not ready; empty: it is
};

/// A change that operators should see, as a Normal (or Warning) event on the node.
struct NodeEvent {
  std::string reason;
  std::string message;
  bool warning = false;

  friend bool operator==(const NodeEvent&, const NodeEvent&) = default;
};

/// Labels, taints and annotations of the node to register, without status.
api::Node initial_node(const AgentOptions& options, const MachineInfo& machine);

/// Brings everything of the status that is the agent's up to date; events in order. Times of conditions move as
/// upstream moves them: lastHeartbeatTime always, lastTransitionTime with the status.
std::vector<NodeEvent> update_status(api::Node& node, const AgentOptions& options, const MachineInfo& machine,
                                     const NodeFacts& facts, WallTime now);

/// Does a difference need to be reported? Heartbeat times alone do not.
bool is_changed(const api::NodeStatus& before, const api::NodeStatus& after);

/// Strategic merge patch of status (and the labels the agent forces) from one to the other; {} if they are equal.
api::Json node_patch(const api::Node& before, const api::Node& after);

/// Default labels and annotations of an existing node put right on registration; true if any was not.
bool reconcile_metadata(const api::Node& initial, api::Node& existing);

}  // namespace spillway::agent
