// Ways into the containers of the process runtime: programs that are run in them, attached clients, forwarded ports.
// Thread: loop. Never waits. Source: spec "Pod lifecycle", 11.
#pragma once

#include "agent/contract/ports.h"
#include "api/object/meta.h"
#include "base/alive.h"
#include "base/error.h"
#include "host/process/container_commands.h"
#include "host/process/process_options.h"
#include "host/process/process_pods.h"
#include "host/streams/port_connector.h"
#include "host/streams/stream_sessions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spillway::host {

class ProcessStreams {
 public:
  /// Both outlive this object.
  ProcessStreams(const ProcessHost& host, ProcessPods& pods);

  ProcessStreams(const ProcessStreams&) = delete;
  ProcessStreams& operator=(const ProcessStreams&) = delete;
  ~ProcessStreams() = default;

  // See StreamedContainers.
  Result<ContainerAccess> enter(const api::PodKey& key, const std::string& uid, const std::string& container,
                                std::vector<std::string> argv) const;
  Result<std::shared_ptr<ContainerConsole>> console(const api::PodKey& key, const std::string& uid,
                                                    const std::string& container) const;
  Result<PortSession::Dial> dial(const api::PodKey& key, const std::string& uid);

  void run(const agent::RunInContainer& command);

 private:
  /// Null: no pod of that name, or it has another uid.
  const ProcessPod* find(const api::PodKey& key, const std::string& uid) const;
  void connect(const std::string& uid, std::uint16_t port, PortSession::Answer answer);

  ProcessPods& pods_;
  ContainerCommands commands_;
  PortConnector ports_;
  Alive alive_;
};

}  // namespace spillway::host
