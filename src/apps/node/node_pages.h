// Pages of a node: pods, configuration, metrics, state, health. Thread: loop.
#pragma once

#include "agent/contract/ports.h"
#include "apps/node/node_site.h"
#include "apps/node/running_node.h"
#include "host/kubelet_endpoint.h"

#include <string>

namespace spillway::apps {

/// `site` and `node` have to outlive the pages.
host::KubeletEndpoint::Options node_pages(const NodeSite& site, const RunningNode& node, agent::MachineInfo machine,
                                          const std::string& state_dir);

}  // namespace spillway::apps
