// The checks of the Pod Security Standards: each a function from a pod to what it has against it. Which check holds for
// which level and version is the table in evaluate.cc. Thread: any (pure).
// Source: Kubernetes docs, "Pod Security Standards".
#pragma once

#include "policy/podsecurity/container_findings.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::podsecurity {

/// A violation that one check found in a pod.
struct Finding {
  std::string reason;  // "host namespaces"
  std::string detail;  // "hostNetwork, hostPID"; may be empty
};

/// nullopt: no finding. `minor`: of the requested version, 0 to kNewestMinor.
using CheckFunction = std::optional<Finding> (*)(const PodView& pod, std::int32_t minor);

// Baseline.
std::optional<Finding> app_armor_profile(const PodView& pod, std::int32_t minor);
std::optional<Finding> capabilities_baseline(const PodView& pod, std::int32_t minor);
std::optional<Finding> host_namespaces(const PodView& pod, std::int32_t minor);
std::optional<Finding> host_path_volumes(const PodView& pod, std::int32_t minor);
std::optional<Finding> host_ports(const PodView& pod, std::int32_t minor);
/// Requests of probes and hooks go to the pod itself; from v1.34 on.
std::optional<Finding> probe_hosts(const PodView& pod, std::int32_t minor);
std::optional<Finding> privileged(const PodView& pod, std::int32_t minor);
/// From v1.35 on pods with a user namespace may unmask /proc.
std::optional<Finding> proc_mount(const PodView& pod, std::int32_t minor);
/// The type container_engine_t is allowed from v1.31 on.
std::optional<Finding> selinux_options(const PodView& pod, std::int32_t minor);
/// Annotations until v1.18, fields from v1.19 on.
std::optional<Finding> seccomp_profile_baseline(const PodView& pod, std::int32_t minor);
/// Checks sysctls; more of them are allowed from v1.27, v1.29 and v1.32 on.
std::optional<Finding> sysctls(const PodView& pod, std::int32_t minor);
std::optional<Finding> windows_host_process(const PodView& pod, std::int32_t minor);

// Restricted.

/// From this minor version on pods of Windows are exempt from requirements that they cannot meet.
inline constexpr std::int32_t kWindowsSparedSince = 25;

/// From this minor version on pods with a user namespace may run as root in it.
inline constexpr std::int32_t kUserNamespacesSince = 35;

std::optional<Finding> allow_privilege_escalation(const PodView& pod, std::int32_t minor);
std::optional<Finding> capabilities_restricted(const PodView& pod, std::int32_t minor);
/// The check of proc_mount, also for pods with a user namespace; from v1.35 on.
std::optional<Finding> proc_mount_restricted(const PodView& pod, std::int32_t minor);
std::optional<Finding> restricted_volumes(const PodView& pod, std::int32_t minor);
std::optional<Finding> run_as_non_root(const PodView& pod, std::int32_t minor);
std::optional<Finding> run_as_user(const PodView& pod, std::int32_t minor);
std::optional<Finding> seccomp_profile_restricted(const PodView& pod, std::int32_t minor);

}  // namespace spillway::podsecurity
