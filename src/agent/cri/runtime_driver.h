// The cgroup driver of a container runtime, from its answers to RuntimeConfig, or, where it does not implement that
// call, to a verbose Status. Thread: any (pure). Source: Kubernetes docs, "Container Runtime Interface (CRI)";
// KEP-4033.
#pragma once

#include "api/json/json.h"
#include "policy/cgroups/cgroup_name.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::agent {

/// The driver in a RuntimeConfigResponse; nullopt: it has no Linux part.
std::optional<cgroups::CgroupDriver> driver_in_config(const api::Json& answer);

/// The driver of containerd's default runtime. `config`: the text of the member "config" of the info of a verbose
/// Status, as containerd before 2.0 has it. nullopt: it is something else.
std::optional<cgroups::CgroupDriver> driver_in_status(std::string_view config);

}  // namespace spillway::agent
