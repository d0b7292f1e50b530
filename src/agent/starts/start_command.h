// The command that starts a container: everything that follows from its pod's definition, the node and the objects that
// its variables refer to. make() runs its steps in order; the first one that fails is the reason why the container
// waits.
// Thread: loop (plain values). Bounds: kPodBytesMax bytes of arguments and environments in one pod. Source: Kubernetes
// docs, "Pods", containers, volumes, security context; spec "Pod lifecycle", 6.
#pragma once

#include "agent/containers/container_env.h"
#include "agent/containers/container_mounts.h"
#include "agent/containers/container_security.h"
#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "agent/pod_state/pod_worker.h"
#include "agent/starts/env_reader.h"
#include "base/error.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// A container that was not started. `retry`: it may succeed later, since it depends on more than the pod.
struct RefusedStart {
  enum class Retry { kNo, kYes };

  StartRefusal why;
  Retry retry = Retry::kNo;
  bool too_large = false;  // arguments or environment exceed the kernel's bounds
};

class StartCommand {
 public:
  /// The node, as containers depend on it.
  struct Node {
    const AgentOptions& options;
    const MachineInfo& machine;
    const api::ResourceList& allocatable;
    const std::vector<RuntimeHandler>& handlers;     // features of the container runtime
    const std::function<KnownServices()>& services;  // empty: no variables of Services
  };

  /// All arguments must outlive it. `read`: what the variables refer to.
  StartCommand(const Node& node, const PodWorker& worker, const ContainerRun& run, const EnvReader::Read& read)
      : node_(node), worker_(worker), run_(run), pod_(*worker.pod), container_(*run.spec), read_(read) {}

  /// nullopt: the command is complete but for its attempt and its devices.
  std::optional<RefusedStart> make();

  /// Bytes of arguments and environment.
  std::size_t exec_bytes() const { return exec_bytes_; }

  StartContainer take() { return std::move(start_); }

 private:
  using Refused = std::optional<RefusedStart>;

  Refused check_room();
  Refused set_environment();
  Refused check_app_armor();
  Refused set_command();
  Refused set_working_dir();
  Refused set_security();
  Refused set_mounts();
  Refused set_rest();

  Outcome add_mounts();
  Outcome add_resolver();
  RecursiveReadOnly recursion() const;

  Node node_;
  const PodWorker& worker_;
  const ContainerRun& run_;
  const api::Pod& pod_;
  const api::Container& container_;
  const EnvReader::Read& read_;
  Environment environment_;
  StartContainer start_;
  std::size_t exec_bytes_ = 0;
};

}  // namespace spillway::agent
