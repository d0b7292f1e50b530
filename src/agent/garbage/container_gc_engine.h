// Keeps the remains of dead containers few: of each container of a pod the last one that ended, for
// `kubectl logs --previous`. Looks when a container starts again, and once a minute. Where a container runtime keeps
// them, the look of each minute is at what it lists: sandboxes that hold nothing and what is left of pods that are gone
// go too. What is to go is said in the log before.
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
  /// What of the pods may go now.
  using Scope = std::function<ContainerGcScope()>;

  ContainerGcEngine(AgentContext& context, Scope scope, ContainerGcPolicy policy = {})
      : context_(context), scope_(std::move(scope)), policy_(policy) {}

  void start(Now now);
  void on_started(const ContainerStarted& event, Now now);
  void on_exited(const ContainerExited& event);
  /// Containers that earlier processes of the node started.
  void on_found(const PodsFound& found, Now now);
  /// What the runtime has of pods, asked for by this.
  void on_listed(const RemainsListed& listed, Now now);
  /// The pod is gone, and its logs with it.
  void forget(const std::string& uid);

  /// For people and /debug/spillway: no contract.
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
