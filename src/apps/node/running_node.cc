#include "apps/node/running_node.h"

#include "agent/companion/kubelet_settings.h"
#include "agent/config/config_schema.h"
#include "agent/config/image_config.h"
#include "agent/config/manifest_config.h"
#include "agent/config/resource_config.h"
#include "agent/config/tls_config.h"
#include "agent/contract/log_paths.h"
#include "agent/devices/pinning_checkpoint.h"
#include "agent/node/allocatable.h"
#include "agent/node/allocatable_enforcement.h"
#include "agent/node/node_object.h"
#include "agent/node/node_software.h"
#include "agent/resizes/resource_book.h"
#include "api/text/duration.h"
#include "apps/node/credential_providers.h"
#include "apps/node/node_config.h"
#include "apps/node/node_options.h"
#include "apps/node/node_pages.h"
#include "apps/node/node_tree.h"
#include "apps/node/probe_streams.h"
#include "apps/process/recording.h"
#include "host/cgroup/reserved_cgroup.h"
#include "host/containers/cri_runtime.h"
#include "host/cri/image_endpoint.h"
#include "host/files/resolver_file.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/resident_memory.h"
#include "host/network/bridge_network.h"
#include "host/network/pod_networks.h"
#include "host/observation/machine_info.h"
#include "host/pods/machine_resources.h"
#include "host/process/process_runtime.h"
#include "host/reaction/memory_gauge.h"
#include "policy/checkup/runtime_choice.h"
#include "runtime/entropy.h"
#include "yaml/yaml_document.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kStartTakes = seconds(10);  // time in which the node registers and starts its pods

Outcome make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error{ErrorCode::kInternalError, "cannot create: " + error.message(), path};
  return {};
}

/// Limits for daemons require that the administrator has put them into cgroups of their own.
Outcome check_reserved_cgroups(const host::NodeSlice& slice, const std::vector<agent::LimitGroup>& limits) {
  SPILLWAY_TRY(root, slice.measured().hierarchy_root());
  for (const agent::LimitGroup& each : limits) {
    if (each.cgroup.empty()) continue;
    const auto found = host::open_reserved(root, each.cgroup);
    if (!found) return Error{found.error().code, agent::enforcement_failure(each, found.error()), {}};
  }
  return {};
}

std::uint16_t configured_port(const api::Json& configuration, std::string_view member) {
  const api::Json* port = configuration.find(member);
  return port == nullptr ? std::uint16_t{0} : static_cast<std::uint16_t>(port->if_int64().value_or(0));
}

/// JSON is YAML as well.
Result<api::Json> parse_manifest(const std::string& file, const std::string& text) {
  SPILLWAY_TRY(yaml, yaml::parse(file, text));
  return std::move(yaml.value);
}

bool is_set(const api::Json& configuration, std::string_view key, bool fallback) {
  const api::Json* found = configuration.find(key);
  return found == nullptr ? fallback : found->if_bool().value_or(fallback);
}

/// Names a family, no address.
bool is_any_address(const std::string& ip) {
  return ip == "0.0.0.0" || ip == "::";
}

host::LogLimits log_limits(const agent::AgentOptions& wanted) {
  return {.file_max = wanted.container_log_max, .files_max = static_cast<int>(wanted.container_log_files_max)};
}

/// Facts and settings that the agent starts with.
struct NodeFacts {
  agent::MachineInfo machine;
  NodeSetup setup;
  std::string runtime_socket;  // empty: pods are processes
  std::string image_socket;    // the image service; empty: the socket of the runtime
  std::vector<agent::CredentialProvider> credential_providers;
};

/// Reads the container runtime's name, version and features. A runtime that does not answer yet is read later.
void describe_runtime(const NodeSite& site, const std::string& socket, agent::MachineInfo& machine) {
  const auto runtime = host::ask_runtime_name(socket);
  if (!runtime) site.process.log().warning("no container runtime yet", {{"error", runtime.error().text()}});
  machine.runs_images = true;
  machine.keeps_pods = true;
  machine.container_runtime_version =
      runtime ? agent::runtime_version_text(runtime->name, runtime->version) : std::string();
  machine.shared_namespaces = {.ipc = false, .net = false};
  machine.network_on_request = false;
}

