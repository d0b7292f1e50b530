#include "apps/node/running_node.h"

#include "agent/devices/pinning_checkpoint.h"
#include "agent/node/allocatable.h"
#include "agent/node/allocatable_enforcement.h"
#include "agent/node/node_object.h"
#include "apps/node/node_options.h"
#include "apps/node/node_pages.h"
#include "host/cgroup/reserved_cgroup.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/resident_memory.h"
#include "host/observation/machine_info.h"
#include "host/reaction/memory_gauge.h"
#include "yaml/yaml_document.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kStartTakes = seconds(10);  // by then it has registered and runs what it found

Outcome make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error{ErrorCode::kInternalError, "cannot create: " + error.message(), path};
  return {};
}

/// Whoever asks for limits of daemons has to have put them into a cgroup of their own.
Outcome check_reserved_cgroups(const host::NodeSlice& slice, const std::vector<agent::LimitGroup>& limits) {
  SPILLWAY_TRY(root, slice.measured().hierarchy_root());
  for (const agent::LimitGroup& each : limits) {
    if (each.cgroup.empty()) continue;
    const auto found = host::open_reserved(root, each.cgroup);
    if (!found) return Error{found.error().code, agent::enforcement_failure(each, found.error()), {}};
  }
  return {};
}

std::uint16_t configured_port(const api::Json& configuration) {
  return static_cast<std::uint16_t>(configuration.find("port")->if_int64().value_or(0));
}

/// JSON is YAML as well.
Result<api::Json> parse_manifest(const std::string& file, const std::string& text) {
  SPILLWAY_TRY(yaml, yaml::parse(file, text));
  return std::move(yaml.value);
}

/// Names a family, no address.
bool is_any_address(const std::string& ip) {
  return ip == "0.0.0.0" || ip == "::";
}

/// What the agent is told of its machine and of what was wished.
struct NodeFacts {
  agent::MachineInfo machine;
  NodeSetup setup;
};

Result<NodeFacts> read_facts(const RunningNode& node, const NodePartOptions& options) {
  SPILLWAY_TRY(machine, host::read_machine_info(*node.slice, options.state_dir));
  machine.hostname = options.name;  // as the kubelet's --hostname-override: several nodes share this machine
  machine.confines_pods = options.args.process_isolation != "none";
  SPILLWAY_TRY(setup, make_node_setup(options.args, options.name, machine.memory));
  setup.agent.node_ips = options.ips;
  if (const Outcome checked = agent::check_addresses(setup.agent, machine); !checked) {
    return Error{ErrorCode::kInvalid, checked.error().message, "--node-ip"};
  }
  if (!options.ips.empty() && !is_any_address(options.ips.front())) machine.internal_ip = options.ips.front();
  host::set_blind_zones(*node.slice, setup.agent.eviction);
  SPILLWAY_TRY_VOID(check_reserved_cgroups(*node.slice, agent::enforced_limits(machine, setup.agent)));
  return NodeFacts{std::move(machine), std::move(setup)};
}

/// Its server, if it has one, and the configuration that says so.
Outcome open_server(Process& process, const NodePartOptions& options, NodeFacts& facts, RunningNode& node) {
  agent::AgentOptions& agent_options = facts.setup.agent;
  agent_options.daemon_port = 0;
  const bool serves = facts.setup.configuration.find("enableServer")->if_bool().value_or(true);
  if (options.client_authority_pem && serves) {
    std::string authority_pem = *options.client_authority_pem;
    if (const std::string& file = facts.setup.gate.client_authority_file; !file.empty()) {
      SPILLWAY_TRY(given, read_file(file));
      authority_pem = std::move(given);
    }
    SPILLWAY_TRY(server, NodeServer::create(process, *node.transport,
                                            {.node_name = options.name,
                                             .state_dir = options.state_dir,
                                             .address = facts.machine.internal_ip,
                                             .port = options.port.value_or(configured_port(facts.setup.configuration)),
                                             .gate = facts.setup.gate,
                                             .client_authority_pem = std::move(authority_pem)}));
    node.server = std::move(server);
    agent_options.daemon_port = node.server->port();
  }
  node.configuration = std::move(facts.setup.configuration);
  node.configuration["enableServer"] = node.server != nullptr;
  node.configuration["port"] = agent_options.daemon_port;
  return {};
}

