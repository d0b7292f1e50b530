// `spillway up`: a whole cluster in one process.
#include "agent/contract/options.h"
#include "api/object/node.h"
#include "api/text/dns_identity.h"
#include "api/text/identities.h"
#include "api/text/ip_address.h"
#include "apps/commands/commands.h"
#include "apps/commands/local_storage_part.h"
#include "apps/commands/manifest_folder.h"
#include "apps/commands/manifests_part.h"
#include "apps/commands/missing_nodes.h"
#include "apps/commands/node_ranges_watch.h"
#include "apps/commands/nodes_of_up.h"
#include "apps/commands/nodes_ready.h"
#include "apps/controller/controller_pages.h"
#include "apps/controller/controllers_part.h"
#include "apps/controller/election_part.h"
#include "apps/controller/scheduler_part.h"
#include "apps/controller/scheduler_setup.h"
#include "apps/dns/dns_part.h"
#include "apps/dns/dns_service_part.h"
#include "apps/node/containerd_part.h"
#include "apps/node/node_config.h"
#include "apps/node/node_options.h"
#include "apps/node/nodes_part.h"
#include "apps/node/runtime_facts.h"
#include "apps/process/engine_metrics.h"
#include "apps/process/engine_part.h"
#include "apps/process/host_name.h"
#include "apps/process/process.h"
#include "apps/process/recording.h"
#include "apps/process/terminal.h"
#include "apps/proxy/proxy_part.h"
#include "apps/server/api_server_part.h"
#include "apps/server/data_dir.h"
#include "base/split.h"
#include "cli/text/first_screen.h"
#include "controllers/controller_set.h"
#include "controllers/endpoints/machine_balancer.h"
#include "host/containerd/oci_image.h"
#include "host/containerd/pause_program.h"
#include "host/network/bridge_network.h"
#include "host/network/listening_port.h"
#include "host/observation/machine_info.h"
#include "host/volumes/provisioned_directory.h"
#include "policy/checkup/runtime_choice.h"
#include "runtime/entropy.h"

#include "dns/left_slices.h"
#include "dns/service_keeper.h"
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

/// The tenth address of the API server's range of ClusterIPs, as kubeadm chooses it.
constexpr std::string_view kDnsAddress = "10.96.0.10";
constexpr std::string_view kProxyUser = "system:kube-proxy";
constexpr std::string_view kManifestsUser = "spillway:manifests";

/// The runtime of the pods, and the options of a containerd that this process starts.
struct RuntimePlan {
  checkup::RuntimeChoice choice;
  host::DaemonPlaces places;
  std::optional<host::DaemonSettings> settings;  // nullopt: none is wanted
};

Result<RuntimePlan> plan_runtime(const cli::UpCommand& command) {
  SPILLWAY_TRY(config, read_node_config(command.node.config));
  const checkup::RuntimeFacts facts =
      read_runtime_facts(command.runtime, std::string(config.value.string_at({"containerRuntimeEndpoint"})));
  SPILLWAY_TRY(choice, checkup::choose_runtime(facts));
  const std::string data_dir = std::filesystem::absolute(resolve_data_dir(command.serving.data_dir)).string();
  RuntimePlan plan{.choice = std::move(choice), .places = {data_dir + "/containerd"}, .settings = std::nullopt};
  if (plan.choice.kind != checkup::RuntimeKind::kOwnContainerd || command.nodes == 0) return plan;
  SPILLWAY_TRY_VOID(host::check_places(plan.places));
  const std::string node_dir = node_state_dir(command.node.state_dir, data_dir, node_names(command).front());
  plan.settings = read_daemon_settings(facts, data_dir, std::filesystem::absolute(node_dir + "/cni").string());
  return plan;
}

std::string program_path() {
  const char* const path = std::getenv("PATH");
  return path == nullptr ? "/usr/sbin:/sbin" : path;
}