/// Empty: pods are to have none of the machine's.
std::string resolver_file(const api::Json& configuration) {
  const api::Json* file = configuration.find("resolvConf");
  return std::string(file == nullptr ? std::string_view("/etc/resolv.conf") : file->string_at({}));
}

/// Inputs of pods' resolver configuration.
agent::DnsFacts read_dns_facts(const api::Json& configuration, const std::string& cluster_domain,
                               const std::string& node_ip) {
  agent::DnsFacts made;
  if (const api::Json* servers = configuration.find("clusterDNS"); servers != nullptr && servers->if_array() != nullptr)
    for (const api::Json& each : *servers->if_array()) made.cluster_dns.emplace_back(each.string_at({}));
  made.cluster_domain = cluster_domain;
  made.node_ips = {node_ip};
  made.resolver_path = resolver_file(configuration);
  if (!made.resolver_path.empty()) made.resolv_conf = host::read_resolver_file(made.resolver_path);
  return made;
}

Result<NodeFacts> read_facts(const NodeSite& site, const RunningNode& node, const NodePartOptions& options) {
  SPILLWAY_TRY(machine, host::read_machine_info(*node.slice, options.state_dir));
  machine.hostname = options.name;  // as the kubelet's --hostname-override: several nodes share this machine
  SPILLWAY_TRY(setup, make_node_setup(options.args, options.name, machine.memory));
  SPILLWAY_TRY_VOID(check_machine(setup.configuration, machine.cgroup_version));
  SPILLWAY_TRY(socket, agent::runtime_socket(setup.configuration));
  if (socket.empty()) setup.agent.labels.emplace(std::string(checkup::kRuntimeLabel), checkup::kProcessRuntime);
  machine.confines_pods = socket.empty() && options.args.process_isolation != "none";
  if (socket.empty() && !options.cni_configuration.empty()) machine.shared_namespaces.net = false;
  if (!socket.empty())
    describe_runtime(site, socket, machine);
  else
    machine.keeps_pods = node.slice->options().leftovers == host::Leftovers::kKeep;
  setup.agent.node_ips = options.ips;
  setup.agent.api_server = options.api_server;
  setup.agent.shared_network_because = options.shared_network_because;
  if (const Outcome checked = agent::check_addresses(setup.agent, machine); !checked) {
    return Error{ErrorCode::kInvalid, checked.error().message, "--node-ip"};
  }
  if (!options.ips.empty() && !is_any_address(options.ips.front())) machine.internal_ip = options.ips.front();
  if (options.dns && setup.agent.cluster_domain.empty()) setup.agent.cluster_domain = options.dns->domain;
  setup.agent.dns = read_dns_facts(setup.configuration, setup.agent.cluster_domain, machine.internal_ip);
  if (options.dns && setup.agent.dns.cluster_dns.empty()) setup.agent.dns.cluster_dns = {options.dns->address};
  host::set_blind_zones(*node.slice, setup.agent.eviction);
  SPILLWAY_TRY_VOID(check_reserved_cgroups(*node.slice, agent::enforced_limits(machine, setup.agent)));
  SPILLWAY_TRY(providers, read_credential_providers(options.args));
  SPILLWAY_TRY(image_socket, agent::image_socket(setup.configuration));
  return NodeFacts{.machine = std::move(machine),
                   .setup = std::move(setup),
                   .runtime_socket = std::move(socket),
                   .image_socket = std::move(image_socket),
                   .credential_providers = std::move(providers)};
}

