// The facts of this machine from which the runtime of `spillway up` follows. Thread: main.
#pragma once

#include "cli/flags/command_line.h"
#include "host/containerd/daemon_config.h"
#include "policy/checkup/runtime_choice.h"

#include <string>

namespace spillway::apps {

/// `configured`: containerRuntimeEndpoint of the node's configuration. Programs that flags name are taken as they are;
/// others are searched on PATH and in the usual directories.
checkup::RuntimeFacts read_runtime_facts(const cli::RuntimeArgs& args, std::string configured);

/// The directory of CNI plug-ins that a containerd is configured with while none has them.
inline constexpr const char* kUsualPluginsDirectory = "/usr/lib/cni";

/// The settings of a containerd below `data_dir` on this machine, without its sandbox image. `cni_configuration`: the
/// directory of the node's network.
host::DaemonSettings read_daemon_settings(const checkup::RuntimeFacts& facts, const std::string& data_dir,
                                          std::string cni_configuration);

}  // namespace spillway::apps