/// Checks that pods can have addresses of their own here; the error names the cause and the remedy.
Outcome check_pod_network(const cli::UpCommand& command, checkup::RuntimeKind runtime) {
  if (command.pod_network == "off") return make_error(ErrorCode::kInvalid, "--pod-network off");
  if (command.pod_network == "auto" && runtime == checkup::RuntimeKind::kSocket) {
    return make_error(ErrorCode::kInvalid, "the container runtime has a network configuration of its own");
  }
  if (!command.controller.allocate_node_cidrs) return make_error(ErrorCode::kInvalid, "--no-allocate-node-cidrs");
  return host::check_bridge_network(host::plugin_directories(command.node.cni_bin_dir), program_path());
}

class Up {
 public:
  Up(const cli::LogArgs& log, cli::UpCommand command, SchedulerSetup scheduling, RuntimePlan plan, Outcome network)
      : command_(std::move(command)),
        plan_(std::move(plan)),
        scheduling_(std::move(scheduling)),
        network_(std::move(network)),
        screen_(::isatty(STDERR_FILENO) == 1),
        process_(log, screen_ && !log.given ? LogReader::kPerson : LogReader::kProgram) {}

  int run() {
    if (const Outcome traced = process_.trace(command_.trace, "spillway"); !traced) {
      print_error(traced.error());
      return cli::kExitUsage;
    }
    auto server = ApiServerPart::create(
        process_, command_.serving, [this] { start_engines(); },
        {.now = [this](std::string_view path) { return pages_.answer(path); },
         .later =
             [this](std::string_view path, std::function<void(api::Response)> answer) {
               if (!host::RecordingPages::serves(path)) return false;
               answer_of_recording(path, std::move(answer));
               return true;
             }},
        apiserver::ApiServer::Controllers::kOwn);
    if (!server) {
      print_error(server.error());
      return server.error().code == ErrorCode::kInvalid ? cli::kExitUsage : cli::kExitFailure;
    }
    server_ = &process_.add(*std::move(server));
    process_.on_interrupt([this] { on_interrupt(); });
    const int code = process_.run();
    remove_bridges();
    if (interrupted_ && screen_) print_to_stderr("Stopped.\n");
    return code;
  }

 private:
  void answer_of_recording(std::string_view path, std::function<void(api::Response)> answer) {
    if (others_lead_.empty()) return recording_pages_.get(path, std::move(answer));
    answer(status_response(make_error(ErrorCode::kServiceUnavailable, "{}", others_lead_)));
  }

  void start_engines() {
    if (server_->has_others()) {
      elect();
    } else {
      start_controllers([](std::unique_ptr<client::ApiEngine> engine) { return engine; });
      start_scheduler({}, {});
    }
    process_.log().info("runtime of the pods", {{"decision", checkup::sentence_of(plan_.choice)}});
    if (!start_proxy()) return;
    start_balancer();
    check_services_reached();
    if (!start_dns()) return;
    if (makes_volumes()) start_storage();
    if (command_.process_nodes > 0) offer_processes();
    start_manifests();
    process_.add(std::make_unique<ContainerdPart>(
        process_,
        ContainerdPart::Options{.places = plan_.places, .settings = plan_.settings, .keeps_pods = keeps_pods()},
        [this] { start_nodes(); }));
  }

  bool keeps_pods() const { return command_.pods_at_stop == "leave"; }

  /// Only root can give a directory to a pod.
  bool makes_volumes() const {
    if (command_.nodes == 0) return false;
    return command_.storage == "on" || (command_.storage == "auto" && geteuid() == 0);
  }

  /// Makes the volumes of the nodes of this process; others that use its store make those of theirs.
  void start_storage() {
    storage::LocalFolders folders;
    for (const std::string& name : node_names(command_)) {
      folders.emplace(name, host::provisioned_folder(state_dir_of(name)));
    }
    process_.add(std::make_unique<LocalStoragePart>(process_, std::move(folders), rng_.fork("local storage"),
                                                    server_->connect(api::kLocalStorageUser)));
  }

