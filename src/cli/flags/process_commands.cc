#include "cli/flags/checks.h"
#include "cli/flags/commands.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace spillway::cli {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

Result<std::string> parse_collector(const std::string& text) {
  const std::size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
  if (scheme != 0 && text.size() > scheme && text[scheme] != '/') return text;
  return invalid({}, "expected http://HOST:PORT or https://HOST:PORT, got \"{}\"", text);
}

enum class Traced { kEvictions, kRequests, kBoth };

void add_trace(CLI::App& app, TraceArgs& args, Traced traced) {
  begin_group(app, "Traces");
  add_parsed(app, "--otlp-endpoint", args.collector, parse_collector,
             traced == Traced::kEvictions
                 ? "Send a trace of every eviction to this OpenTelemetry collector (OTLP over HTTP)"
             : traced == Traced::kRequests
                 ? "Send traces of requests to this OpenTelemetry collector (OTLP over HTTP)"
                 : "Send traces of every eviction and of requests to this OpenTelemetry collector (OTLP over HTTP)",
             "URL", "none");
  if (traced == Traced::kEvictions) return;
  app.add_option("--trace-requests-per-million", args.requests_ppm,
                 "Trace this many requests in a million, and all that take half a second or more")
      ->check(between(0, kMillion))
      ->capture_default_str();
}

void add_pods_at_stop(CLI::App& app, std::string& into) {
  app.add_option(
         "--pods-at-stop", into,
         "Treatment of pods when this process stops: leave (they run on, and the next start takes them over) or end")
      ->check(one_of({"leave", "end"}))
      // a unit file sets the flag, and its owner may set it again behind that
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->capture_default_str();
}

void add_kubernetes_service(CLI::App& app, std::string& into) {
  app.add_option(
         "--kubernetes-service", into,
         "Address in KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of containers. cluster-ip: the Service "
         "kubernetes, which needs a service proxy on the node. api-server: the server that the agent uses")
      ->check(one_of({"cluster-ip", "api-server"}))
      ->capture_default_str();
}

/// "auto", "containerd", "process", or the path of a socket, with or without unix://.
Result<std::string> parse_runtime(const std::string& text) {
  if (text == "auto" || text == "containerd" || text == "process") return text;
  const std::string path = text.starts_with("unix://") ? text.substr(7) : text;
  if (path.starts_with('/')) return path;
  return invalid({}, "expected auto, containerd, process or the path of a socket, got \"{}\"", text);
}

void add_runtime(CLI::App& app, RuntimeArgs& args) {
  add_parsed(app, "--runtime", args.wanted, parse_runtime,
             "Runtime of pods: a private containerd, processes of this machine, or the runtime at SOCKET. auto: "
             "containerd where it is installed, else processes",
             "auto|containerd|process|SOCKET", "auto");
  app.add_option("--containerd", args.containerd, "Path of the program containerd, if it is not on PATH")
      ->check(CLI::ExistingFile);
  app.add_option("--runc", args.runc, "Path of containerd's low-level runtime (runc), if it is not on PATH")
      ->check(CLI::ExistingFile);
}

