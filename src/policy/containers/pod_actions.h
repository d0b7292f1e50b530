// The plan of one sync of a pod: which containers to stop, which to start, and whether its sandbox stays.
// Thread: any (pure). Source: Kubernetes docs, "Init Containers", "Sidecar Containers", "Pod Lifecycle", container
// restart policy; spec "Pod lifecycle", 5.1-5.7; vectors pod-lifecycle/compute_pod_actions.
#pragma once

#include "api/object/pod.h"
#include "policy/containers/probe_result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::containers {

struct Sandbox {
  std::string id;
  std::int64_t attempt = 0;
  bool ready = false;
  bool host_network = false;
  std::string ip;
};

/// An instance of a container, as the runtime has it.
struct Instance {
  /// kInTransition: its start or stop is not over; it counts as running, but nothing
  /// follows from it yet.
  enum class State { kCreated, kInTransition, kRunning, kExited, kUnknown };

  std::string id;
  std::string name;
  State state = State::kUnknown;
  std::int32_t exit_code = 0;
  std::string reason;
  bool outdated = false;  // made by another definition than the pod has now
};

struct PodSeen {
  std::vector<Sandbox> sandboxes;   // newest first
  std::vector<Instance> instances;  // newest first of each name
  ProbeResults liveness;
  ProbeResults startup;
};

enum class StopCause { kOther, kUnknownState, kLivenessProbe, kStartupProbe, kRestartAll };

struct ContainerToStop {
  std::string id;
  std::string name;
  std::string message;  // the text of the event that reports it
  StopCause cause = StopCause::kOther;

  friend bool operator==(const ContainerToStop&, const ContainerToStop&) = default;
};

/// Names of containers, in the order of the pod's definition.
struct PodActions {
  bool kill_pod = false;
  bool create_sandbox = false;
  std::string sandbox_id;
  std::int64_t attempt = 0;  // the sandbox's number among those of its pod, from 0
  std::vector<std::string> init_containers;
  std::vector<std::string> containers;
  std::vector<std::string> ephemeral_containers;
  std::vector<ContainerToStop> stop;  // sorted by id
  /// A container ended by a rule that restarts all containers: running ones are stopped without grace, and as soon as
  /// none is left the pod begins with its init containers. Its sandbox and volumes stay.
  bool restart_all = false;
};

PodActions compute_pod_actions(const api::Pod& pod, const PodSeen& seen);

/// True if the pod has a sandbox that it can continue with.
bool is_sandbox_usable(const api::Pod& pod, const std::vector<Sandbox>& sandboxes);

/// True if a container that does not run has to be started. `newest`: its newest instance; null: there is none. Applies
/// to containers that are neither init containers nor sidecars.
bool is_start_due(const api::Pod& pod, const api::Container& container, const Instance* newest);

/// The newest instance of a container; null: it has none.
const Instance* find_newest(const std::vector<Instance>& instances, std::string_view name);

}  // namespace spillway::containers