  /// Offers a RuntimeClass by which pods can run as processes beside nodes with containers.
  void offer_processes() {
    auto applier = std::make_unique<controllers::ManifestApplier>(rng_.fork("runtime class"), process_.log());
    applier->replace({process_runtime_class()}, process_.loop().now());
    process_.add(std::make_unique<EnginePart>(process_.loop(), std::move(applier),
                                              server_->connect_administrator(kManifestsUser)));
  }

  void start_manifests() {
    if (command_.manifests.empty()) return;
    process_.add(std::make_unique<ManifestsPart>(process_, command_.manifests, rng_.fork("manifests"),
                                                 server_->connect_administrator(kManifestsUser)));
  }

  std::string storage_line() const {
    if (!makes_volumes()) return {};
    return fmt::format("claims get directories of this machine (StorageClass {})", storage::kLocalPathClass);
  }

  /// Pods get no addresses of their own by default where they would reach neither the API server nor Services.
  void check_services_reached() {
    if (!network_) return;
    Outcome reached = check_server_reached();
    if (reached && has_service_proxy_) reached = host::filter_bridges();
    if (reached) return;
    // Pods of a container runtime cannot do without a network; processes have the machine's.
    if (command_.pod_network == "auto" && plan_.choice.kind == checkup::RuntimeKind::kProcess) {
      network_ = std::move(reached);
    } else {
      process_.operator_log().warning("pods do not reach all Services", {{"why", reached.error().text()}});
    }
  }

  /// Finds the address at which pods with addresses of their own reach this API server: one where it listens, or the
  /// Service `kubernetes`. The error: none is reachable for them.
  Outcome check_server_reached() const {
    if (!server_->pods_host().empty()) return {};
    if (server_->has_others() || !server_->speaks_tls()) {
      return make_error(ErrorCode::kInvalid, "pods could not reach the API server (see --bind-address)");
    }
    if (has_service_proxy_) return {};
    return make_error(ErrorCode::kInvalid,
                      "pods could not reach the API server, because nothing carries Services here (see --proxy)");
  }

  /// False: the process ends, with an error that has been reported.
  bool start_dns() {
    std::vector<cli::ListenPlace> places = command_.dns.listen;
    if (places.empty()) places.push_back({host::machine_address(), 0});
    // An address of the loopback is no endpoint of a Service.
    const auto address = api::parse_ip(places.front().address);
    const bool is_reached = has_service_proxy_ && address && !address->is_loopback();
    const bool wanted = command_.dns_mode == "on" || (command_.dns_mode == "auto" && is_reached);
    const std::string slice = "kube-dns-" + instance_of(server_->data_dir());
    if (!server_->has_others()) {
      process_.add(std::make_unique<EnginePart>(
          process_.loop(),
          std::make_unique<dns::LeftSlices>(wanted ? slice : std::string(), rng_.fork("left slices"), process_.log()),
          server_->connect(api::kDnsUser)));
    }
    if (!wanted) return true;
    cli::DnsArgs args = command_.dns;
    if (network_ || plan_.choice.kind == checkup::RuntimeKind::kOwnContainerd) {
      // Address ranges from which such pods send their requests.
      for (const std::string_view range : words_in(command_.controller.node_ranges.cluster_cidr, ",")) {
        args.allow_from.emplace_back(range);
      }
    }
    auto part = DnsPart::create(process_, args, places, server_->connect(api::kDnsUser));
    if (!part) {
      process_.fail(part.error());
      return false;
    }
    const DnsPart& dns = process_.add(*std::move(part));
    const wire::DnsServerPlace& place = dns.places().front();
    process_.add(std::make_unique<DnsServicePart>(
        process_.loop(),
        std::make_unique<dns::ServiceKeeper>(
            dns::ServiceKeeper::Options{
                .cluster_ip = std::string(kDnsAddress), .slice = slice, .address = place.address, .port = place.port},
            rng_.fork("dns service"), process_.log()),
        server_->connect(api::kDnsUser)));
    if (is_reached)
      cluster_dns_ = ClusterDns{.address = std::string(kDnsAddress), .domain = command_.dns.cluster_domain};
    return true;
  }

