// One node of this machine: its cgroup, the process runtime, the agent with its journal, and what wakes it.
#pragma once

#include "agent/agent.h"
#include "apps/node/node_server.h"
#include "apps/process/process.h"
#include "cli/flags/command_line.h"
#include "client/engine.h"
#include "host/cgroup/node_slice.h"
#include "host/devices/device_plugins.h"
#include "host/files/journal_file.h"
#include "host/files/manifest_files.h"
#include "host/kubelet_endpoint.h"
#include "host/process/process_runtime.h"
#include "host/reaction/memory_reaction.h"
#include "runtime/engine_driver.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apps {

struct NodePartOptions {
  cli::NodeArgs args;
  std::string name;
  std::string instance;   // of the cgroup tree; one per data or state directory
  std::string state_dir;  // of this node
  /// The authority of the client certificates that the node's HTTPS server believes. nullopt: there is no server (the
  /// API server is in this process, and reaches the node without one).
  std::optional<std::string> client_authority_pem;
  std::optional<std::uint16_t> port;  // of that server; 0: any free one; nullopt: the configuration's
  std::vector<std::string> ips;       // the node's addresses, at most two; empty: the machine's
  std::vector<std::string> hidden;    // files and directories that no pod sees, beside the state directory
};

class NodePart final : public Part, private agent::Host::Receiver, private host::DevicePlugins::Receiver {
 public:
  /// Makes the cgroup and starts the agent. Errors say what is missing: rights, a controller, a directory.
  static Result<std::unique_ptr<NodePart>> create(Process& process, NodePartOptions options,
                                                  std::unique_ptr<client::Transport> transport);
  ~NodePart() override;

  void stop(runtime::Loop::Task done) override;

  host::KubeletEndpoint& endpoint() { return *endpoint_; }

  const std::string& name() const { return name_; }

 private:
  NodePart(Process& process, std::string name, host::NodeSlice slice, std::unique_ptr<client::Transport> transport);

  Outcome start_agent(const NodePartOptions& options);
  host::KubeletEndpoint::Options endpoint_options(agent::MachineInfo machine);
  void stop_now(runtime::Loop::Task done);
  api::Json debug_state() const;
  std::optional<std::string> syncloop_problem() const;
  std::optional<std::string> plugin_problem() const;
  void on_host_event(agent::HostEvent event) override;
  void on_device_event(agent::DeviceEvent event) override;

  Process& process_;
  std::string name_;
  host::NodeSlice slice_;
  std::unique_ptr<client::Transport> transport_;
  std::unique_ptr<host::JournalFile> journal_;
  std::unique_ptr<host::ProcessRuntime> runtime_;
  std::unique_ptr<host::DevicePlugins> plugins_;  // null: plugins cannot register here
  std::unique_ptr<agent::Agent> agent_;
  std::unique_ptr<runtime::EngineDriver> driver_;
  std::unique_ptr<host::ManifestFiles> manifests_;  // null: there is no directory of them
  Instant last_step_{};                             // of the agent
  api::Json configuration_;
  std::unique_ptr<host::MemoryReaction> reaction_;
  std::unique_ptr<NodeServer> server_;
  std::unique_ptr<host::KubeletEndpoint> endpoint_;
};

}  // namespace spillway::apps
