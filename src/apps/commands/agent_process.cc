// `spillway agent`: runs one node, after it has registered.
#include "agent/config/kubelet_config.h"
#include "apps/commands/commands.h"
#include "apps/node/client_identity.h"
#include "apps/node/node_config.h"
#include "apps/node/node_options.h"
#include "apps/node/node_part.h"
#include "apps/node/runtime_facts.h"
#include "apps/process/host_name.h"
#include "apps/process/process.h"
#include "apps/proxy/pages_server.h"
#include "apps/server/data_dir.h"
#include "apps/view/remote.h"
#include "runtime/loop_thread.h"

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

class AgentProcess {
 public:
  AgentProcess(const cli::LogArgs& log, const cli::AgentCommand& command, std::vector<std::string> hidden)
      : command_(command),
        hidden_(std::move(hidden)),
        name_(command.node_name.empty() ? host_name() : command.node_name),
        process_(log) {}

  int run() {
    if (const Outcome traced = process_.trace(command_.trace, "spillway-agent"); !traced) {
      return refuse(traced.error(), cli::kExitUsage);
    }
    report_unused_runtime();
    if (needs_bootstrap()) {
      if (const Outcome begun = bootstrap(); !begun) return refuse(begun.error(), cli::kExitUsage);
      return process_.run();
    }
    Result<Remote> server = connect_remote(process_.loop(), command_.api);
    if (!server) return refuse(server.error(), cli::kExitUsage);
    if (const Outcome started = start_node(*std::move(server)); !started) {
      return refuse(started.error(), cli::kExitFailure);
    }
    return process_.run();
  }

 private:
  static int refuse(const Error& error, int exit_code) {
    print_error(error);
    return exit_code;
  }

  /// A runtime that runs on this machine and that the configuration does not name is not used.
  void report_unused_runtime() {
    const auto config = read_node_config(command_.node.config);
    if (!config || !config->value.string_at({"containerRuntimeEndpoint"}).empty()) return;
    const std::string socket = read_runtime_facts({}, {}).running_socket;
    if (socket.empty()) return;
    process_.log().info("a container runtime runs on this machine and is not used: pods are processes",
                        {{"socket", socket}, {"flag", "--container-runtime-endpoint=unix://" + socket}});
  }

  bool needs_bootstrap() {
    return !command_.bootstrap_kubeconfig.empty() && !identity_end(command_.api.kubeconfig, process_.loop().now().wall);
  }

  Outcome bootstrap() {
    SPILLWAY_TRY(part, BootstrapPart::create(process_,
                                             {.node_name = name_,
                                              .bootstrap_kubeconfig = command_.bootstrap_kubeconfig,
                                              .kubeconfig = command_.api.kubeconfig},
                                             [this] { on_bootstrapped(); }));
    bootstrap_ = &process_.add(std::move(part));
    return {};
  }

  void on_bootstrapped() {
    process_.end(*bootstrap_);
    Result<Remote> server = connect_remote(process_.loop(), command_.api);
    const Outcome started = server ? start_node(*std::move(server)) : Outcome(server.error());
    if (!started) process_.fail(started.error());
  }

  Outcome start_node(Remote server) {
    wire::HttpsTransport& transport = *server.transport;
    std::optional<agent::ApiServerAddress> direct;
    if (command_.kubernetes_service == "api-server") {
      if (!server.speaks_tls) return invalid("--kubernetes-service", "api-server: {} speaks plain HTTP", server.host);
      direct = {.host = server.host_name, .port = server.port};
    }
    const std::string state = node_state_dir(command_.node.state_dir, resolve_data_dir({}), name_);
    auto lease_thread = std::make_unique<runtime::LoopThread>("spillway-lease");
    runtime::Loop& lease_loop = lease_thread->loop();
    SPILLWAY_TRY(lease_server, connect_remote(lease_loop, command_.api));
    wire::HttpsTransport& lease_transport = *lease_server.transport;
    SPILLWAY_TRY(node, NodePart::create({process_, process_.loop()},
                                        {.args = command_.node,
                                         .name = name_,
                                         .instance = instance_of(state),
                                         .state_dir = state,
                                         .client_authority_pem = server.authority_pem,
                                         .port = command_.port,
                                         .ips = command_.node_ips,
                                         .hidden = hidden_,
                                         .api_server = std::move(direct),
                                         .keeps_pods = command_.pods_at_stop == "leave",
                                         .cni_configuration = command_.cni_conf_dir},
                                        std::move(server.transport),
                                        {std::move(lease_thread), lease_loop, std::move(lease_server.transport)}));
    process_.add(std::move(node));
    SPILLWAY_TRY_VOID(serve_health());
    set_oom_score();
    if (command_.bootstrap_kubeconfig.empty()) return {};
    SPILLWAY_TRY(rotation,
                 RotationPart::create(process_, name_, command_.api.kubeconfig, {&transport, &lease_transport}));
    process_.add(std::move(rotation));
    return {};
  }

