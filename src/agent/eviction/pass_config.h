// Converts the options of an agent or a companion into the configuration of eviction passes.
// Thread: any. Source: spec "Eviction manager", 3; spec "Wake-up sources", 1.
#pragma once

#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "base/error.h"
#include "policy/eviction/decide.h"
#include "telemetry/log.h"

#include <string>

namespace spillway::agent {

/// The guard is one of the thresholds. Thresholds that can never be reached, or that the kernel's OOM killer may act
/// before, are named in the log. kInvalid: a threshold that cannot be.
Result<eviction::PassConfig> pass_config_of(const EvictionOptions& options, const MachineInfo& machine,
                                            std::string node_name, const telemetry::Log& log);

}  // namespace spillway::agent