/// The address that the node's server listens at: `address` of the configuration, if it names one.
std::string server_address(const NodeFacts& facts) {
  const std::string_view given = facts.setup.configuration.string_at({"address"});
  return given.empty() || given == "0.0.0.0" || given == "::" ? facts.machine.internal_ip : std::string(given);
}

Result<wire::TlsBounds> tls_bounds(const NodeSite& site, const api::Json& configuration) {
  SPILLWAY_TRY(settings, agent::tls_of(configuration));
  for (const std::string& warning : settings.warnings) site.process.log().warning(warning);
  return wire::TlsBounds{.version_min = settings.floor == agent::TlsFloor::kTls13 ? wire::TlsBounds::Version::k13
                                                                                  : wire::TlsBounds::Version::k12,
                         .cipher_suites = std::move(settings.cipher_suites)};
}

/// The port that answers everyone, if the configuration names one.
Outcome open_read_only(const NodeSite& site, const NodeFacts& facts, RunningNode& node) {
  const std::uint16_t port = configured_port(facts.setup.configuration, "readOnlyPort");
  if (port == 0) return {};
  const std::string address = server_address(facts);
  SPILLWAY_TRY(server, ReadOnlyServer::create(site, address, port));
  node.read_only = std::move(server);
  site.process.log().warning("readOnlyPort: everyone who reaches it reads pods, statistics and metrics of this node",
                             {{"address", address}, {"port", std::uint64_t{port}}});
  return {};
}

/// The node's servers, if it has any, and its configuration page.
Outcome open_server(const NodeSite& site, const NodePartOptions& options, NodeFacts& facts, RunningNode& node) {
  agent::AgentOptions& agent_options = facts.setup.agent;
  agent_options.daemon_port = 0;
  const bool serves = facts.setup.configuration.find("enableServer")->if_bool().value_or(true);
  if (options.client_authority_pem && serves) {
    std::string authority_pem = *options.client_authority_pem;
    if (const std::string& file = facts.setup.gate.client_authority_file; !file.empty()) {
      SPILLWAY_TRY(given, read_file(file));
      authority_pem = std::move(given);
    }
    const api::Json& configuration = facts.setup.configuration;
    const std::string certificate_file(configuration.string_at({"tlsCertFile"}));
    const std::string key_file(configuration.string_at({"tlsPrivateKeyFile"}));
    if (certificate_file.empty() != key_file.empty())
      return invalid("tlsCertFile", "tlsCertFile and tlsPrivateKeyFile are needed together");
    const auto debugging = is_set(configuration, "enableDebuggingHandlers", true) ? NodeServer::Debugging::kServed
                                                                                  : NodeServer::Debugging::kRefused;
    SPILLWAY_TRY(bounds, tls_bounds(site, configuration));
    SPILLWAY_TRY(server, NodeServer::create(site, *node.transport,
                                            {.node_name = options.name,
                                             .state_dir = options.state_dir,
                                             .address = server_address(facts),
                                             .port = options.port.value_or(configured_port(configuration, "port")),
                                             .gate = facts.setup.gate,
                                             .tls = {std::move(authority_pem), std::move(bounds)},
                                             .certificate_file = certificate_file,
                                             .key_file = key_file,
                                             .client_authority_file = facts.setup.gate.client_authority_file,
                                             .debugging = debugging}));
    node.server = std::move(server);
    agent_options.daemon_port = node.server->port();
    SPILLWAY_TRY_VOID(open_read_only(site, facts, node));
  }
  node.configuration = agent::without_secrets(std::move(facts.setup.configuration));
  node.configuration["enableServer"] = node.server != nullptr;
  node.configuration["port"] = agent_options.daemon_port;
  node.configuration["cgroupDriver"] = to_string(node.slice->driver());
  return {};
}

std::optional<host::PodNetworkOptions> network_options(const NodePartOptions& options) {
  if (options.cni_configuration.empty()) return std::nullopt;
  return host::PodNetworkOptions{.configuration = options.cni_configuration,
                                 .tools = {.directories = host::plugin_directories(options.args.cni_bin_dir)},
                                 .state = options.state_dir + "/network"};
}

