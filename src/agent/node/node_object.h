// The Node object as the agent writes it: the one it registers, what an existing one is given on registration, and the
// status that every setter brings up to date.
// Thread: any (pure). Source: Kubernetes docs, "Nodes", self-registration; spec "Node agent", 2, 4; vectors
// node-agent/register_reconcile, node_status_setters.
#pragma once

#include "agent/contract/node_event.h"
#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "agent/node/node_machine.h"
#include "agent/node/node_software.h"
#include "api/object/node.h"
#include "base/time.h"
#include "policy/eviction/conditions.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// The agent's view of its node at one moment.
struct NodeFacts {
  api::ResourceList reservation;
  DeviceResources devices;
  eviction::ConditionSet pressure;
  std::vector<std::string> not_ready;  // why the node is not ready; empty: it is ready
  Result<std::vector<NodeImage>> images = std::vector<NodeImage>();
  std::vector<RuntimeHandler> runtime_handlers;
  std::optional<bool> supplemental_groups_policy = {};  // the runtime's

  friend bool operator==(const NodeFacts& a, const NodeFacts& b);
};

/// Labels, taints and annotations of the node to register, without status.
api::Node initial_node(const AgentOptions& options, const MachineInfo& machine);

/// Allocatable as the node reports it, without devices: what pods are admitted by.
api::ResourceList own_allocatable(const AgentOptions& options, const MachineInfo& machine,
                                  const api::ResourceList& reservation);

/// kInvalid: the node could not report its addresses.
Outcome check_addresses(const AgentOptions& options, const MachineInfo& machine);

/// The results of the setters, beside the status.
struct StatusUpdate {
  std::vector<NodeEvent> events;  // in order
  std::vector<Error> errors;      // errors of setters that left their part unchanged
};

/// Runs every setter in order. An error of one does not stop the others. Times of conditions move as upstream moves
/// them: lastHeartbeatTime always, lastTransitionTime with the status.
StatusUpdate update_status(api::Node& node, const AgentOptions& options, const MachineInfo& machine,
                           const NodeFacts& facts, WallTime now);

/// Brings an existing node's default labels, annotation, huge pages and extended resources to those of `initial`; true
/// if anything was different. Other labels, taints and conditions are not changed.
bool reconcile_node(const api::Node& initial, ExtendedResources extended, api::Node& existing);

}  // namespace spillway::agent
