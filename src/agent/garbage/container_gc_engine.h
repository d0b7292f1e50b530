// Keeps the remains of dead containers few: of each container of a pod the last one that ended, for `kubectl logs
// --previous`. Runs when a container starts again, and once a minute. If a container runtime keeps the containers, the
// run of each minute uses its lists: empty sandboxes and the remains of pods that are gone are removed too. Each
// removal is logged before.
// Thread: loop. Bounds: one record per container that runs or is kept. Source: Kubernetes docs, "Garbage Collection";
// spec "Node agent", 18.
#pragma once

#include "agent/contract/context.h"
#include "agent/garbage/container_gc.h"
#include "api/json/json.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace spillway::agent {

class ContainerGcEngine {
 public:
  /// The parts of pods that may be removed now.
  using Scope = std::function<ContainerGcScope()>;

  ContainerGcEngine(AgentContext& context, Scope scope, ContainerGcPolicy policy = {})
      : context_(context), scope_(std::move(scope)), policy_(policy) {}

  void start(Now now);
  void on_started(const ContainerStarted& event, Now now);
  void on_exited(const ContainerExited& event);
  /// Containers that earlier processes of the node started.
  void on_found(const PodsFound& found, Now now);
  /// The runtime's list, requested by this engine.
  void on_listed(const RemainsListed& listed, Now now);
  /// The pod is gone, and its logs with it.
  void forget(const std::string& uid);

  /// State for people and /debug/spillway: no contract.
  api::Json state() const;

 private:
  struct Record {
    Instant created;
    RuntimeState state = RuntimeState::kRunning;
  };

  void collect(Now now);
  void arm(Now now);

  AgentContext& context_;
  Scope scope_;
  ContainerGcPolicy policy_;
  std::map<std::tuple<std::string, std::string, std::int32_t>, Record> records_;  // by uid, container, attempt
  std::uint64_t removed_ = 0;
};

}  // namespace spillway::agent
