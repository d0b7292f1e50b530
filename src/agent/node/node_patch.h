// Decides if a change of a Node has to be reported, and makes the patch that reports it.
// Thread: any (pure). Source: Kubernetes docs, "Update API Objects in Place Using kubectl patch", strategic merge; spec
// "Node agent", 5; vectors node-agent/node_status_changed, node_status_patch.
#pragma once

#include "api/json/json.h"
#include "api/object/node.h"

namespace spillway::agent {

/// Heartbeat times and the order of conditions alone are no change; quantities and times count by value.
bool is_changed(const api::NodeStatus& before, const api::NodeStatus& after);

/// Strategic merge patch of metadata and status from one to the other, spec left out; {} if they are equal. Conditions
/// merge by type, addresses are sent whole with a replace directive at the end, other lists are replaced.
api::Json node_patch(const api::Node& before, const api::Node& after);

}  // namespace spillway::agent