Result<std::unique_ptr<host::PodRuntime>> open_processes(const NodeSite& site, const NodePartOptions& options,
                                                         const NodeFacts& facts, RunningNode& node) {
  using Isolation = host::ProcessRuntimeOptions::Isolation;
  const agent::AgentOptions& wanted = facts.setup.agent;
  if (!facts.machine.confines_pods) {
    site.process.log().warning(
        "pods are not confined (--process-isolation=none): they are root on this machine and read its keys",
        {{"node", node.name}});
  }
  SPILLWAY_TRY(runtime, host::ProcessRuntime::create(
                            site.loop, *node.slice, *node.host_events, site.process.log(),
                            {.state_dir = options.state_dir,
                             .logs = log_limits(wanted),
                             .pressure = wanted.pressure_stats,
                             .isolation = facts.machine.confines_pods ? Isolation::kNamespaces : Isolation::kNone,
                             .hidden = options.hidden,
                             .secure_streams = probe_streams(),
                             .keeps_pods = facts.machine.keeps_pods,
                             .network = network_options(options)}));
  return std::unique_ptr<host::PodRuntime>(std::move(runtime));
}

std::int64_t memory_in(const api::ResourceList& list) {
  const auto found = list.find("memory");
  return found == list.end() ? 0 : found->second.value();
}

/// The sum that all pods' memory limits may reach: the memory without reservations.
std::int64_t allocatable_memory(const NodeFacts& facts) {
  return facts.machine.memory.count() - memory_in(facts.setup.agent.kube_reserved) -
         memory_in(facts.setup.agent.system_reserved);
}

/// Limits of containers follow from these.
agent::ResourceFacts resource_facts(const NodeFacts& facts, const RunningNode& node) {
  const api::Json& configuration = node.configuration;
  agent::ResourceFacts made;
  made.cgroup_v2 = facts.machine.cgroup_version == 2;
  made.cpu_cfs_quota = is_set(configuration, "cpuCFSQuota", true);
  made.cpu_period_micros = agent::cpu_period_micros(configuration);
  made.single_process_oom_kill = is_set(configuration, "singleProcessOOMKill", false);
  made.swap_behavior = configuration.string_at({"memorySwap", "swapBehavior"});
  made.machine_memory = facts.machine.memory;
  if (agent::is_gate_on(configuration, agent::kMemoryQosGate) && made.cgroup_v2) {
    made.memory_qos = {.throttling_factor = agent::memory_throttling_factor(configuration),
                       .page_size = ::sysconf(_SC_PAGESIZE),
                       .allocatable = allocatable_memory(facts)};
  }
  if (const auto percent = agent::reserved_memory_percent(configuration))
    made.qos_reserve = {.percent = *percent, .allocatable = Bytes{allocatable_memory(facts)}};
  host::read_machine_resources(node.slice->kubepods(), made);
  return made;
}

