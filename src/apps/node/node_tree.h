// The cgroups of a node that is about to start, for the cgroup driver of its configuration and its container runtime.
// Thread: main, before the loop runs: it waits for the runtime and for systemd.
#pragma once

#include "api/json/json.h"
#include "apps/node/running_node.h"
#include "host/cgroup/node_slice.h"
#include "host/systemd/slice_units.h"
#include "policy/cgroups/driver_choice.h"

#include <memory>

namespace spillway::apps {

/// The cgroup drivers of a configuration and of the runtime at this socket. kInvalid: no such driver is configured.
Result<cgroups::DriverFacts> driver_facts(const api::Json& configuration, const std::string& socket);

struct NodeTree {
  std::unique_ptr<host::NodeSlice> slice;
  std::unique_ptr<host::SliceUnits> slices;  // null: pods' cgroups are made here
};

/// kConflict: the configuration and the runtime name different drivers. kInvalid: the driver cannot be had with the
/// other flags. Errors of NodeSlice::create() and of systemd as well.
Result<NodeTree> make_node_tree(const NodeSite& site, const NodePartOptions& options);

}  // namespace spillway::apps
