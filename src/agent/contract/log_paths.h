// Paths of the logs of containers, and of the links by which log collectors find them.
// Thread: any (pure). Source: Kubernetes docs, "Logging Architecture"; vectors kubelet-surface/container_log_link.
#pragma once

#include "api/object/meta.h"
#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::agent {

/// podLogsDir of a KubeletConfiguration that does not name one, and the folder of the links.
inline constexpr std::string_view kPodLogsDirectory = "/var/log/pods";
inline constexpr std::string_view kLogLinksDirectory = "/var/log/containers";

/// "/var/log/pods/default_web-0_UID": of all containers of a pod.
std::string pod_log_directory(std::string_view logs_directory, const api::PodKey& pod, std::string_view uid);
/// The pod's UID at the end of the path of a log directory; the whole last part where that has no underscore.
std::string_view uid_of_log_directory(std::string_view path);
/// "app/0.log": below the directory of the pod. `attempt` is the restart count, from 0.
std::string container_log_path(std::string_view container, std::int32_t attempt);

/// "web-0_default_app-ID.log". Names of 255 bytes at most: the part before ".log" is cut, and then lacks the end of its
/// ID.
std::string log_link_name(const api::PodKey& pod, std::string_view container, std::string_view container_id);
/// The ID in the name of a link. kInvalid: it is no link's name, in upstream's words.
Result<std::string> container_of_log_link(std::string_view link);

}  // namespace spillway::agent