host::CriRuntimeOptions container_options(const NodePartOptions& options, const NodeFacts& facts,
                                          const RunningNode& node) {
  const api::Json& configuration = node.configuration;
  const std::string& version = facts.machine.container_runtime_version;
  host::CriRuntimeOptions made{.state_dir = options.state_dir,
                               .runtime_name = version.substr(0, version.find("://")),
                               .socket = facts.runtime_socket,
                               .image_socket = facts.image_socket,
                               .owner = fmt::format("{}.{}", options.instance, options.name),
                               .pressure = facts.setup.agent.pressure_stats,
                               .resources = {},
                               .dns = facts.setup.agent.dns,
                               .resolver_file = resolver_file(configuration),
                               .seccomp_default = facts.setup.agent.seccomp_default,
                               .image_gc = facts.setup.image_gc,
                               .logs = log_limits(facts.setup.agent),
                               .log_workers = static_cast<std::size_t>(facts.setup.agent.container_log_workers),
                               .secure_streams = probe_streams()};
  made.slices = node.slices.get();
  made.pod_logs_dir = configuration.string_at({"podLogsDir"});
  made.log_links_dir = agent::kLogLinksDirectory;
  made.parallel_pulls = agent::parallel_pulls_of(configuration).value_or(1);
  const agent::PullPace pace = agent::pull_pace_of(configuration).value_or(agent::PullPace{});
  made.pulls_per_second = pace.per_second;
  made.pull_burst = pace.burst;
  made.request_timeout =
      api::parse_duration(configuration.string_at({"runtimeRequestTimeout"})).value_or(made.request_timeout);
  made.log_check_interval =
      api::parse_duration(configuration.string_at({"containerLogMonitorInterval"})).value_or(made.log_check_interval);
  made.credential_plugin_dir = options.args.credential_plugin_dir;
  made.credential_providers = facts.credential_providers;
  made.resources = resource_facts(facts, node);
  return made;
}

Result<std::unique_ptr<host::PodRuntime>> open_containers(const NodeSite& site, const NodePartOptions& options,
                                                          const NodeFacts& facts, RunningNode& node) {
  std::unique_ptr<host::RuntimeCalls> calls = std::make_unique<host::CriCalls>(site.loop, facts.runtime_socket);
  if (!facts.image_socket.empty()) {
    calls = std::make_unique<host::ImageEndpoint>(std::move(calls),
                                                  std::make_unique<host::CriCalls>(site.loop, facts.image_socket));
  }
  SPILLWAY_TRY(runtime, host::CriRuntime::create(site.loop, *node.slice, std::move(calls), *node.host_events,
                                                 site.process.log(), container_options(options, facts, node)));
  return std::unique_ptr<host::PodRuntime>(std::move(runtime));
}

/// Starts the executor of the agent's commands, and the reaction thread, which acts before the agent does.
Outcome open_machine(const NodeSite& site, const NodePartOptions& options, const NodeFacts& facts, RunningNode& node) {
  runtime::Loop& loop = site.loop;
  const agent::AgentOptions& agent_options = facts.setup.agent;
  node.host_events = std::make_unique<HostEvents>();
  node.device_events = std::make_unique<DeviceEvents>();
  SPILLWAY_TRY(journal, host::JournalFile::open(options.state_dir + "/journal.jsonl", site.process.log()));
  node.journal = std::move(journal);
  if (site.process.tracer() != nullptr)
    node.trace = std::make_unique<TracedJournal>(*node.journal, site.process.loop(), *site.process.tracer());
  node.recording = open_recording(site.process, options.state_dir, options.args.recording_max);
  node.recording_pages = std::make_unique<host::RecordingPages>(loop);
  node.recording_pages->set_ring(node.recording.get());
  SPILLWAY_TRY(runtime, facts.runtime_socket.empty() ? open_processes(site, options, facts, node)
                                                     : open_containers(site, options, facts, node));
  node.runtime = std::move(runtime);
  host::PodRuntime& pods = *node.runtime;
  SPILLWAY_TRY(reaction, host::MemoryReaction::create(
                             loop, *node.slice,
                             {.receiver = *node.host_events,
                              .find_target = [&pods](const std::string& uid) { return pods.find_target(uid); },
                              .journal = node.journal.get(),
                              .memory_watch = agent_options.eviction.memory_watch},
                             site.process.log()));
  node.reaction = std::move(reaction);
  host::MemoryReaction& reacts = *node.reaction;
  pods.listen([&reacts] { reacts.report(); }, [&reacts] { reacts.refresh_targets(); });
  auto plugins =
      host::DevicePlugins::create(loop, options.state_dir + "/device-plugins", *node.device_events, site.process.log());
  if (plugins) {
    node.plugins = std::move(*plugins);
  } else {
    site.process.log().warning("device plugins cannot register",
                               {{"node", node.name}, {"error", plugins.error().text()}});
  }
  return {};
}