  /// Runs a service proxy, if this process may: one process of a machine does. False: it was required and cannot run.
  bool start_proxy() {
    if (command_.proxy == "off") {
      pages_.set_services("--proxy off");
      return true;
    }
    const Outcome begun = begin_proxy();
    has_service_proxy_ = begun.has_value();
    pages_.set_services(begun ? std::string() : begun.error().text());
    if (begun) return true;
    if (command_.proxy == "on") {
      process_.fail(begun.error());
      return false;
    }
    no_services_ = "their addresses lead nowhere here: " + begun.error().text();
    process_.log().info("services are not carried", {{"why", begun.error().text()}});
    return true;
  }

  Outcome begin_proxy() {
    SPILLWAY_TRY(place, ProxyPlace::take());
    SPILLWAY_TRY_VOID(host::check_netfilter());
    const std::vector<std::string> names = node_names(command_);
    proxy::ServiceProxy::Options options;
    options.settings.node_name = names.empty() ? host_name() : names.front();
    process_.add(std::make_unique<ProxyPart>(
        process_, std::move(place),
        std::make_unique<proxy::ServiceProxy>(std::move(options), rng_.fork("proxy"), process_.log(),
                                              process_.metrics()),
        server_->connect(kProxyUser), keeps_pods() ? RulesAtStop::kStay : RulesAtStop::kGo));
    return {};
  }

  /// Processes that share a store set no address: the machine that a client should reach is unknown.
  void start_balancer() {
    if (!has_service_proxy_ || command_.load_balancer == "off" || server_->has_others()) return;
    process_.add(
        std::make_unique<EnginePart>(process_.loop(),
                                     std::make_unique<controllers::MachineBalancer>(
                                         controllers::MachineBalancer::Options{.addresses = {host::machine_address()},
                                                                               .is_taken = host::is_listening},
                                         rng_.fork("load balancer"), process_.log()),
                                     server_->connect(api::kLoadBalancerUser)));
  }

  using Fence = SchedulerFence;
  using MayAct = std::function<bool(Now)>;

  /// The role of one of several processes that share a store.
  struct Elected {
    const ElectionPart* election = nullptr;  // null: there are no other processes
    const Part* acting = nullptr;            // set while this process leads
  };

  /// Takes part in the elections of the controllers and of the scheduler. Nodes need none: every process has its own.
  void elect() {
    const auto say = [this](const std::string& why) {
      pages_.set_controllers(nullptr, why);
      others_lead_ = why;
    };
    take_part(
        "spillway-controller", api::kOwnControllersUser, controllers_,
        [this](const Fence& fence, const MayAct&) { start_controllers(fence); }, say);
    take_part(
        "spillway-scheduler", api::kOwnSchedulerUser, scheduler_,
        [this](const Fence& fence, const MayAct& may_act) { start_scheduler(fence, may_act); },
        [](const std::string&) {});
  }

  void take_part(const std::string& lease, std::string_view user, Elected& elected,
                 std::function<void(const Fence&, const MayAct&)> start,
                 const std::function<void(const std::string& why)>& say) {
    client::LeaderElection::Options options;
    options.name = lease;
    ElectionPart::Callbacks callbacks{
        .begin =
            [&elected, start = std::move(start)](std::uint64_t term) {
              start(
                  [&elected, term](std::unique_ptr<client::ApiEngine> engine) {
                    return elected.election->fenced(std::move(engine), term);
                  },
                  [&elected, term](Now now) { return elected.election->may_act(term, now); });
            },
        .end =
            [this, &elected, say](const std::string& why) {
              if (elected.acting != nullptr) process_.end(*std::exchange(elected.acting, nullptr));
              say(why);
            },
        .standby = [say](const std::string& leader) { say("standing by: " + leader + " leads"); }};
    elected.election = &process_.add(std::make_unique<ElectionPart>(process_, options, rng_.fork(lease),
                                                                    server_->connect(user), std::move(callbacks)));
  }

