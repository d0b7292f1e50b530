// Keeps the remains of dead containers few: of each container of a pod the last one that ended, for
// `kubectl logs --previous`. Looks when a container starts again, and once a minute.
// Thread: loop. Bounds: one record per container that runs or is kept. Source: Kubernetes docs, "Garbage Collection";
// spec "Node agent", 18.
#pragma once

#include "agent/contract/context.h"
#include "agent/pods/container_gc.h"
#include "api/json/json.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace spillway::agent {

class ContainerGcEngine {
 public:
  explicit ContainerGcEngine(AgentContext& context, ContainerGcPolicy policy = {})
      : context_(context), policy_(policy) {}

  void start(Now now);
  void on_started(const ContainerStarted& event, Now now);
  void on_exited(const ContainerExited& event);
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
  ContainerGcPolicy policy_;
  std::map<std::tuple<std::string, std::string, std::int32_t>, Record> records_;  // by uid, container, attempt
  std::uint64_t removed_ = 0;
};

}  // namespace spillway::agent
