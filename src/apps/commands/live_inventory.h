// A running cluster as the simulator takes it, read through a kubeconfig. Thread: main.
#pragma once

#include "base/error.h"
#include "cli/flags/command_line.h"
#include "sim/scenario/inventory.h"

namespace spillway::apps {

/// Load of pods: from metrics.k8s.io if it answers, else their requests. kInvalid: the kubeconfig; others as the API
/// server answers.
Result<sim::Inventory> read_live_inventory(const cli::ClusterArgs& api);

}  // namespace spillway::apps
