// Pages of a node: pods, configuration, metrics, state, health. Thread: loop.
#pragma once

#include "agent/contract/ports.h"
#include "apps/node/running_node.h"
#include "apps/process/process.h"
#include "host/kubelet_endpoint.h"

namespace spillway::apps {

/// `process` and `node` have to outlive the pages.
host::KubeletEndpoint::Options node_pages(Process& process, const RunningNode& node, agent::MachineInfo machine);

}  // namespace spillway::apps