/// The journal to which the agent writes its decisions.
agent::Journal* journal_of(RunningNode& node) {
  return node.trace ? static_cast<agent::Journal*>(node.trace.get()) : node.journal.get();
}

/// The agent, with what an earlier process of this node wrote down.
Outcome make_agent(const NodeSite& site, const NodePartOptions& options, NodeFacts facts, RunningNode& node) {
  SPILLWAY_TRY(history, node.journal->read());
  const auto saved = [&](std::string_view file) -> std::optional<std::string> {
    auto text = read_file(fmt::format("{}/{}", options.state_dir, file));
    return text ? std::optional(*std::move(text)) : std::nullopt;
  };
  const agent::Checkpoints checkpoints{.devices = node.plugins ? node.plugins->checkpoint() : std::nullopt,
                                       .cpus = saved(agent::kCpuStateFile),
                                       .memory = saved(agent::kMemoryStateFile),
                                       .allocated_pods = saved(agent::kAllocatedPodsFile),
                                       .actuated_pods = saved(agent::kActuatedPodsFile)};
  // Without a checkpoint of devices the device capacity recorded in the node's status may be stale.
  if (node.plugins && !checkpoints.devices) facts.setup.agent.extended_resources = agent::ExtendedResources::kForget;
  facts.setup.agent.containers_swap = facts.machine.runs_images && facts.machine.cgroup_version == 2 &&
                                      node.configuration.string_at({"memorySwap", "swapBehavior"}) == "LimitedSwap";
  SPILLWAY_TRY(agent,
               agent::Agent::create(std::move(facts.setup.agent), std::move(facts.machine), Rng(runtime::entropy()),
                                    {site.process.log(), &site.process.metrics(), journal_of(node), node.reaction.get(),
                                     node.recording.get()},
                                    history, checkpoints));
  node.agent = std::move(agent);
  return {};
}

/// From here on the agent receives all events, and its commands are executed.
void connect(const NodeSite& site, RunningNode& node) {
  node.driver = std::make_unique<runtime::EngineDriver>(site.loop, *node.agent, *node.transport);
  if (node.plugins)
    node.runtime->set_device_files([&node](runtime::Loop::Task then) { node.plugins->when_saved(std::move(then)); });
  node.host_events->pass_to([&node](agent::HostEvent event) {
    node.driver->step([&node, event = std::make_shared<const agent::HostEvent>(std::move(event))](Now now) {
      node.agent->on_host_event(event, now);
    });
  });
  node.device_events->pass_to([&node](agent::DeviceEvent event) {
    node.driver->step([&node, event = std::move(event)](Now now) { node.agent->on_device_event(event, now); });
  });
  node.last_step = site.loop.now().mono;
  node.driver->after_step([site, &node] {
    node.last_step = site.loop.now().mono;
    for (agent::DeviceCommand& command : node.agent->take_device_commands()) {
      if (node.plugins) node.plugins->execute(std::move(command));
    }
    for (agent::HostCommand& command : node.agent->take_host_commands()) node.runtime->execute(std::move(command));
  });
}

/// The agent's lease is renewed on another loop from now on.
void hand_over_lease(const NodeSite& site, LeaseRoom room, RunningNode& node) {
  if (node.agent->options().status_profile != agent::StatusProfile::kLeases) return;
  node.lease = std::make_unique<LeaseRenewal>(site.loop, std::move(room), node.agent->options(), site.process.log(),
                                              site.process.metrics());
  node.agent->renew_lease_elsewhere([&node] {
    if (node.lease) node.lease->on_node_registered();
  });
}

