// Programs that are run inside containers of a container runtime for an answer: a code, the beginning of their output,
// a time-out. Thread: loop. Bounds: a deadline on every call, agent::kCommandOutputMax bytes of output. Source:
// agent/contract/command_ports.h; Kubernetes docs, "Container Runtime Interface (CRI)", ExecSync.
#pragma once

#include "agent/contract/ports.h"
#include "api/json/json.h"
#include "base/error.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pods.h"

#include <cstdint>

namespace spillway::host {

class CriCommands {
 public:
  /// Both outlive this object.
  CriCommands(const CriHost& host, CriPods& pods) : host_(host), pods_(pods) {}

  CriCommands(const CriCommands&) = delete;
  CriCommands& operator=(const CriCommands&) = delete;
  ~CriCommands() = default;

  void run(const agent::RunInContainer& command);

 private:
  void on_ran(std::uint64_t id, const Result<api::Json>& ran);

  const CriHost& host_;
  CriPods& pods_;
};

}  // namespace spillway::host
