// What a container runtime keeps of pods, running or not, so that somebody can decide what of it goes.
// A machine without images (MachineInfo::runs_images) is never asked. Thread: any (values). Bounds: as much as the
// runtime lists. Source: spec "Node agent", 18.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

enum class RuntimeState { kCreated, kRunning, kExited, kUnknown };

/// Asks what there is of this node's pods. Answered by RemainsListed, or not at all if the runtime does not answer.
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

/// In the runtime's order. `directories`: <namespace>_<pod>_<uid>, those that hold logs and volumes of pods.
struct RemainsListed {
  std::vector<RemainingContainer> containers;
  std::vector<RemainingSandbox> sandboxes;
  std::vector<std::string> directories;
};

/// What of a pod may go. kContent: everything, its logs too (it is gone, or was evicted). kRuntime: containers and
/// sandboxes, where asked for (it has ended).
enum class PodRemains { kKept, kRuntime, kContent };

struct ContainerRemoval {
  std::string id;
  /// Nobody knows whether it runs: end it first, and leave it if that fails.
  bool stop_first = false;

  friend bool operator==(const ContainerRemoval&, const ContainerRemoval&) = default;
};

/// Removes what was listed: logs of a container before the container, sandboxes after the containers, directories last.
/// What is in use again by then stays, and what cannot be removed is left for the next time.
struct RemoveRemains {
  std::vector<ContainerRemoval> containers;
  std::vector<std::string> sandboxes;
  std::vector<std::string> directories;
};

}  // namespace spillway::agent
