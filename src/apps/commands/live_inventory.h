// The simulator's inventory of a running cluster, read through a kubeconfig or from lists that were read before.
// Thread: main.
#pragma once

#include "base/error.h"
#include "cli/flags/command_line.h"
#include "sim/scenario/inventory.h"

#include <cstddef>
#include <string>

namespace spillway::apps {

/// Load of pods: from metrics.k8s.io if it answers, else their requests. kInvalid: the kubeconfig; others as the API
/// server answers.
Result<sim::Inventory> read_live_inventory(const cli::ClusterArgs& api);

/// Reads the inventory from a file of answers, one a line, of kListsBytesMax at most. Errors name the file and the
/// line.
Result<sim::Inventory> read_listed_inventory(const std::string& file);
inline constexpr std::size_t kListsBytesMax = std::size_t{256} * 1024 * 1024;

}  // namespace spillway::apps
