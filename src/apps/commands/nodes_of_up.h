// The nodes of one `spillway up`: their names, and those whose pods are processes beside nodes with containers. Thread:
// any.
#pragma once

#include "cli/flags/command_line.h"
#include "controllers/manifests/manifest.h"

#include <string>
#include <vector>

namespace spillway::apps {

/// Nodes of --nodes, then those of --process-nodes.
std::vector<std::string> node_names(const cli::UpCommand& command);

/// True if `node` is one of --process-nodes.
bool is_process_node(const cli::UpCommand& command, const std::string& node);

/// The arguments of a node of --process-nodes: no container runtime, and a taint that keeps pods with images away.
cli::NodeArgs process_node_args(cli::NodeArgs args);

/// The RuntimeClass `process`: its pods are placed on nodes whose pods are processes.
controllers::Manifest process_runtime_class();

}  // namespace spillway::apps