/// What carries the agent's commands out, and what reacts before the agent does.
Outcome open_machine(Process& process, const NodePartOptions& options, const NodeFacts& facts, RunningNode& node) {
  runtime::Loop& loop = process.loop();
  const agent::AgentOptions& agent_options = facts.setup.agent;
  node.host_events = std::make_unique<HostEvents>();
  node.device_events = std::make_unique<DeviceEvents>();
  SPILLWAY_TRY(journal, host::JournalFile::open(options.state_dir + "/journal.jsonl", process.log()));
  node.journal = std::move(journal);
  using Isolation = host::ProcessRuntimeOptions::Isolation;
  if (!facts.machine.confines_pods) {
    process.log().warning(
        "pods are not confined (--process-isolation=none): they are root on this machine and read its keys",
        {{"node", node.name}});
  }
  SPILLWAY_TRY(runtime, host::ProcessRuntime::create(
                            loop, *node.slice, *node.host_events, process.log(),
                            {.state_dir = options.state_dir,
                             .logs = {.file_max = agent_options.container_log_max,
                                      .files_max = static_cast<int>(agent_options.container_log_files_max)},
                             .pressure = agent_options.pressure_stats,
                             .isolation = facts.machine.confines_pods ? Isolation::kNamespaces : Isolation::kNone,
                             .hidden = options.hidden}));
  node.runtime = std::move(runtime);
  host::ProcessRuntime& pods = *node.runtime;
  SPILLWAY_TRY(reaction, host::MemoryReaction::create(
                             loop, *node.slice,
                             {.receiver = *node.host_events,
                              .find_target = [&pods](const std::string& uid) { return pods.find_target(uid); },
                              .journal = node.journal.get(),
                              .memory_watch = agent_options.eviction.memory_watch},
                             process.log()));
  node.reaction = std::move(reaction);
  host::MemoryReaction& reacts = *node.reaction;
  pods.listen([&reacts] { reacts.report(); }, [&reacts] { reacts.refresh_targets(); });
  auto plugins =
      host::DevicePlugins::create(loop, options.state_dir + "/device-plugins", *node.device_events, process.log());
  if (plugins) {
    node.plugins = std::move(*plugins);
  } else {
    process.log().warning("device plugins cannot register", {{"node", node.name}, {"error", plugins.error().text()}});
  }
  return {};
}

/// The agent, with what an earlier process of this node wrote down.
Outcome make_agent(Process& process, const NodePartOptions& options, NodeFacts facts, RunningNode& node) {
  SPILLWAY_TRY(history, node.journal->read());
  const auto saved = [&](std::string_view file) -> std::optional<std::string> {
    auto text = read_file(fmt::format("{}/{}", options.state_dir, file));
    return text ? std::optional(*std::move(text)) : std::nullopt;
  };
  const agent::Checkpoints checkpoints{.devices = node.plugins ? node.plugins->checkpoint() : std::nullopt,
                                       .cpus = saved(agent::kCpuStateFile),
                                       .memory = saved(agent::kMemoryStateFile)};
  // Without a record of devices nobody knows whether what the node had of them is still true.
  if (node.plugins && !checkpoints.devices) facts.setup.agent.extended_resources = agent::ExtendedResources::kForget;
  const auto at = static_cast<std::uint64_t>(process.loop().now().wall.time_since_epoch().count());
  SPILLWAY_TRY(agent, agent::Agent::create(std::move(facts.setup.agent), std::move(facts.machine),
                                           Rng(fnv1a64(options.name, at)),
                                           {process.log(), &process.metrics(), node.journal.get(), node.reaction.get()},
                                           history, checkpoints));
  node.agent = std::move(agent);
  return {};
}