/// Serves the socket from which monitoring reads the devices, CPUs and memory of containers.
void open_pod_resources(const NodeSite& site, const NodePartOptions& options, RunningNode& node) {
  auto opened = host::PodResources::create(site.loop, options.state_dir + "/pod-resources",
                                           {.held = [&node] { return node.agent->held_parts(); },
                                            .allocatable = [&node] { return node.agent->allocatable_parts(); }},
                                           {}, site.process.log());
  if (opened) {
    node.pod_resources = std::move(*opened);
  } else {
    site.process.log().warning("no socket of the pod-resources API",
                               {{"node", node.name}, {"error", opened.error().text()}});
  }
}

/// Starts the node, with its pages and its static pods.
void begin(const NodeSite& site, agent::MachineInfo machine, const std::string& state_dir, RunningNode& node) {
  runtime::Loop& loop = site.loop;
  if (host::protect_process() == host::MemoryLock::kNotAllowed)
    site.process.log().info("memory not locked: no right to (CAP_IPC_LOCK)");
  loop.at(loop.now().mono + kStartTakes, [] { host::give_back_start_up_pages(); });
  node.endpoint = std::make_unique<host::KubeletEndpoint>(loop, *node.runtime,
                                                          node_pages(site, node, std::move(machine), state_dir));
  if (node.server) node.server->set_endpoint(node.endpoint.get());
  if (node.read_only) node.read_only->set_endpoint(node.endpoint.get());
  node.driver->start();
  const agent::AgentOptions& started = node.agent->options();
  if (started.static_pod_path.empty()) return;
  node.manifests = std::make_unique<host::ManifestFiles>(
      loop, host::ManifestFiles::Options{started.static_pod_path, started.file_check_frequency, parse_manifest},
      [&node](const agent::StaticManifests& read) {
        node.driver->step([&node, read](Now now) { node.agent->on_manifests(read, now); });
      });
}

/// Fetches the static pods of the configured URL from now on, if there is one.
Outcome open_manifest_url(const NodeSite& site, agent::ManifestUrlSettings settings, RunningNode& node) {
  if (settings.server.empty()) return {};
  SPILLWAY_TRY(polled, ManifestUrl::create(site.loop, std::move(settings), [&node](const agent::StaticManifests& read) {
                 node.driver->step([&node, read](Now now) { node.agent->on_manifests(read, now); });
               }));
  node.manifest_url = std::move(polled);
  return {};
}

Outcome start(const NodeSite& site, const NodePartOptions& options, LeaseRoom lease, RunningNode& node) {
  SPILLWAY_TRY(facts, read_facts(site, node, options));
  SPILLWAY_TRY(manifest_url, agent::manifest_url_of(facts.setup.configuration));
  SPILLWAY_TRY_VOID(open_server(site, options, facts, node));
  SPILLWAY_TRY_VOID(open_machine(site, options, facts, node));
  agent::MachineInfo machine = facts.machine;
  SPILLWAY_TRY_VOID(make_agent(site, options, std::move(facts), node));
  connect(site, node);
  hand_over_lease(site, std::move(lease), node);
  begin(site, std::move(machine), options.state_dir, node);
  open_pod_resources(site, options, node);
  return open_manifest_url(site, std::move(manifest_url), node);
}

}  // namespace

Result<std::unique_ptr<RunningNode>> start_node(const NodeSite& site, const NodePartOptions& options,
                                                std::unique_ptr<client::Transport> transport, LeaseRoom lease) {
  SPILLWAY_TRY_VOID(make_directory(options.state_dir));
  SPILLWAY_TRY(tree, make_node_tree(site, options));
  auto node = std::make_unique<RunningNode>();
  node->name = options.name;
  node->transport = std::move(transport);
  node->slice = std::move(tree.slice);
  node->slices = std::move(tree.slices);
  if (const Outcome started = start(site, options, std::move(lease), *node); !started) {
    const std::unique_ptr<host::NodeSlice> made = std::move(node->slice);
    node->reaction.reset();
    node->runtime.reset();
    if (made->options().leftovers == host::Leftovers::kEnd)
      ignored(made->remove(), "the first error is the one to report");
    return started.error();
  }
  return node;
}

}  // namespace spillway::apps