  void start_controllers(const Fence& fence) {
    controllers::ControllerSet::Options options = *make_controller_options(command_.controller);
    if (!recording_) {
      recording_ = open_recording(process_, server_->data_dir() + "/controller", command_.node.recording_max);
    }
    options.recording = recording_.get();
    recording_pages_.set_ring(recording_.get());
    others_lead_.clear();
    auto set = std::make_unique<controllers::ControllerSet>(std::move(options), rng_.fork("controller"), process_.log(),
                                                            process_.metrics());
    controllers::ControllerSet& controllers = *set;
    controllers_.acting = &process_.add(std::make_unique<ControllersPart>(
        process_.loop(), controllers,
        fence(std::make_unique<TimedControllers>(std::move(set), process_.loop(), process_.metrics())),
        server_->connect(api::kOwnControllersUser), pages_, command_.controller));
  }

  void start_scheduler(const Fence& fence, const MayAct& may_act) {
    scheduling_.options.stopwatch = [this] { return process_.loop().now().mono; };
    scheduler_.acting = &process_.add(std::make_unique<SchedulerPart>(
        process_.loop(), make_scheduler(scheduling_, rng_.fork("scheduler"), process_.log(), process_.metrics(), fence),
        server_->connect(api::kOwnSchedulerUser), may_act));
  }

  void start_nodes() {
    std::vector<std::string> names = node_names(command_);
    find_missing_nodes(names);
    if (network_) make_networks(names);
    if (!network_ && command_.pod_network == "auto") {
      process_.log().info("pods use the machine's network", {{"because", network_.error().message}});
    }
    if (!names.empty()) nodes_ = &process_.add(std::make_unique<NodesPart>(process_, server_->local_nodes()));
    start_node(names, 0);
  }

  /// Starts the nodes from `place` on, then waits until they are ready.
  void start_node(const std::vector<std::string>& names, std::size_t place) {
    if (place == names.size()) {
      wait_for_nodes(names);
      return process_.set_up_done();
    }
    const std::string user = std::string(api::kNodeUserPrefix) + names[place];
    nodes_->start(options_of(names[place]), {.agent = server_->connect(user), .lease = server_->connect(user)},
                  [this, names, place](const Outcome& started) {
                    started ? start_node(names, place + 1) : process_.fail(started.error());
                  });
  }

  std::string state_dir_of(const std::string& node) const {
    return node_state_dir(command_.node.state_dir, server_->data_dir(), node);
  }

  std::string network_dir_of(const std::string& node) const {
    return std::filesystem::absolute(state_dir_of(node) + "/cni").string();
  }

  std::string bridge_of(const std::string& node) const {
    return host::bridge_name(instance_of(server_->data_dir()), node);
  }

  /// Each node gets its bridge once its addresses are known. Pods that are bound earlier wait.
  void make_networks(const std::vector<std::string>& names) {
    for (const std::string& each : names) bridges_.insert(bridge_of(each));
    process_.add(std::make_unique<EnginePart>(
        process_.loop(),
        std::make_unique<NodeRangesWatch>(std::set<std::string>(names.begin(), names.end()),
                                          [this](const std::string& node, const std::vector<std::string>& ranges) {
                                            if (const Outcome made = make_network(node, ranges); !made) {
                                              process_.log().error("network of a node not made",
                                                                   {{"node", node}, {"error", made.error().text()}});
                                            }
                                          }),
        server_->connect(api::kOwnControllersUser)));
  }