/// From here on the agent hears of everything, and what it says is done.
void connect(Process& process, RunningNode& node) {
  node.driver = std::make_unique<runtime::EngineDriver>(process.loop(), *node.agent, *node.transport);
  node.host_events->pass_to([&node](agent::HostEvent event) {
    node.driver->step([&node, event = std::move(event)](Now now) { node.agent->on_host_event(event, now); });
  });
  node.device_events->pass_to([&node](agent::DeviceEvent event) {
    node.driver->step([&node, event = std::move(event)](Now now) { node.agent->on_device_event(event, now); });
  });
  node.last_step = process.loop().now().mono;
  node.driver->after_step([&process, &node] {
    node.last_step = process.loop().now().mono;
    for (agent::HostCommand& command : node.agent->take_host_commands()) node.runtime->execute(std::move(command));
    for (agent::DeviceCommand& command : node.agent->take_device_commands()) {
      if (node.plugins) node.plugins->execute(std::move(command));
    }
  });
}

/// Begins, with pages to look at and static pods to run.
void begin(Process& process, agent::MachineInfo machine, RunningNode& node) {
  runtime::Loop& loop = process.loop();
  if (host::protect_process() == host::MemoryLock::kNotAllowed)
    process.log().info("memory not locked: no right to (CAP_IPC_LOCK)");
  loop.at(loop.now().mono + kStartTakes, [] { host::give_back_start_up_pages(); });
  node.endpoint =
      std::make_unique<host::KubeletEndpoint>(loop, *node.runtime, node_pages(process, node, std::move(machine)));
  if (node.server) node.server->set_endpoint(node.endpoint.get());
  node.driver->start();
  const agent::AgentOptions& started = node.agent->options();
  if (started.static_pod_path.empty()) return;
  node.manifests = std::make_unique<host::ManifestFiles>(
      loop, host::ManifestFiles::Options{started.static_pod_path, started.file_check_frequency, parse_manifest},
      [&node](const agent::StaticManifests& read) {
        node.driver->step([&node, read](Now now) { node.agent->on_manifests(read, now); });
      });
}

Result<std::unique_ptr<host::NodeSlice>> make_slice(const NodePartOptions& options) {
  SPILLWAY_TRY(wishes, make_node_setup(options.args, options.name, options.args.memory.value_or(Bytes{})));
  host::ExtraControllers extra;
  if (wishes.agent.managers.pins()) extra.push_back(host::Controller::kCpuset);
  if (!options.args.memory && host::has_huge_pages()) extra.push_back(host::Controller::kHugetlb);
  SPILLWAY_TRY(mounts, host::read_cgroup_mounts(extra));
  SPILLWAY_TRY(root, host::find_writable_root(mounts));
  host::NodeSliceOptions wanted{.root = options.args.memory ? host::NodeRoot::kSlice : host::NodeRoot::kHost,
                                .instance = options.instance,
                                .node = options.name,
                                .memory = options.args.memory,
                                .pids_max = options.args.pids_max};
  SPILLWAY_TRY(slice, host::NodeSlice::create(std::move(root), std::move(wanted)));
  return std::make_unique<host::NodeSlice>(std::move(slice));
}

Outcome start(Process& process, const NodePartOptions& options, RunningNode& node) {
  SPILLWAY_TRY(facts, read_facts(node, options));
  SPILLWAY_TRY_VOID(open_server(process, options, facts, node));
  SPILLWAY_TRY_VOID(open_machine(process, options, facts, node));
  agent::MachineInfo machine = facts.machine;
  SPILLWAY_TRY_VOID(make_agent(process, options, std::move(facts), node));
  connect(process, node);
  begin(process, std::move(machine), node);
  return {};
}

}  // namespace

Result<std::unique_ptr<RunningNode>> start_node(Process& process, const NodePartOptions& options,
                                                std::unique_ptr<client::Transport> transport) {
  SPILLWAY_TRY_VOID(make_directory(options.state_dir));
  SPILLWAY_TRY(slice, make_slice(options));
  auto node = std::make_unique<RunningNode>();
  node->name = options.name;
  node->transport = std::move(transport);
  node->slice = std::move(slice);
  if (const Outcome started = start(process, options, *node); !started) {
    const std::unique_ptr<host::NodeSlice> made = std::move(node->slice);
    node->reaction.reset();
    node->runtime.reset();
    ignored(made->remove(), "the first error is the one to report");
    return started.error();
  }
  return node;
}

}  // namespace spillway::apps
