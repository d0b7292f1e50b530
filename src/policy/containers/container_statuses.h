// Container statuses for the API server: computed from the runtime's instances, the previous statuses, and the failures
// to start. Also computes termination messages.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle", "Determine the Reason for Pod Failure"; spec "Pod
// lifecycle", 9.10, 10.1-10.4; vectors pod-lifecycle/container_status.
#pragma once

#include "api/object/pod.h"
#include "policy/containers/pod_actions.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::containers {

/// An instance as the runtime reports it; the first is the newest of its name.
struct InstanceReport {
  Instance instance;         // `id` is the runtime's
  std::string container_id;  // container id with its scheme
  std::string image;
  std::string image_id;
  std::int32_t restart_count = 0;
  std::optional<WallTime> started_at;
  std::optional<WallTime> finished_at;
  std::int32_t signal = 0;
  std::string message;  // see termination_message()
};

/// The cause that made the last try to start a container fail.
struct StartFailure {
  std::string reason;
  std::string message;

  friend bool operator==(const StartFailure&, const StartFailure&) = default;
};

using StartFailures = std::map<std::string, StartFailure, std::less<>>;  // by container

enum class ContainerKind { kInit, kRegular, kEphemeral };

/// Statuses of the containers of one kind, sorted by name; init containers keep their order. `started` and `ready` are
/// not set here.
std::vector<api::ContainerStatus> container_statuses(const api::Pod& pod, ContainerKind kind,
                                                     const std::vector<InstanceReport>& reports,
                                                     const std::vector<api::ContainerStatus>& previous,
                                                     const StartFailures& failures);

/// The texts that a termination message can be made from.
struct MessageSources {
  std::string runtime;              // the runtime's own words
  std::optional<std::string> file;  // the end of the message file; nullopt: there is none
  bool from_logs = false;           // terminationMessagePolicy FallbackToLogsOnError
  std::int32_t exit_code = 0;
  std::string reason;
  std::string log;  // the end of the log, unchanged, line by line
};

std::string termination_message(const MessageSources& sources);

inline constexpr std::size_t kMessageFileMax = 4096;     // as upstream; of a longer file only the end
inline constexpr std::size_t kMessagesOfPodMax = 12288;  // as upstream: shared by the containers of a pod

}  // namespace spillway::containers