  /// The configuration is last: with it, pods of the node begin.
  Outcome make_network(const std::string& node, const std::vector<std::string>& ranges) {
    const host::BridgeNetwork network{.directory = network_dir_of(node), .bridge = bridge_of(node), .ranges = ranges};
    SPILLWAY_TRY_VOID(host::make_bridge(network));
    if (const Outcome served = serve_pods(node, ranges); !served) {
      process_.log().error("pods do not reach the API server", {{"error", served.error().text()}});
    }
    return host::write_bridge_network(network);
  }

  /// The API server listens at the first node's bridge, too, where only pods of this machine reach it.
  Outcome serve_pods(const std::string& node, const std::vector<std::string>& ranges) {
    const bool wanted = server_->pods_host().empty() && !server_->has_others() && server_->speaks_tls();
    if (!wanted || served_pods_ || node != node_names(command_).front()) return {};
    std::vector<api::IpRange> networks;
    for (const std::string_view each : words_in(command_.controller.node_ranges.cluster_cidr, ",")) {
      if (const auto range = api::parse_ip_range(each)) networks.push_back(*range);
    }
    const auto is_v4 = [](const std::string& range) { return !range.contains(':'); };
    const auto best = std::ranges::find_if(ranges, is_v4);  // the family of the Service
    const auto gateway = host::gateway_of(best == ranges.end() ? ranges.front() : *best);
    if (!gateway) return invalid(ranges.front(), "no range of addresses");
    served_pods_ = true;
    return server_->serve_pods(*gateway, std::move(networks));
  }

  /// Pods that run on need them.
  void remove_bridges() {
    if (command_.pods_at_stop == "leave") return;
    for (const std::string& bridge : bridges_) {
      const Outcome removed = host::remove_bridge(bridge);
      if (!removed) process_.log().warning("bridge not removed", {{"error", removed.error().text()}});
    }
  }

  std::string network_line() const {
    if (command_.nodes == 0 || command_.pod_network == "off") return {};
    if (network_) return fmt::format("pods have addresses of {}", command_.controller.node_ranges.cluster_cidr);
    return fmt::format("pods use the machine's: {}", network_.error().message);
  }

  void wait_for_nodes(std::vector<std::string> names) {
    const Instant began = process_.loop().now().mono;
    NodesReady::Callbacks callbacks;
    callbacks.ready = [this, names, began](const api::Node* first) {
      process_.loop().post([this] { process_.end(*std::exchange(waiting_, nullptr)); });
      if (screen_) print_to_stderr(cli::first_screen(screen_of(names, first), screen_paint()));
      const Duration took = process_.loop().now().mono - began;
      process_.log().info("ready", {{"nodes", static_cast<std::uint64_t>(names.size())},
                                    {"names", fmt::format("{}", fmt::join(names, " "))},
                                    {"milliseconds", took / milliseconds(1)}});
    };
    callbacks.waiting = [this](const std::string& line) {
      if (screen_) print_to_stderr(line);
    };
    waiting_ = &process_.add(std::make_unique<EnginePart>(
        process_.loop(), std::make_unique<NodesReady>(std::move(names), std::move(callbacks)),
        server_->connect(api::kOwnControllersUser)));
  }

  static cli::Paint screen_paint() {
    return shows_colour(cli::Colour::kAuto, STDERR_FILENO) ? cli::Paint::kTerminal : cli::Paint::kNone;
  }

  /// True if the user who started this process by sudo cannot read the kubeconfig, which belongs to root.
  static bool is_by_sudo() {
    const char* const user = std::getenv("SUDO_USER");
    return geteuid() == 0 && user != nullptr && std::string_view(user) != "root";
  }

  /// The socket of a runtime that runs and is not used, unless the advice is to use it.
  std::string other_runtime() const {
    return plan_.choice.reason == checkup::RuntimeReason::kNotInstalled ? std::string() : plan_.choice.running_socket;
  }

