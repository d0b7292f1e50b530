// `spillway agent --companion [--shadow]`.
#include "apps/commands/commands.h"
#include "apps/companion/companion_part.h"
#include "apps/node/node_config.h"
#include "apps/node/node_options.h"
#include "apps/process/host_name.h"
#include "apps/process/process.h"
#include "apps/server/data_dir.h"
#include "apps/view/remote.h"
#include "host/kernel/kernel_file.h"
#include "wire/client/kubeconfig.h"
#include "wire/transport/https_transport.h"

#include <utility>

namespace spillway::apps {

namespace {

/// Refuses flags for nodes: a companion registers none.
Outcome check_flags(const cli::AgentCommand& command) {
  const auto refuse = [](const char* flag) {
    return invalid(flag, "means nothing with --companion: the kubelet is the node, a companion evicts");
  };
  if (const auto named = named_kubeconfigs(command.api); !named) return named.error();
  if (command.print_config) return refuse("--print-config");
  if (!command.node_ips.empty()) return refuse("--node-ip");
  if (command.port) return refuse("--port");
  if (!command.node.labels.empty()) return refuse("--node-labels");
  if (command.node.pids_max) return refuse("--node-pids");
  if (command.companion.shadow && command.node.memory_watch.brake == eviction::Brake::kOn) {
    return invalid("--memory-brake", "slows pods down, which a shadow does not: leave one of the two out");
  }
  if (!command.companion.shadow && command.companion.shadow_window != cli::CompanionArgs{}.shadow_window) {
    return invalid("--shadow-window", "needs --shadow");
  }
  return {};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// The kubelet, with the credentials of the kubeconfig.
Result<std::unique_ptr<client::Transport>> connect_kubelet(runtime::Loop& loop, const cli::ClusterArgs& api,
                                                           const cli::CompanionArgs& args) {
  SPILLWAY_TRY(config, find_kubeconfig(api));
  config.server = args.kubelet;
  config.tls_server_name.clear();
  config.authority_pem.clear();
  config.verify = false;
  if (!args.kubelet_authority.empty()) {
    SPILLWAY_TRY(authority, read_file(args.kubelet_authority));
    config.authority_pem = std::move(authority);
    config.verify = true;
  }
  auto endpoint = wire::make_endpoint(config, "--kubelet", offered_protocols());
  if (!endpoint) return endpoint.error();
  if (!config.verify && !is_loopback(endpoint->host)) {
    return invalid("--kubelet",
                   "{} is not on this machine's loopback: credentials go to it only with "
                   "--kubelet-certificate-authority",
                   args.kubelet);
  }
  if (endpoint->tls == nullptr) endpoint->credentials = {};  // nothing secret in the clear
  wire::HttpsTransport::Options options;
  options.endpoint = *std::move(endpoint);
  return std::make_unique<wire::HttpsTransport>(loop, std::move(options));
}

}  // namespace

int run_companion(const cli::LogArgs& log, const cli::AgentCommand& command) {
  const auto refuse = [](const Error& error) {
    print_error(error);
    return cli::kExitUsage;
  };
  if (const Outcome flags = check_flags(command); !flags) return refuse(flags.error());
  const cli::NodeArgs& given = command.node;
  if (!check_node_config(given)) return cli::kExitUsage;
  auto config = read_node_config(given.config);
  if (!config) return refuse(config.error());
  if (const auto eviction = agent::companion_eviction(config->value, nullptr); !eviction) {
    return refuse(eviction.error());
  }
  Process process(log);
  if (const Outcome traced = process.trace(command.trace, "spillway-companion"); !traced) return refuse(traced.error());
  auto server = connect_remote(process.loop(), command.api);
  if (!server) return refuse(server.error());
  auto kubelet = connect_kubelet(process.loop(), command.api, command.companion);
  if (!kubelet) return refuse(kubelet.error());
  const std::string name = command.node_name.empty() ? host_name() : command.node_name;
  auto part = CompanionPart::create(process,
                                    {.args = command.companion,
                                     .name = name,
                                     .state_dir = node_state_dir(command.node.state_dir, resolve_data_dir({}), name),
                                     .memory = command.node.memory,
                                     .memory_watch = command.node.memory_watch,
                                     .recording_max = command.node.recording_max,
                                     .own_config = std::move(config->value)},
                                    std::move(server->transport), *std::move(kubelet));
  if (!part) {
    print_error(part.error());
    return cli::kExitFailure;
  }
  process.add(*std::move(part));
  return process.run();
}

}  // namespace spillway::apps
