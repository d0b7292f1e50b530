#include "apps/node/node_part.h"

#include "agent/devices/pinning_checkpoint.h"
#include "agent/node/allocatable.h"
#include "agent/node/allocatable_enforcement.h"
#include "agent/node/node_object.h"
#include "agent/serving/scrape.h"
#include "api/codec/codec.h"
#include "api/text/duration.h"
#include "apps/node/node_options.h"
#include "apps/process/process_metrics.h"
#include "host/cgroup/reserved_cgroup.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/resident_memory.h"
#include "host/observation/machine_info.h"
#include "host/reaction/memory_gauge.h"
#include "yaml/yaml_document.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kShutdownGrace = seconds(2);
constexpr Duration kStartTakes = seconds(10);  // by then it has registered and runs what it found
constexpr Duration kStuckAfter = minutes(5);   // as the kubelet's /healthz

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

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

std::string pod_list(const agent::Agent& agent) {
  api::Json items = api::Json::array();
  for (const api::Pod& pod : agent.pods()) items.if_array()->push_back(api::encode(pod));
  return api::to_text(api::Json::object(
      {{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", api::Json::object()}, {"items", std::move(items)}}));
}

Result<std::int32_t> choose_attempt(const agent::Agent& agent, const api::PodKey& key, const std::string& container,
                                    agent::LogInstance wanted) {
  for (const api::Pod& pod : agent.pods()) {
    if (pod.key() != key) continue;
    SPILLWAY_TRY(id, agent::choose_log(pod, container, wanted));
    if (const auto attempt = agent::attempt_of(id)) return *attempt;
    return make_error(ErrorCode::kInternalError, "\"{}\" is no container of this agent", id);
  }
  return make_error(ErrorCode::kNotFound, "pod \"{}\" does not exist", key.text());
}

/// Names a family, no address.
bool is_any_address(const std::string& ip) {
  return ip == "0.0.0.0" || ip == "::";
}

}  // namespace

NodePart::NodePart(Process& process, std::string name, host::NodeSlice slice,
                   std::unique_ptr<client::Transport> transport)
    : process_(process), name_(std::move(name)), slice_(std::move(slice)), transport_(std::move(transport)) {}

NodePart::~NodePart() = default;

Result<std::unique_ptr<NodePart>> NodePart::create(Process& process, NodePartOptions options,
                                                   std::unique_ptr<client::Transport> transport) {
  SPILLWAY_TRY_VOID(make_directory(options.state_dir));
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
  std::unique_ptr<NodePart> part(  // NOLINT: private constructor
      new NodePart(process, options.name, std::move(slice), std::move(transport)));
  if (const Outcome started = part->start_agent(options); !started) {
    part->runtime_.reset();
    ignored(part->slice_.remove(), "the first error is the one to report");
    return started.error();
  }
  return part;
}

Outcome NodePart::start_agent(const NodePartOptions& options) {
  runtime::Loop& loop = process_.loop();
  SPILLWAY_TRY(machine, host::read_machine_info(slice_, options.state_dir));
  machine.hostname = options.name;  // as the kubelet's --hostname-override: several nodes share this machine
  SPILLWAY_TRY(setup, make_node_setup(options.args, options.name, machine.memory));
  agent::AgentOptions agent_options = std::move(setup.agent);
  agent_options.node_ips = options.ips;
  if (const Outcome checked = agent::check_addresses(agent_options, machine); !checked) {
    return Error{ErrorCode::kInvalid, checked.error().message, "--node-ip"};
  }
  if (!options.ips.empty() && !is_any_address(options.ips.front())) machine.internal_ip = options.ips.front();
  host::set_blind_zones(slice_, agent_options.eviction);
  SPILLWAY_TRY_VOID(check_reserved_cgroups(slice_, agent::enforced_limits(machine, agent_options)));
  agent_options.daemon_port = 0;
  const bool serves = setup.configuration.find("enableServer")->if_bool().value_or(true);
  if (options.client_authority_pem && serves) {
    std::string authority_pem = *options.client_authority_pem;
    if (const std::string& file = setup.gate.client_authority_file; !file.empty()) {
      SPILLWAY_TRY(given, read_file(file));
      authority_pem = std::move(given);
    }
    SPILLWAY_TRY(server, NodeServer::create(process_, *transport_,
                                            {.node_name = options.name,
                                             .state_dir = options.state_dir,
                                             .address = machine.internal_ip,
                                             .port = options.port.value_or(configured_port(setup.configuration)),
                                             .gate = setup.gate,
                                             .client_authority_pem = std::move(authority_pem)}));
    server_ = std::move(server);
    agent_options.daemon_port = server_->port();
  }
  configuration_ = std::move(setup.configuration);
  configuration_["enableServer"] = server_ != nullptr;
  configuration_["port"] = agent_options.daemon_port;
  SPILLWAY_TRY(journal, host::JournalFile::open(options.state_dir + "/journal.jsonl", process_.log()));
  journal_ = std::move(journal);
  SPILLWAY_TRY(history, journal_->read());
  using Isolation = host::ProcessRuntimeOptions::Isolation;
  machine.confines_pods = options.args.process_isolation != "none";
  if (!machine.confines_pods) {
    process_.log().warning(
        "pods are not confined (--process-isolation=none): they are root on this machine and read its keys",
        {{"node", name_}});
  }
  SPILLWAY_TRY(runtime, host::ProcessRuntime::create(
                            loop, slice_, *this, process_.log(),
                            {.state_dir = options.state_dir,
                             .logs = {.file_max = agent_options.container_log_max,
                                      .files_max = static_cast<int>(agent_options.container_log_files_max)},
                             .pressure = agent_options.pressure_stats,
                             .isolation = machine.confines_pods ? Isolation::kNamespaces : Isolation::kNone,
                             .hidden = options.hidden}));
  runtime_ = std::move(runtime);
  SPILLWAY_TRY(reaction, host::MemoryReaction::create(
                             loop, slice_,
                             {.receiver = *this,
                              .find_target = [this](const std::string& uid) { return runtime_->find_target(uid); },
                              .journal = journal_.get(),
                              .memory_watch = agent_options.eviction.memory_watch},
                             process_.log()));
  reaction_ = std::move(reaction);
  if (host::protect_process() == host::MemoryLock::kNotAllowed)
    process_.log().info("memory not locked: no right to (CAP_IPC_LOCK)");
  loop.at(loop.now().mono + kStartTakes, [] { host::give_back_start_up_pages(); });
  runtime_->listen([this] { reaction_->report(); }, [this] { reaction_->refresh_targets(); });
  const Rng rng(fnv1a64(options.name, static_cast<std::uint64_t>(loop.now().wall.time_since_epoch().count())));
  auto plugins = host::DevicePlugins::create(loop, options.state_dir + "/device-plugins", *this, process_.log());
  if (plugins) {
    plugins_ = std::move(*plugins);
  } else {
    process_.log().warning("device plugins cannot register", {{"node", name_}, {"error", plugins.error().text()}});
  }
  agent::MachineInfo described = machine;
  const auto saved = [&](std::string_view file) -> std::optional<std::string> {
    auto text = read_file(fmt::format("{}/{}", options.state_dir, file));
    return text ? std::optional(*std::move(text)) : std::nullopt;
  };
  // Without a record of devices nobody knows whether what the node had of them is still true.
  if (plugins_ && !plugins_->checkpoint()) agent_options.extended_resources = agent::ExtendedResources::kForget;
  const agent::Checkpoints checkpoints{.devices = plugins_ ? plugins_->checkpoint() : std::nullopt,
                                       .cpus = saved(agent::kCpuStateFile),
                                       .memory = saved(agent::kMemoryStateFile)};
  SPILLWAY_TRY(agent, agent::Agent::create(std::move(agent_options), std::move(machine), rng,
                                           {process_.log(), &process_.metrics(), journal_.get(), reaction_.get()},
                                           history, checkpoints));
  agent_ = std::move(agent);
  driver_ = std::make_unique<runtime::EngineDriver>(loop, *agent_, *transport_);
  last_step_ = loop.now().mono;
  driver_->after_step([this] {
    last_step_ = process_.loop().now().mono;
    for (agent::HostCommand& command : agent_->take_host_commands()) runtime_->execute(std::move(command));
    for (agent::DeviceCommand& command : agent_->take_device_commands()) {
      if (plugins_) plugins_->execute(std::move(command));
    }
  });
  endpoint_ = std::make_unique<host::KubeletEndpoint>(loop, *runtime_, endpoint_options(std::move(described)));
  if (server_) server_->set_endpoint(endpoint_.get());
  driver_->start();
  if (const agent::AgentOptions& started = agent_->options(); !started.static_pod_path.empty()) {
    manifests_ = std::make_unique<host::ManifestFiles>(
        loop, host::ManifestFiles::Options{started.static_pod_path, started.file_check_frequency, parse_manifest},
        [this](const agent::StaticManifests& read) {
          driver_->step([this, read](Now now) { agent_->on_manifests(read, now); });
        });
  }
  return {};
}

/// The pages of the node's server.
host::KubeletEndpoint::Options NodePart::endpoint_options(agent::MachineInfo machine) {
  const std::string json = "application/json";
  const std::string prometheus = "text/plain; version=0.0.4; charset=utf-8";
  host::KubeletEndpoint::Options options;
  options.pages["/pods"] = {json, [this] { return pod_list(*agent_); }};
  options.pages["/configz"] = {json,
                               [this] { return api::to_text(api::Json::object({{"kubeletconfig", configuration_}})); }};
  options.pages["/debug/spillway"] = {json, [this] { return api::to_text(debug_state()); }};
  options.pages["/debug/spillway/decisions"] = {
      json, [this] { return api::to_text(agent_->decisions(process_.loop().now())); }};
  options.pages["/metrics"] = {
      prometheus, [this] {
        const auto summary = agent_->last_summary();
        const agent::KubeletFacts facts{
            .node_name = name_,
            .cgroup_version = slice_.measured().version() == host::CgroupVersion::kV1 ? 1 : 2,
            .registered = agent_->registered(),
            .registration_seconds = agent_->registration_seconds(),
            .ages = summary ? agent::ages_of(*summary, process_.loop().now().wall) : std::vector<agent::StatsAge>()};
        return process_.metrics().text() + agent::kubelet_metrics(facts, agent_->pods()) + process_metrics();
      }};
  options.pages["/metrics/resource"] = {
      prometheus, [this] { return agent::resource_metrics(agent_->last_summary().get(), agent_->pods()); }};
  options.pages["/metrics/cadvisor"] = {prometheus, [this, machine = std::move(machine)] {
                                          return agent::cadvisor_metrics(agent_->last_summary().get(), agent_->pods(),
                                                                         machine);
                                        }};
  options.pages["/metrics/probes"] = {prometheus, [] { return std::string(); }};  // nothing is probed here
  options.pages["/metrics/slis"] = {prometheus, [this] {
                                      std::vector<agent::CheckFact> facts;
                                      for (const host::HealthCheck& each : endpoint_->checks())
                                        facts.push_back({each.name, !each.problem});
                                      return agent::health_metrics(facts);
                                    }};
  options.choose_log = [this](const api::PodKey& pod, const std::string& container, agent::LogInstance wanted) {
    return choose_attempt(*agent_, pod, container, wanted);
  };
  options.health = [this] {
    return std::vector<host::HealthCheck>{{"syncloop", syncloop_problem()}, {"device-plugin", plugin_problem()}};
  };
  return options;
}

api::Json NodePart::debug_state() const {
  const Now now = process_.loop().now();
  api::Json state = agent_->state(now);
  state["decisions"] = agent_->decisions(now);
  state["loop"] = api::Json::object({{"lastStepAgeSeconds", in_seconds(now.mono - last_step_)}});
  state["reaction"] = api::Json::object({{"looks", reaction_->looks()}});
  state["runtime"] = api::Json::object({{"pods", static_cast<std::uint64_t>(runtime_->pods().size())}});
  if (server_) {
    state["requestGate"] =
        api::Json::object({{"waiting", static_cast<std::uint64_t>(server_->gate().waiting())},
                           {"remembered", static_cast<std::uint64_t>(server_->gate().remembered())}});
  }
  return state;
}

/// The agent looks at its node at least every few seconds: if it does not, it is stuck.
std::optional<std::string> NodePart::syncloop_problem() const {
  const Duration age = process_.loop().now().mono - last_step_;
  if (age <= kStuckAfter) return std::nullopt;
  return fmt::format("sync loop did nothing for {}", api::format_duration(age));
}

std::optional<std::string> NodePart::plugin_problem() const {
  if (plugins_) return std::nullopt;
  return "device plugin registration gRPC server failed and no device plugins can register";
}

void NodePart::on_host_event(agent::HostEvent event) {
  driver_->step([this, event = std::move(event)](Now now) { agent_->on_host_event(event, now); });
}

void NodePart::on_device_event(agent::DeviceEvent event) {
  driver_->step([this, event = std::move(event)](Now now) { agent_->on_device_event(event, now); });
}

/// If pods are to be ended gracefully, that comes first; a second signal ends the process at once.
void NodePart::stop(runtime::Loop::Task done) {
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  const auto stop_soon = [this, finish](Now) {
    process_.loop().post([this, finish] { stop_now(std::move(*finish)); });
  };
  driver_->step([this, stop_soon](Now now) {
    if (!agent_->shut_down(stop_soon, now)) stop_soon(now);
  });
}

void NodePart::stop_now(runtime::Loop::Task done) {
  runtime_->listen({}, {});
  manifests_.reset();
  plugins_.reset();
  driver_->stop();
  reaction_.reset();
  if (server_) server_->set_endpoint(nullptr);
  // std::function wants something it can copy.
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  runtime_->shutdown(kShutdownGrace, [this, finish] {
    process_.loop().post([this, finish] {
      endpoint_.reset();
      runtime_.reset();
      if (const Outcome removed = slice_.remove(); !removed) {
        process_.log().warning("cgroup was not removed", {{"node", name_}, {"error", removed.error().text()}});
      }
      if (!server_) return (*finish)();
      server_->stop([finish] { (*finish)(); });
    });
  });
}

}  // namespace spillway::apps