  cli::FirstScreen screen_of(const std::vector<std::string>& names, const api::Node* first) const {
    cli::FirstScreen screen{.nodes = names,
                            .memory = {},
                            .kubernetes = agent::AgentOptions().kubelet_version,
                            .container_runtime = {},
                            .advice = names.empty() ? std::string() : checkup::advice_of(plan_.choice),
                            .other_runtime = other_runtime(),
                            .program = program_invocation_name,
                            .kubeconfig = std::filesystem::absolute(server_->kubeconfig_file()).string(),
                            .by_sudo = is_by_sudo(),
                            .pods_run_on = pods_run_on(),
                            .pod_network = network_line(),
                            .storage = storage_line(),
                            .no_services = no_services_};
    if (first == nullptr) return screen;
    const api::NodeSystemInfo& info = first->status.node_info;
    screen.kubernetes = info.kubelet_version;
    if (!info.container_runtime_version.starts_with("process://")) {
      screen.container_runtime = info.container_runtime_version;
    }
    if (const auto memory = first->status.capacity.find("memory"); memory != first->status.capacity.end()) {
      screen.memory = memory->second.bytes();
    }
    return screen;
  }

  void on_interrupt() {
    interrupted_ = true;
    if (!screen_) return;
    // Behind the "^C" that the terminal shows.
    const auto say = [this](std::size_t pods) { print_to_stderr("\n" + cli::stopping_line(pods, pods_run_on())); };
    nodes_ == nullptr ? say(0) : nodes_->count_pods(say);
  }

  bool pods_run_on() const { return nodes_ != nullptr && nodes_->pods_run_on(); }

  void find_missing_nodes(const std::vector<std::string>& names) {
    process_.add(std::make_unique<EnginePart>(
        process_.loop(),
        std::make_unique<MissingNodes>(MissingNodes::Options{.before = nodes_below(node_state_dir(
                                                                 command_.node.state_dir, server_->data_dir(), "")),
                                                             .now = {names.begin(), names.end()},
                                                             .remove = command_.remove_missing_nodes},
                                       process_.operator_log()),
        server_->connect(api::kOwnControllersUser)));
  }

  std::optional<agent::ApiServerAddress> direct_server() const {
    if (command_.kubernetes_service != "api-server" || !server_->speaks_tls()) return std::nullopt;
    using agent::AddressReach;
    const agent::ApiServerAddress here{
        .host = server_->local_host(), .port = server_->port(), .reach = AddressReach::kAllPods};
    if (!network_) return here;
    if (has_service_proxy_ || server_->pods_host().empty())
      return agent::ApiServerAddress{here.host, here.port, AddressReach::kHostNetwork};
    return agent::ApiServerAddress{server_->pods_host(), here.port, AddressReach::kAllPods};
  }

  NodePartOptions options_of(const std::string& name) const {
    return {
        .args = is_process_node(command_, name) ? process_node_args(command_.node) : command_.node,
        .name = name,
        .instance = instance_of(server_->data_dir()),
        .state_dir = state_dir_of(name),
        .client_authority_pem = std::nullopt,
        .port = 0,
        .ips = {},
        .hidden = {server_->data_dir(), command_.serving.write_kubeconfig, command_.serving.token_auth_file},
        .api_server = direct_server(),
        .keeps_pods = keeps_pods(),
        .cni_configuration = network_ ? network_dir_of(name) : std::string(),
        .shared_network_because = network_ || command_.pod_network == "off" ? std::string() : network_.error().message,
        .dns = cluster_dns_};
  }

