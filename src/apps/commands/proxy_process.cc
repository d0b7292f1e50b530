// `spillway proxy`: carries Services of a cluster to their endpoints, in place of kube-proxy.
#include "apps/commands/commands.h"
#include "apps/node/node_options.h"
#include "apps/process/engine_metrics.h"
#include "apps/process/host_name.h"
#include "apps/process/process.h"
#include "apps/proxy/pages_server.h"
#include "apps/proxy/proxy_part.h"
#include "apps/view/remote.h"
#include "runtime/entropy.h"

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apps {

namespace {

proxy::DetectLocalMode mode_of(std::string_view text) {
  using Mode = proxy::DetectLocalMode;
  if (text == "NodeCIDR") return Mode::kNodeCidr;
  if (text == "BridgeInterface") return Mode::kBridgeInterface;
  if (text == "InterfaceNamePrefix") return Mode::kInterfaceNamePrefix;
  return Mode::kClusterCidr;
}

proxy::ServiceProxy::Options options_of(const cli::ProxyCommand& command) {
  proxy::Settings settings{
      .node_name = command.hostname_override.empty() ? host_name() : command.hostname_override,
      .bind_addresses = {command.bind_address},
      .detect_local_mode = mode_of(command.detect_local_mode),
      .cluster_cidrs = command.cluster_cidrs,
      .bridge_interface = command.pod_bridge_interface,
      .interface_name_prefix = command.pod_interface_name_prefix,
      .node_port_addresses = command.node_port_addresses,
      .service_cidrs = command.service_cidrs,
      .masquerade_all = command.masquerade_all,
      .masquerade_mark = std::uint32_t{1} << static_cast<unsigned>(command.masquerade_bit),
  };
  return {
      .settings = std::move(settings), .sync_period = command.sync_period, .min_sync_period = command.min_sync_period};
}

class ProxyProcess {
 public:
  ProxyProcess(const cli::LogArgs& log, const cli::ProxyCommand& command)
      : process_(log), command_(command), rng_(runtime::entropy()) {}

  int run() {
    auto server = connect_remote(process_.loop(), command_.api);
    if (!server) return end(server.error(), cli::kExitUsage);
    auto place = ProxyPlace::take();
    if (!place) return end(place.error(), cli::kExitFailure);
    if (const Outcome able = host::check_netfilter(); !able) return end(able.error(), cli::kExitFailure);
    part_ = &process_.add(std::make_unique<ProxyPart>(
        process_, *std::move(place),
        std::make_unique<proxy::ServiceProxy>(options_of(command_), rng_.fork("proxy"), process_.log(),
                                              process_.metrics()),
        std::make_unique<CountedTransport>(std::move(server->transport), process_.metrics(), server->host),
        RulesAtStop::kStay));
    if (!serve(command_.healthz_bind_address, [this](std::string_view path) { return part_->health_page(path); }) ||
        !serve(command_.metrics_bind_address, [this](std::string_view path) { return metrics_page(path); })) {
      return cli::kExitFailure;
    }
    return process_.run();
  }

 private:
  static int end(const Error& error, int code) {
    print_error(error);
    return code;
  }

  /// `address`: "ADDRESS:PORT", as the command line checked it; empty: nothing is served.
  bool serve(const std::string& address, PagesServer::Answer answer) {
    if (address.empty()) return true;
    const std::size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    std::uint16_t port = 0;
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    auto server = PagesServer::create(process_, host, port, std::move(answer));
    if (!server) {
      print_error(server.error());
      return false;
    }
    process_.log().info("serving", {{"address", host}, {"port", std::uint64_t{(*server)->port()}}});
    process_.add(*std::move(server));
    return true;
  }

  api::Response metrics_page(std::string_view path) {
    if (path == "/metrics") return page_of(200, process_.metrics().text(), "text/plain; version=0.0.4; charset=utf-8");
    if (path == "/proxyMode") return page_of(200, "nftables");
    if (path == "/healthz") return page_of(200, "ok");
    return page_of(404, "404 page not found\n");
  }

  Process process_;
  const cli::ProxyCommand& command_;
  Rng rng_;
  const ProxyPart* part_ = nullptr;
};

}  // namespace

int run_proxy(const cli::LogArgs& log, const cli::ProxyCommand& command) {
  warn_of_flags_without_effect(command.without_effect);
  if (command.cleanup) {
    const Outcome removed = host::remove_rules();
    if (!removed) print_error(removed.error());
    return removed ? cli::kExitOk : cli::kExitFailure;
  }
  if (const auto named = named_kubeconfigs(command.api); !named) {
    print_error(named.error());
    return cli::kExitUsage;
  }
  return ProxyProcess(log, command).run();
}

}  // namespace spillway::apps
