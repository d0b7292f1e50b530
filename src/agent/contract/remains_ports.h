// Lists the pods' objects in a container runtime, running or not, and removes those that the agent chooses. A machine
// without images (MachineInfo::runs_images) is never asked. Thread: any (values). Bounds: as much as the runtime lists.
// Source: spec "Node agent", 18.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

enum class RuntimeState { kCreated, kRunning, kExited, kUnknown };

/// Requests a list of the pods' objects on this node. Answered by RemainsListed, or not at all if the runtime does not
/// answer.
struct ListRemains {};

struct RemainingContainer {
  std::string id;
  std::string pod_uid;
  std::string name;
  std::int32_t attempt = 0;
  std::string sandbox;
  RuntimeState state = RuntimeState::kExited;
  WallTime created;
};

struct RemainingSandbox {
  std::string id;
  std::string pod_uid;
  bool ready = false;
  WallTime created;
};

/// Listed in the runtime's order. `directories`: <namespace>_<pod>_<uid>, with logs and volumes of pods.
struct RemainsListed {
  std::vector<RemainingContainer> containers;
  std::vector<RemainingSandbox> sandboxes;
  std::vector<std::string> directories;
};

/// The parts of a pod that may be removed. kContent: everything, its logs too (the pod is deleted, or was evicted).
/// kRuntime: containers and sandboxes, on request (the pod has ended).
enum class PodRemains { kKept, kRuntime, kContent };

struct ContainerRemoval {
  std::string id;
  /// The container's state is unknown: end it first, and keep it if that fails.
  bool stop_first = false;

  friend bool operator==(const ContainerRemoval&, const ContainerRemoval&) = default;
};

/// Removes the listed remains: logs of a container before the container, sandboxes after the containers, directories
/// last. Remains that are in use again stay, and those that cannot be removed are retried next time.
struct RemoveRemains {
  std::vector<ContainerRemoval> containers;
  std::vector<std::string> sandboxes;
  std::vector<std::string> directories;
};

}  // namespace spillway::agent