  const cli::UpCommand command_;
  const RuntimePlan plan_;
  SchedulerSetup scheduling_;
  Outcome network_;           // true: pods have addresses of their own; the error: the reason why not
  bool served_pods_ = false;  // the API server listens at a bridge
  std::set<std::string> bridges_;
  /// Pods of this machine reach ClusterIPs: a service proxy runs here. Without one, no pod could ask kube-dns.
  bool has_service_proxy_ = false;
  std::optional<ClusterDns> cluster_dns_;  // nullopt: pods have the machine's servers
  const bool screen_;                      // standard error is a terminal, where people read the next steps
  Process process_;
  const Rng rng_{runtime::entropy()};
  ControllerPages pages_{process_.loop()};
  std::unique_ptr<host::RecordingRing> recording_;  // the controllers'; null: none, or not yet
  host::RecordingPages recording_pages_{process_.loop()};
  // reason why this process runs no controllers now; empty: it runs them, or that is not known yet
  std::string others_lead_;
  ApiServerPart* server_ = nullptr;
  NodesPart* nodes_ = nullptr;  // null: none have been started
  // reason why this process runs no service proxy; empty: it runs one, or is configured not to
  std::string no_services_;
  const Part* waiting_ = nullptr;  // waits for the nodes to be ready
  bool interrupted_ = false;
  Elected controllers_;
  Elected scheduler_;
};

/// The node's configuration, and as a comment the one of the containerd that would be started.
int print_up_config(const cli::UpCommand& command, RuntimePlan plan) {
  print_out("# {}\n", checkup::sentence_of(plan.choice));
  if (const int code = print_node_config(command.node); code != cli::kExitOk || !plan.settings) return code;
  plan.settings->sandbox_image = host::make_pause_image(host::pause_program()).name;
  print_out("---\n# {}:\n", plan.places.config());
  const std::string text = host::daemon_config(plan.places, *plan.settings);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    print_out("#{}{}\n", end == 0 ? "" : "   ", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return cli::kExitOk;
}

}  // namespace

int run_up(const cli::LogArgs& log, const cli::UpCommand& given) {
  if (!check_nodes(given.node, node_names(given))) return cli::kExitUsage;
  auto plan = plan_runtime(given);
  if (!plan) {
    print_error(plan.error());
    return cli::kExitUsage;
  }
  cli::UpCommand command = given;
  if (plan->settings) command.node.config.flags["containerRuntimeEndpoint"] = "unix://" + plan->places.socket();
  if (!plan->choice.socket.empty()) command.node.config.flags["containerRuntimeEndpoint"] = plan->choice.socket;
  if (command.print_config) return print_up_config(command, *std::move(plan));
  if (const auto options = make_controller_options(command.controller); !options) {
    print_error(options.error());
    return cli::kExitUsage;
  }
  if (const Outcome folder = check_manifest_folder(command.manifests); !folder) {
    print_error(folder.error());
    return cli::kExitUsage;
  }
  if (command.process_nodes > 0 && (command.nodes == 0 || plan->choice.kind == checkup::RuntimeKind::kProcess)) {
    print_error(invalid("--process-nodes",
                        "there are no nodes with containers beside them: {} (for nodes of processes "
                        "alone: --nodes)",
                        checkup::sentence_of(plan->choice)));
    return cli::kExitUsage;
  }
  warn_of_flags_without_effect(cli::flags_without_effect(command.controller));
  const auto scheduling = read_scheduler_file(command.scheduler_config);
  if (!scheduling) {
    print_error(scheduling.error());
    return cli::kExitUsage;
  }
  auto setup = make_scheduler_setup(*scheduling, command.controller.compat == "v1.7",
                                    {.respect_budgets = command.controller.brakes.respect_budgets,
                                     .limit_deletions = command.controller.brakes.limit_deletions});
  if (!setup) {
    print_error(setup.error());
    return cli::kExitUsage;
  }
  Outcome network = check_pod_network(command, plan->choice.kind);
  if (command.pod_network == "on" && !network) {
    print_error(Error{network.error().code, network.error().message, "--pod-network on"});
    return cli::kExitUsage;
  }
  return Up(log, std::move(command), *std::move(setup), *std::move(plan), std::move(network)).run();
}

}  // namespace spillway::apps