  /// Without oomScoreAdj the score of the agent's unit is kept. Without the right to lower it, it is kept too.
  void set_oom_score() {
    const auto config = read_node_config(command_.node.config);
    const api::Json* score = config ? config->value.find("oomScoreAdj") : nullptr;
    if (score == nullptr) return;
    const std::int64_t wanted = score->if_int64().value_or(0);
    std::ofstream file("/proc/self/oom_score_adj");
    if (!(file << wanted << std::flush)) process_.log().warning("oomScoreAdj not set", {{"wanted", wanted}});
  }

  /// A page without TLS that answers "ok", for which kubeadm waits, if the configuration names its port. A port that
  /// another process has is logged, and the node runs without the page.
  Outcome serve_health() {
    SPILLWAY_TRY(config, read_node_config(command_.node.config));
    const api::Json effective = agent::effective_config(config.value, std::nullopt);
    const api::Json* port = effective.find("healthzPort");
    const std::int64_t wanted = port == nullptr ? 0 : port->if_int64().value_or(0);
    if (wanted <= 0) return {};
    auto server = PagesServer::create(process_, std::string(effective.string_at({"healthzBindAddress"})),
                                      static_cast<std::uint16_t>(wanted), [](std::string_view path) {
                                        const bool known = path == "/healthz" || path == "/healthz/ping";
                                        return known ? page_of(200, "ok") : page_of(404, "404 page not found\n");
                                      });
    if (server) {
      process_.add(*std::move(server));
    } else {
      process_.log().warning("no page for health checks", {{"error", server.error().text()}});
    }
    return {};
  }

  const cli::AgentCommand& command_;
  std::vector<std::string> hidden_;  // from pods
  std::string name_;
  Process process_;
  const Part* bootstrap_ = nullptr;  // requests the first certificate; null when it has stopped
};

}  // namespace

int run_agent(const cli::LogArgs& log, const cli::AgentCommand& command) {
  if (command.companion.enabled && command.pods_at_stop != "leave") {
    print_error(invalid("--pods-at-stop", "the pods beside --companion are the kubelet's"));
    return cli::kExitUsage;
  }
  warn_of_flags_without_effect(command.without_effect);
  if (command.companion.enabled) return run_companion(log, command);
  if (command.companion != cli::CompanionArgs{}) {
    print_error(invalid("agent",
                        "--shadow, --kubelet, --kubelet-certificate-authority, --pods-from, --shadow-window, "
                        "--pages-address and --root-dir need --companion"));
    return cli::kExitUsage;
  }
  if (command.print_config) return print_node_config(command.node);
  auto hidden = named_kubeconfigs(command.api);
  if (!hidden) {
    print_error(hidden.error());
    return cli::kExitUsage;
  }
  if (!command.bootstrap_kubeconfig.empty()) {
    if (command.api.kubeconfig.empty()) {
      print_error(invalid("--bootstrap-kubeconfig", "needs --kubeconfig FILE, where the certificate is to be kept"));
      return cli::kExitUsage;
    }
    hidden->push_back(command.bootstrap_kubeconfig);
  }
  hidden->push_back(resolve_data_dir({}));
  const std::string name = command.node_name.empty() ? host_name() : command.node_name;
  if (!check_nodes(command.node, {name}, command.node_ips)) return cli::kExitUsage;
  return AgentProcess(log, command, *std::move(hidden)).run();
}

}  // namespace spillway::apps
