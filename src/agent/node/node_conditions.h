// The conditions of a Node that the agent owns: pressure, Ready and, in the legacy profile, OutOfDisk. Other conditions
// are not changed. Thread: any (pure). Times have whole seconds. Source: Kubernetes docs, "Node Status", conditions;
// spec "Node agent", 4 (legacy profile), 6, 7; vectors node-agent/node_status_setters.
#pragma once

#include "agent/contract/node_event.h"
#include "agent/contract/options.h"
#include "api/object/node.h"
#include "base/time.h"
#include "policy/eviction/conditions.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// The heartbeat always moves; reason, message and transition time only with the status.
void set_pressure(api::Node& node, eviction::Condition pressure, eviction::ConditionStatus wanted, WallTime now,
                  std::vector<NodeEvent>& events);

struct Readiness {
  /// The errors that make the node not ready, in the order runtime, network, storage, shutdown; empty: it is ready.
  std::vector<std::string> errors;
  /// A container manager requirement that should hold and does not; appended as a warning.
  std::optional<std::string> soft_requirements;
  /// kOn: ephemeral-storage must be in the capacity.
  LocalStorageIsolation local_storage = LocalStorageIsolation::kOn;
};

/// Replaces the whole condition; missing capacity is one more error. No event when it did not exist before.
void set_ready(api::Node& node, const Readiness& readiness, WallTime now, std::vector<NodeEvent>& events);

/// Reported by agents up to 1.12, always False: what disks have left is DiskPressure's.
void set_out_of_disk(api::Node& node, WallTime now, std::vector<NodeEvent>& events);

}  // namespace spillway::agent
