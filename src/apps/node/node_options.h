// Converts the command line to the options of an agent.
#pragma once

#include "agent/contract/gate_settings.h"
#include "agent/contract/image_settings.h"
#include "agent/contract/options.h"
#include "api/json/json.h"
#include "base/error.h"
#include "cli/flags/command_line.h"
#include "controllers/controller_set.h"

#include <string>
#include <vector>

namespace spillway::apps {

struct NodeSetup {
  agent::AgentOptions agent;
  agent::GateSettings gate;
  agent::ImageGcPolicy image_gc;
  api::Json configuration;  // the KubeletConfiguration in effect
};

/// kInvalid: a threshold or grace period that cannot be; `at` names the flag. `memory` is the node's.
Result<NodeSetup> make_node_setup(const cli::NodeArgs& args, std::string node_name, Bytes memory);

/// kInvalid: a flag that does not parse.
Result<controllers::ControllerSet::Options> make_controller_options(const cli::ControllerArgs& args);

/// Warnings on standard error, one line each.
void warn_of_flags_without_effect(const std::vector<cli::FlagWithoutEffect>& flags);

/// Names the cgroup tree of the processes that work in this directory: eight hexadecimal digits.
std::string instance_of(const std::string& directory);
/// The folder of one node's logs, pod directories and journal. `given` may be empty.
std::string node_state_dir(const std::string& given, const std::string& data_dir, const std::string& node);

}  // namespace spillway::apps
