// The restart policy of a container and its rules: what an exit code leads to.
// Thread: any (pure). Source: KEP-5307 (container restart policy and rules), KEP-5532 (restart of all containers);
// vectors pod-lifecycle/restart_rules.
#pragma once

#include "api/object/pod.h"

#include <cstdint>
#include <string_view>

namespace spillway::containers {

/// The reason of a container that was ended because all containers of its pod start anew.
inline constexpr std::string_view kRestartingAll = "RestartingAllContainers";

/// The container's own policy, else that of its pod: Always, OnFailure or Never.
std::string_view restart_policy_of(const api::PodSpec& spec, const api::Container& container);

/// The container's first rule that matches the exit code; nullptr: none.
const api::RestartRule* matching_rule(const api::Container& container, std::int32_t exit_code);

/// True if the container starts again after this exit: a matching rule decides before the policy, where the container
/// has a policy of its own.
bool restarts_after(const api::PodSpec& spec, const api::Container& container, std::int32_t exit_code);

/// True if some exit code may start the container again by itself: its policy, or a rule with the action Restart.
bool may_restart(const api::PodSpec& spec, const api::Container& container);

/// True if the exit code starts all containers of the pod anew.
bool restarts_all_after(const api::Container& container, std::int32_t exit_code);

}  // namespace spillway::containers
