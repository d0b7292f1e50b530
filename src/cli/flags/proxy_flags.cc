#include "api/text/ip_address.h"
#include "cli/flags/checks.h"
#include "cli/flags/commands.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace spillway::cli {
namespace {

constexpr const char* kOnlyNftables = "the rules are always nftables rules";
constexpr const char* kSysctlsStay = "connection tracking sysctls are not changed";
constexpr const char* kWithoutRate = "requests have no rate limit";
constexpr const char* kObjectsAreWatched = "objects are watched, never listed again at an interval";

/// Flags of kube-proxy 1.32 that are accepted, and reported as without effect.
constexpr StockFlag kStockProxyFlags[] = {
    {"--bind-address-hard-fail", "the process always exits if an address cannot be served"},
    {"--config-sync-period", kObjectsAreWatched},
    {"--conntrack-max-per-core", kSysctlsStay},
    {"--conntrack-min", kSysctlsStay},
    {"--conntrack-tcp-be-liberal", kSysctlsStay},
    {"--conntrack-tcp-timeout-close-wait", kSysctlsStay},
    {"--conntrack-tcp-timeout-established", kSysctlsStay},
    {"--conntrack-udp-timeout", kSysctlsStay},
    {"--conntrack-udp-timeout-stream", kSysctlsStay},
    {"--feature-gates", "there are no gates"},
    {"--iptables-localhost-nodeports", kOnlyNftables},
    {"--iptables-masquerade-bit", kOnlyNftables},
    {"--iptables-min-sync-period", kOnlyNftables},
    {"--iptables-sync-period", kOnlyNftables},
    {"--ipvs-exclude-cidrs", kOnlyNftables},
    {"--ipvs-min-sync-period", kOnlyNftables},
    {"--ipvs-scheduler", kOnlyNftables},
    {"--ipvs-strict-arp", kOnlyNftables},
    {"--ipvs-sync-period", kOnlyNftables},
    {"--ipvs-tcp-timeout", kOnlyNftables},
    {"--ipvs-tcpfin-timeout", kOnlyNftables},
    {"--ipvs-udp-timeout", kOnlyNftables},
    {"--kube-api-burst", kWithoutRate},
    {"--kube-api-content-type", "the encoding is negotiated with the server"},
    {"--kube-api-qps", kWithoutRate},
    {"--oom-score-adj", "the service manager sets it"},
    {"--profiling", "no profiles of the process are served"},
    {"--proxy-mode", kOnlyNftables},
    {"--proxy-port-range", "no port is opened for a Service"},
    {"--show-hidden-metrics-for-version", "no metric is hidden"}};

CLI::Validator range_or(const std::string& word) {
  return CLI::Validator(
      [word](const std::string& text) {
        if (api::parse_ip_range(text) || (!word.empty() && text == word)) return std::string();
        return "expected a range such as 10.0.0.0/8" + (word.empty() ? "" : ", or " + word) + ", got \"" + text + "\"";
      },
      word.empty() ? "CIDR" : "CIDR|" + word);
}

}  // namespace

void define_proxy(Commands& commands) {
  const auto proxy = std::make_shared<ProxyCommand>();
  CLI::App& app = commands.add("proxy", "Run the Service proxy of this node, in place of kube-proxy");
  add_api(app, proxy->api);
  begin_group(app, "Node");
  app.add_option("--hostname-override", proxy->hostname_override, "Name of this node; default: the host name")
      ->type_name("NAME");
  add_parsed(app, "--bind-address", proxy->bind_address, parse_address,
             "Address of this node; 0.0.0.0 or ::: those of its Node object", "ADDRESS", proxy->bind_address);
  app.add_flag("--cleanup", proxy->cleanup, "Remove all rules of this program from the machine, and exit");
  begin_group(app, "Traffic");
  app.add_option("--cluster-cidr", proxy->cluster_cidrs,
                 "Address ranges of pods, one per family, separated by a comma: traffic to Services from other "
                 "addresses is masqueraded")
      ->type_name("CIDR")
      ->delimiter(',')
      ->check(range_or(""));
  app.add_option("--detect-local-mode", proxy->detect_local_mode, "Method that recognizes traffic of local pods")
      ->check(one_of({"ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"}))
      ->capture_default_str();
  app.add_option("--pod-bridge-interface", proxy->pod_bridge_interface,
                 "With BridgeInterface: the bridge that pods are attached to")
      ->type_name("NAME");
  app.add_option("--pod-interface-name-prefix", proxy->pod_interface_name_prefix,
                 "With InterfaceNamePrefix: the prefix of pods' interface names")
      ->type_name("PREFIX");
  app.add_option("--nodeport-addresses", proxy->node_port_addresses,
                 "Address ranges of this machine that serve node ports, or primary: the node's own address")
      ->delimiter(',')
      ->check(range_or("primary"))
      ->default_str("primary");
  app.add_option("--service-cidr", proxy->service_cidrs,
                 "Address ranges of Services: traffic to unused addresses in them is dropped")
      ->delimiter(',')
      ->check(range_or(""));
  app.add_flag("--masquerade-all", proxy->masquerade_all, "Masquerade all traffic to addresses of Services");
  app.add_option("--masquerade-bit", proxy->masquerade_bit, "Bit of the packet mark that requests masquerading")
      ->check(between(0, 31))
      ->capture_default_str();
  begin_group(app, "Serving and timing");
  add_parsed(app, "--healthz-bind-address", proxy->healthz_bind_address, parse_pages_address,
             "Address that serves health checks; empty: none", "ADDRESS:PORT", proxy->healthz_bind_address);
  add_parsed(app, "--metrics-bind-address", proxy->metrics_bind_address, parse_pages_address,
             "Address that serves metrics; empty: none", "ADDRESS:PORT", proxy->metrics_bind_address);
  add_duration(app, "--sync-period", proxy->sync_period, "Longest back-off before failed rules are loaded again");
  add_duration(app, "--min-sync-period", proxy->min_sync_period, "Shortest interval between two changes of rules");
  add_without_effect(app, kStockProxyFlags, proxy->without_effect);
  commands.choose(app, proxy);
}

}  // namespace spillway::cli