void define_up(Commands& commands) {
  const auto up = std::make_shared<UpCommand>();
  CLI::App& app = commands.add("up", "Run API server, controllers, scheduler and nodes in one process");
  add_serving(app, up->serving);
  add_node(app, up->node);
  up->controller.allocate_node_cidrs = true;
  up->controller.node_ranges.cluster_cidr = "10.244.0.0/16";             // as kubeadm's examples and most CNI plug-ins
  up->controller.node_ranges.service_cluster_ip_range = "10.96.0.0/16";  // the API server's
  add_controller(app, up->controller);
  begin_group(app, "Nodes of this machine");
  app.add_option("--nodes", up->nodes, "Number of nodes to run on this machine")
      ->check(between(0, 64))
      ->capture_default_str();
  app.add_option(
         "--process-nodes", up->process_nodes,
         "Number of further nodes, whose pods are processes, beside nodes with a container runtime. They have the "
         "taint spillway.io/runtime=process:NoSchedule; pods with runtimeClassName process are placed there")
      ->check(between(0, 64))
      ->capture_default_str();
  app.add_option("--node-name", up->node_name, "Name of the node; with several nodes the prefix of -1, -2, ...")
      ->type_name("NAME");
  app.add_flag("--remove-missing-nodes", up->remove_missing_nodes,
               "Delete Nodes, and their pods, that ran with this data directory before and no longer do");
  app.add_option("--scheduler-config", up->scheduler_config,
                 "KubeSchedulerConfiguration (YAML): profiles, back-offs and extenders of the scheduler")
      ->check(CLI::ExistingFile);
  add_runtime(app, up->runtime);
  app.add_flag("--print-config", up->print_config, "Print the configuration in effect and exit");
  add_pods_at_stop(app, up->pods_at_stop);
  add_kubernetes_service(app, up->kubernetes_service);
  app.add_option("--proxy", up->proxy,
                 "Run the Service proxy of this machine (nftables): on, off, or auto (if this process has the rights)")
      ->check(one_of({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--load-balancer", up->load_balancer,
                 "Give Services of type LoadBalancer the address of this machine, if their ports are free on it: auto, "
                 "off. auto: where the Service proxy runs")
      ->check(one_of({"auto", "off"}))
      ->capture_default_str();
  app.add_option("--pod-network", up->pod_network,
                 "on: pods have addresses of their own, by CNI plug-ins and a bridge per node. off: pods use the "
                 "machine's network. auto: on where root, plug-ins, iptables and a service proxy (--proxy) are at hand")
      ->check(one_of({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--storage", up->storage,
                 "Make volumes for claims by the default StorageClass local-path: auto (if this process is root), on, "
                 "off. They are directories below the state directory of the pod's node")
      ->check(one_of({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--manifests", up->manifests,
                 "Apply the objects of this folder's .yaml, .yml and .json files, and keep them applied: when a file "
                 "changes, and again every 30 s. Objects that are taken out of a file stay in the cluster")
      ->type_name("DIR");
  begin_group(app, "DNS of the cluster");
  app.add_option("--dns", up->dns_mode,
                 "Run the DNS server and its Service kube-dns: auto (where pods can reach ClusterIPs), on or off")
      ->check(one_of({"auto", "on", "off"}))
      ->capture_default_str();
  add_dns(app, up->dns, "dns-", "a free port of the machine's address");
  add_trace(app, up->trace, Traced::kBoth);
  commands.choose(app, up);
}

void define_apiserver(Commands& commands) {
  const auto apiserver = std::make_shared<ApiserverCommand>();
  CLI::App& app = commands.add("apiserver", "Run the API server alone");
  add_serving(app, apiserver->serving);
  add_trace(app, apiserver->trace, Traced::kRequests);
  commands.choose(app, apiserver);
}

Result<bool> parse_pod_source(const std::string& text) {
  if (text == "kubelet") return true;
  if (text == "api") return false;
  return invalid({}, "expected api or kubelet, got \"{}\"", text);
}

void add_companion(CLI::App& app, CompanionArgs& args) {
  begin_group(app, "Beside a kubelet");
  app.add_flag("--companion", args.enabled,
               "Run beside the kubelet of this machine: register no node, evict earlier by the kubelet's rules");
  app.add_flag(
      "--shadow", args.shadow,
      "With --companion: evict nothing; report the evictions that it would make, and whether the kubelet agrees");
  app.add_option("--kubelet", args.kubelet, "With --companion: address at which the kubelet serves /configz and /pods")
      ->type_name("URL")
      ->capture_default_str();
  app.add_option("--kubelet-certificate-authority", args.kubelet_authority,
                 "With --companion, PEM file: accept the kubelet's certificate only if this authority signed it")
      ->check(CLI::ExistingFile);
  add_parsed(app, "--pods-from", args.pods_from_kubelet, parse_pod_source,
             "With --companion: source of the pods: the API server, or the kubelet's /pods", "api|kubelet", "api");
  add_duration(app, "--shadow-window", args.shadow_window,
               "With --shadow: time in which the kubelet has to make the same eviction");
  add_parsed(app, "--pages-address", args.pages_address, parse_pages_address,
             "With --companion: address that serves /metrics, /healthz and /debug/spillway; 0: none", "ADDRESS:PORT",
             "127.0.0.1:10270");
  app.add_option("--root-dir", args.root_dir,
                 "With --companion: the kubelet's directory, which is on the file system nodefs")
      ->type_name("DIR")
      ->capture_default_str();
}

/// One address, or one of each family.
Result<std::vector<std::string>> parse_node_ips(const std::string& text) {
  std::vector<std::string> ips;
  for (const std::string& each : CLI::detail::split(text, ',')) {
    SPILLWAY_TRY(ip, parse_address(each));
    ips.push_back(std::move(ip));
  }
  const bool one_family = ips.size() == 2 && ips[0].contains(':') == ips[1].contains(':');
  if (ips.size() <= 2 && !one_family) return ips;
  return invalid({}, "expected one address, or one of IPv4 and one of IPv6, got \"{}\"", text);
}

void define_agent(Commands& commands) {
  const auto agent = std::make_shared<AgentCommand>();
  CLI::App& app = commands.add("agent", "Run one node");
  app.add_flag("--print-config", agent->print_config, "Print the configuration in effect as YAML and exit");
  add_api(app, agent->api);
  app.get_option("--kubeconfig")
      ->type_name("FILE")
      ->get_validator()
      ->active(false);  // the parser may write it before it is read
  app.add_option("--bootstrap-kubeconfig", agent->bootstrap_kubeconfig,
                 "Kubeconfig with a bootstrap token. If --kubeconfig has no valid certificate, the agent requests one "
                 "with it and writes it there. Later it renews that certificate")
      ->check(CLI::ExistingFile);
  app.add_option("--node-name", agent->node_name, "Name of the node")->type_name("NAME")->default_str("the host name");
  add_parsed(app, "--node-ip", agent->node_ips, parse_node_ips,
             "Address that the node reports, and serves logs and metrics on; a second one, after a comma, is of the "
             "other family",
             "ADDRESS[,ADDRESS]", "the machine's");
  app.add_option("--port", agent->port, "Port to listen on; 0: any free one")->default_str("10250");
  add_pods_at_stop(app, agent->pods_at_stop);
  add_kubernetes_service(app, agent->kubernetes_service);
  app.add_option("--cni-conf-dir", agent->cni_conf_dir,
                 "Directory of the CNI configuration for the pod network (only for pods that are processes); empty: "
                 "pods use the machine's network")
      ->type_name("DIR");
  add_node(app, agent->node);
  add_kubelet_flags(app, *agent);
  add_companion(app, agent->companion);
  add_trace(app, agent->trace, Traced::kEvictions);
  commands.choose(app, agent);
}

void define_controller(Commands& commands) {
  const auto controller = std::make_shared<ControllerCommand>();
  CLI::App& app = commands.add("controller", "Run the controllers");
  app.option_defaults()->take_last();  // the flags of a file precede the others
  app.add_option("--config", controller->config, "KubeControllerManagerConfiguration (YAML); flags win over it")
      ->check(CLI::ExistingFile);
  app.add_option("--config-dir", controller->config_directory,
                 "Directory of *.conf files merged over it, in the order of their names")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--print-config", controller->print_config, "Print the configuration in effect as YAML and exit");
  add_api(app, controller->api);
  add_controller(app, controller->controller);
  add_process_serving(app, controller->serving);
  add_parsed(app, "--advertise-address", controller->serving.advertise_address, parse_address,
             "Address for `spillway zones`, published on the lease", "ADDRESS", "the bind address");
  add_leader_election(app, controller->leader_election);
  add_manager_flags(app, *controller);
  begin_group(app, "Controllers");
  app.add_option("--controllers", controller->controllers,
                 "Controllers to run: names, -name to leave one out, * for all")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_flag("--shadow", controller->shadow,
               "Write nothing; report each difference between the cluster and this process's decisions");
  app.add_option("--recording-dir", controller->recording_dir,
                 "Record inputs and decisions of the node lifecycle controllers below this directory; empty: none")
      ->type_name("DIR");
  add_recording_size(app, controller->recording_max, "the node lifecycle controllers");
  app.add_flag(
      "--beside-stock-controllers", controller->beside_stock,
      "Run although kube-controller-manager holds its lease; its controllers of the same names have to be off");
  commands.choose(app, controller);
}

void define_scheduler(Commands& commands) {
  const auto scheduler = std::make_shared<SchedulerCommand>();
  CLI::App& app = commands.add("scheduler", "Run the scheduler");
  CLI::Option* const file =
      app.add_option("--config", scheduler->config,
                     "KubeSchedulerConfiguration (YAML): profiles, back-offs, extenders, election")
          ->check(CLI::ExistingFile);
  app.add_option("--write-config-to", scheduler->write_config_to,
                 "Write the configuration in effect to this file, as YAML with all defaults, and exit")
      ->check(file_name());
  add_api(app, scheduler->api);
  add_process_serving(app, scheduler->serving);
  add_leader_election(app, scheduler->leader_election);
  for (CLI::Option* option : app.get_options()) {
    if (option->get_name().starts_with("--leader-elect")) option->excludes(file);
  }
  begin_group(app, "Placement");
  app.add_flag("--node-conditions-literally", scheduler->conditions_literally,
               "Filter nodes by their conditions as well, as Kubernetes up to 1.17, and not only by taints");
  add_duration(app, "--pod-max-in-unschedulable-pods-duration", scheduler->unschedulable_max,
               "Retry an unschedulable pod after this time, even without a change in the cluster");
  begin_group(app, "Preemption");
  app.add_flag("--respect-disruption-budgets", scheduler->preemption.respect_budgets,
               "Brake: no preemption that would violate a PodDisruptionBudget");
  app.add_option("--limit-deletions", scheduler->preemption.limit_deletions,
                 "Brake: limit the number of pods deleted by preemption within a window")
      ->type_name("ACTS/DURATION[,owner=ACTS/DURATION]")
      ->check([](const std::string& text) {
        return text.find("zone=") == std::string::npos ? std::string()
                                                       : "zone= is a limit of the controllers, not of preemptions";
      });
  add_stock_scheduler_flags(app, *scheduler);
  commands.choose(app, scheduler);
}

void define_dns(Commands& commands) {
  const auto dns = std::make_shared<DnsCommand>();
  CLI::App& app = commands.add("dns", "Run the DNS server of a cluster");
  add_api(app, dns->api);
  begin_group(app, "DNS");
  add_dns(app, dns->dns, "", "0.0.0.0:53");
  add_process_serving(app, dns->serving);
  commands.choose(app, dns);
}

/// A name that a Node may begin with: lower-case letters, digits and hyphens, not at its ends.
Result<std::string> parse_name_prefix(const std::string& text) {
  constexpr std::size_t kPrefixMax = 50;  // the number follows
  const auto is_plain = [](char each) { return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9'); };
  const bool fits = !text.empty() && text.size() <= kPrefixMax && is_plain(text.front()) && is_plain(text.back());
  if (fits && std::ranges::all_of(text, [&](char each) { return is_plain(each) || each == '-'; })) return text;
  return invalid({}, "expected at most {} lower-case letters, digits and hyphens, got \"{}\"", kPrefixMax, text);
}

void define_hollow(Commands& commands) {
  const auto hollow = std::make_shared<HollowCommand>();
  CLI::App& app = commands.add("hollow", "Run nodes without machines: this program's agents over simulated hosts");
  app.add_option(
         "SCENARIO", hollow->scenario,
         "Scenario file (docs/simulate.md) or a built-in scenario: its nodes, and the events that happen to them")
      ->type_name("FILE");
  add_api(app, hollow->api);
  begin_group(app, "Nodes");
  app.add_option("--nodes", hollow->nodes, "Number of nodes")
      ->check(between(1, 16384))
      ->default_str("the scenario's, else 10");
  app.add_option("--zones", hollow->zones, "Number of zones that the nodes are in, in turn")
      ->check(between(1, 1000))
      ->default_str("the scenario's, else 1");
  add_parsed(app, "--name-prefix", hollow->name_prefix, parse_name_prefix,
             "Beginning of the nodes' names, before -00000, -00001, ...", "NAME", "hollow");
  app.add_option("--first-number", hollow->first_number,
                 "Number of the first node: several processes share a cluster with numbers of their own")
      ->check(between(0, 16383))
      ->capture_default_str();
  app.add_option("--cpus", hollow->cpus, "Processors of each node")
      ->check(between(1, 1024))
      ->default_str("the scenario's, else 4");
  add_parsed(app, "--memory", hollow->memory, parse_optional_bytes, "Memory of each node", "QUANTITY",
             "the scenario's, else 16Gi");
  add_parsed(app, "--disk", hollow->disk, parse_optional_bytes, "Disk of each node", "QUANTITY",
             "the scenario's, else 100Gi");
  add_hollow_node(app, *hollow);
  begin_group(app, "Run");
  app.add_option("--rate", hollow->nodes_per_second, "Nodes that register per second")
      ->check(between_shares(0.1, 1000))
      ->type_name("0.1..1000")
      ->capture_default_str();
  add_duration(app, "--observe-interval", hollow->observe_interval,
               "Longest time between two readings of a node's memory");
  app.add_option("--seed", hollow->seed, "Seed of all random choices")->default_str("another one each time");
  app.add_flag("--delete-nodes", hollow->delete_nodes, "Delete the Nodes at the end; otherwise they stay registered");
  app.footer(
      "Annotations of Nodes and Pods say how they behave: spillway.io/hollow-state, hollow-memory (docs/hollow.md).\n"
      "Exit codes: 0 ended by Ctrl-C, 1 a Node could not be deleted, 2 wrong command line or file.");
  commands.choose(app, hollow);
}

}  // namespace

void define_process_commands(Commands& commands) {
  define_up(commands);
  define_apiserver(commands);
  define_agent(commands);
  define_controller(commands);
  define_scheduler(commands);
  define_dns(commands);
  define_hollow(commands);
}

}  // namespace spillway::cli
