#include "agent/agent.h"

#include "agent/containers/dns_config.h"
#include "agent/contract/context.h"
#include "agent/contract/decision_log.h"
#include "agent/contract/stats_age.h"
#include "agent/devices/device_manager.h"
#include "agent/devices/resource_managers.h"
#include "agent/eviction/eviction_engine.h"
#include "agent/eviction/pass_config.h"
#include "agent/garbage/container_gc_engine.h"
#include "agent/node/allocatable.h"
#include "agent/node/allocatable_enforcement.h"
#include "agent/node/lease_engine.h"
#include "agent/node/node_software.h"
#include "agent/node/node_status_engine.h"
#include "agent/node/shutdown_engine.h"
#include "agent/pods/pod_workers.h"
#include "agent/recording/eviction_recorder.h"
#include "agent/static_pods/static_pods.h"
#include "agent/volumes/pod_volumes.h"
#include "client/informer.h"

#include "recording/sink.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kComponent = "kubelet";
constexpr int kRetries = 10;  // requests answered with Retry-After are repeated this often
/// Calls of the heartbeat client have ids above it.
constexpr client::CallId kHeartbeatIds = client::CallId{1} << 62U;
/// Calls of the client for events have ids between these.
constexpr client::CallId kEventIds = client::CallId{1} << 61U;

/// The sysctls that pods may set: those that are safe with this kernel, and those that the operator allows. kInvalid: a
/// pattern of the operator is malformed.
Result<admission::SysctlAllowlist> allowed_sysctls(const AgentOptions& options, const MachineInfo& machine) {
  std::vector<std::string> patterns = admission::safe_sysctls(machine.kernel_version);
  patterns.insert(patterns.end(), options.allowed_unsafe_sysctls.begin(), options.allowed_unsafe_sysctls.end());
  Result<admission::SysctlAllowlist> list = admission::SysctlAllowlist::parse(patterns);
  if (!list) return invalid("allowedUnsafeSysctls", "{}", list.error().message);
  return list;
}

bool is_ready(const api::Node& node) {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  return ready != nullptr && ready->status == "True";
}

}  // namespace

/// Construction order is dependency order; references into it stay valid because it never moves.
struct Agent::Parts {
  Parts(AgentOptions given, MachineInfo info, Rng rng, AgentSinks to, eviction::PassConfig config,
        api::ResourceList kept, admission::SysctlAllowlist allowed, std::span<const JournalEntry> history,
        const Checkpoints& checkpoints, Pinning pinning, ResourceBooks books)
      : options(std::move(given)),
        machine(std::move(info)),
        sinks(std::move(to)),
        reservation(std::move(kept)),
        allocatable(own_allocatable(options, machine, reservation)),
        sysctls(std::move(allowed)),
        name("agent-" + options.node_name),
        api("spillway-agent", rng.fork("api"), {.retries_max = kRetries}),
        heartbeats("spillway-agent", rng.fork("heartbeats"),
                   {.call_timeout = std::min(options.status_update_frequency, options.lease_duration),
                    .retries_max = kRetries,
                    .ids_above = kHeartbeatIds}),
        event_calls("spillway-agent", rng.fork("event-calls"),
                    {.retries_max = kRetries,
                     .write_rate = client::ApiClient::Rate{options.events_per_second, options.events_burst},
                     .ids_above = kEventIds}),
        events(event_calls, rng.fork("events"), std::string(kComponent), options.node_name),
        context{options, machine, api, heartbeats, events, sinks.log, host_commands},
        nodes(api, client::object_path("v1", "nodes", {}),
              "fieldSelector=" + api::percent_encode("metadata.name=" + options.node_name)),
        pods(api, client::object_path("v1", "pods", {}),
             "fieldSelector=" + api::percent_encode("spec.nodeName=" + options.node_name)),
        devices(context, checkpoints.devices, sinks.metrics),
        managers(context, devices, std::move(pinning)),
        recorder(sinks.recording == nullptr ? nullptr
                                            : std::make_unique<EvictionRecorder>(
                                                  *sinks.recording, RecordedNode{.name = options.node_name,
                                                                                 .program = "agent",
                                                                                 .acts = true,
                                                                                 .reacts = sinks.reaction != nullptr,
                                                                                 .memory = machine.memory,
                                                                                 .options = options.eviction})),
        decisions(sinks.journal, history),
        decided_before(history.begin(), history.end()),
        volumes(context, rng.fork("volumes"), allocatable),
        workers(
            context, rng.fork("probes"), managers, volumes, [this] { return situation(); }, history, decisions,
            std::move(books), sinks.metrics),
        static_pods(context, workers, [this] { return nodes.cache().find(options.node_name); }),
        eviction(context, std::move(config), workers, decisions, sinks.metrics, sinks.reaction, recorder.get()),
        status(
            context, rng.fork("node-status"), [this] { return nodes.cache().find(options.node_name); },
            [this] { return facts(); }),
        lease({options.node_name, options.lease_duration, context.heartbeat_query()}, heartbeats, sinks.log,
              rng.fork("lease")),
        enforcement(context, enforced_limits(machine, options)),
        container_gc(context, [this] { return garbage_scope(); }),
        shutdown(context, workers, sinks.metrics, [this](Now now) { status.report_soon(now); }) {
    if (machine.confines_pods || machine.runs_images) {
      services.emplace(api, client::object_path("v1", "services", {}));
      workers.set_services([this] { return known_services(); });
    }
    pods.cache().listen({[this](const auto& before, const auto& after, Now now) {
      workers.on_pod(before, after, now);
      static_pods.on_pod(before, after, now);
      eviction.on_pods_changed(now);
    }});
    nodes.cache().listen({[this](const auto& before, const auto& after, Now now) {
      if (!stopping && before && after && is_ready(*before) && !is_ready(*after)) keep_recording("not-ready");
      after ? status.on_node(*after, now) : status.on_node_deleted(now);
      if (after) static_pods.on_node_known(now);
    }});
    volumes.use_node([this] {
      const auto known = nodes.cache().find(options.node_name);
      return known ? known->metadata : initial_node(options, machine).metadata;
    });
    volumes.when_ready([this](const std::string& uid, Now now) { workers.on_volumes_ready(uid, now); });
    workers.when_forgotten([this](const std::string& uid, Now now) {
      container_gc.forget(uid);
      static_pods.on_forgotten(uid, now);
    });
    workers.when_finished([this](const std::string& uid, Now now) {
      managers.release(uid);
      eviction.on_pod_finished(uid, now);
      shutdown.on_pod_finished(uid, now);
    });
    devices.when_changed([this](Now now) { status.report_soon(now); });
    devices.when_failed([this](const std::string& uid, const admission::AllocationFailure& why, Now now) {
      workers.reject_admitted(uid, admission::refusal_of(why), now);
    });
    if (sinks.metrics != nullptr) {
      lease_failures = sinks.metrics->counter("spillway_lease_repeated_failures_total",
                                              "Lease writes that failed after another one had failed in the same run");
      status_failures = sinks.metrics->counter("spillway_node_status_repeated_failures_total",
                                               "Tries to report the node's status that failed after another one had");
    }
    status.when_registered([this](Now now) {
      if (!registration_seconds) registration_seconds = in_seconds(now.mono - started);
      if (options.status_profile != StatusProfile::kLeases) return;
      lease_elsewhere ? lease_elsewhere() : lease.on_node_registered(now);
    });
    lease.when_failing_repeatedly([this] { lease_failures.add(); });
    status.when_failing_repeatedly([this] { status_failures.add(); });
    eviction.when_conditions_change([this](Now now) { status.report_soon(now); });
  }

  /// The node in the form that admission needs: its object, with the allocatable resources that the agent itself
  /// computed.
  admission::NodeSituation situation() {
    const auto known = nodes.cache().find(options.node_name);
    auto node = std::make_shared<api::Node>();
    node->metadata = known ? known->metadata : initial_node(options, machine).metadata;
    if (known) node->spec.taints = known->spec.taints;
    set_features(*node, runtime.supplemental_groups_policy);
    node->status.allocatable = allocatable;
    for (const auto& [resource, amount] : devices.offered().allocatable) {
      node->status.allocatable.insert_or_assign(resource, amount);
    }
    admission::NodeSituation now{.node = std::move(node),
                                 .operating_system = machine.operating_system,
                                 .conditions = {},
                                 .sysctls = sysctls,
                                 .shared_namespaces = machine.shared_namespaces,
                                 .network_on_request = machine.network_on_request,
                                 .app_armor_error = machine.app_armor_error,
                                 .shutting_down = shutdown.is_active(),
                                 .features = {},
                                 .declared_features = declared_features(),
                                 .allocate = [this](const api::Pod& pod) { return managers.allocate(pod); },
                                 .devices_in_use = [this](const api::Pod& pod) { return devices.in_use(pod); }};
    for (const eviction::Condition each : eviction.conditions().list()) now.conditions.push_back(to_string(each));
    return now;
  }

  NodeFacts facts() const {
    return {.reservation = reservation,
            .devices = devices.offered(),
            .pressure = eviction.conditions(),
            .not_ready = not_ready(),
            .images = runtime.images,
            .runtime_handlers = runtime.handlers,
            .supplemental_groups_policy = runtime.supplemental_groups_policy};
  }

  /// Protects the recorded events before an action from being overwritten.
  void keep_recording(std::string_view why) const {
    if (sinks.recording != nullptr) sinks.recording->keep(why);
  }

  /// No pod counts as deleted before every source of pods has reported.
  ContainerGcScope garbage_scope() const {
    const bool ready = begun && knows_manifests();
    return {.remains =
                [this, ready](std::string_view uid) {
                  return ready ? workers.remains_of(std::string(uid)) : PodRemains::kKept;
                },
            .sources_ready = ready};
  }

  KnownServices known_services() const {
    KnownServices known{.all = {}, .read = services->synced(), .api_server = options.api_server};
    for (const auto& [key, service] : services->cache().all()) known.all.push_back(service);
    return known;
  }

  std::vector<std::string> not_ready() const {
    std::vector<std::string> errors;
    for (const std::string& each : {runtime.problem, runtime.network_problem}) {
      if (!each.empty()) errors.push_back(each);
    }
    if (shutdown.is_active() || stopping) errors.emplace_back(kShutdownNotReady);
    return errors;
  }

  /// Starts pods once the pods of all sources and the running containers are known.
  void begin_pods(Now now) {
    if (!knows_machine) return;
    for (std::optional<StaticManifests>& each : manifests)
      if (each) on_manifests(*std::exchange(each, std::nullopt), now);
    if (!synced || std::exchange(begun, true)) return;
    workers.start(pods.cache(), now);
    for (const JournalEntry& each : std::exchange(decided_before, {})) {
      if (each.eviction && !workers.is_finished(each.eviction->uid)) eviction.resume(each, now);
    }
    static_pods.on_synced(now);
    forget_holdings_of_others();
    eviction.on_pods_changed(now);
    end_unclaimed();
  }

  /// Heartbeats first: a late heartbeat makes the node unready.
  std::array<client::ApiClient*, 3> clients() { return {&heartbeats, &api, &event_calls}; }

  /// True once every source of static pods has been read.
  bool knows_manifests() const { return std::ranges::all_of(knows_source, std::identity()); }

  void on_manifests(const StaticManifests& read, Now now) {
    bool& knows = knows_source.at(static_cast<std::size_t>(read.source));
    knows = knows || read.problem.empty();
    static_pods.on_manifests(read, now);
    eviction.on_pods_changed(now);
    end_unclaimed();
  }

  void end_unclaimed() {
    if (begun && knows_manifests()) workers.end_unclaimed();
  }

  /// Frees the devices, processors and memory of pods that no source knows any more.
  void forget_holdings_of_others() {
    std::set<std::string, std::less<>> uids;
    for (const api::Pod& pod : workers.all()) {
      if (!workers.is_finished(pod.metadata.uid)) uids.insert(pod.metadata.uid);
    }
    managers.keep_only(uids);
    workers.keep_resources_of(uids);
  }

  AgentOptions options;
  MachineInfo machine;
  AgentSinks sinks;
  api::ResourceList reservation;
  api::ResourceList allocatable;
  admission::SysctlAllowlist sysctls;
  std::string name;
  RuntimeReported runtime;  // the last report
  std::vector<HostCommand> host_commands;
  client::ApiClient api;
  client::ApiClient heartbeats;
  client::ApiClient event_calls;  // has its own limit of requests per second
  client::EventRecorder events;
  AgentContext context;
  client::Informer<api::Node> nodes;
  client::Informer<api::Pod> pods;
  std::optional<client::Informer<api::Service>> services;  // for the environment of containers
  DeviceManager devices;
  ResourceManagers managers;
  std::unique_ptr<EvictionRecorder> recorder;  // null: no recording was requested
  DecisionLog decisions;
  std::vector<JournalEntry> decided_before;  // until pods begin
  PodVolumes volumes;
  PodWorkers workers;
  StaticPods static_pods;
  EvictionEngine eviction;
  NodeStatusEngine status;
  LeaseEngine lease;
  std::function<void()> lease_elsewhere;  // empty: `lease` renews the node's lease
  AllocatableEnforcement enforcement;
  ContainerGcEngine container_gc;
  ShutdownEngine shutdown;
  bool stopping = false;                     // report_stop() was called
  bool synced = false;                       // the pods in the API server have been listed
  bool begun = false;                        // running pods have been taken over
  bool knows_machine = !machine.keeps_pods;  // the runtime has reported what it still runs
  std::array<bool, kManifestSources> knows_source{};
  std::array<std::optional<StaticManifests>, kManifestSources> manifests;  // read before that
  Instant started;
  std::optional<double> registration_seconds;
  telemetry::Counter lease_failures;
  telemetry::Counter status_failures;
};

Result<std::unique_ptr<Agent>> Agent::create(AgentOptions options, MachineInfo machine, Rng rng, AgentSinks sinks,
                                             std::span<const JournalEntry> history, const Checkpoints& checkpoints) {
  if (options.node_name.empty()) return invalid("node_name", "must not be empty");
  SPILLWAY_TRY(config, pass_config_of(options.eviction, machine, options.node_name, sinks.log));
  SPILLWAY_TRY(reservation, node_reservation(capacity_of(machine, options), options, config.thresholds));
  SPILLWAY_TRY(sysctls, allowed_sysctls(options, machine));
  SPILLWAY_TRY(pinning, make_pinning(options, machine, reservation, checkpoints));
  SPILLWAY_TRY(allocated, ResourceBook::parse(kAllocatedPodsFile, checkpoints.allocated_pods));
  SPILLWAY_TRY(actuated, ResourceBook::parse(kActuatedPodsFile, checkpoints.actuated_pods));
  return std::unique_ptr<Agent>(new Agent(
      std::make_unique<Parts>(std::move(options), std::move(machine), rng, std::move(sinks), std::move(config),
                              std::move(reservation), std::move(sysctls), history, checkpoints, std::move(pinning),
                              ResourceBooks{std::move(allocated), std::move(actuated)})));
}

Agent::Agent(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Agent::~Agent() = default;

std::string_view Agent::name() const {
  return parts_->name;
}

void Agent::renew_lease_elsewhere(std::function<void()> on_registered) {
  parts_->lease_elsewhere = std::move(on_registered);
}

void Agent::listen(ObjectListener listener) {
  parts_->nodes.cache().listen(
      {[notify = std::move(listener.on_node)](const auto&, const auto& after, Now) { notify(after); }});
  parts_->pods.cache().listen(
      {[notify = std::move(listener.on_pod)](const auto& before, const auto& after, Now) { notify(before, after); }});
}

void Agent::start(Now now) {
  Parts& p = *parts_;
  p.started = now.mono;
  p.api.when_synced([&p](Now synced) {
    p.synced = true;
    p.begin_pods(synced);
  });
  p.devices.start(now);
  p.managers.start();
  p.api.start(now);
  p.heartbeats.start(now);
  p.event_calls.start(now);
  p.status.start(now);
  if (const auto problem = resolver_file_problem(p.options.dns)) {
    p.events.record(node_reference(p.options.node_name), client::EventType::kWarning, "CheckLimitsForResolvConf",
                    *problem, now);
  }
  if (p.options.status_profile == StatusProfile::kLeases && !p.lease_elsewhere) p.lease.start(now);
  p.enforcement.start(now);
  p.container_gc.start(now);
  const auto report_none = [&](ManifestSource source) {
    p.knows_source.at(static_cast<std::size_t>(source)) = true;
    p.static_pods.on_manifests({.files = {}, .problem = {}, .source = source}, now);
  };
  if (p.options.static_pod_path.empty()) report_none(ManifestSource::kFiles);
  if (p.options.static_pod_url.empty()) report_none(ManifestSource::kUrl);
  p.eviction.start(now);
}

void Agent::on_api_event(const client::ApiEvent& event, Now now) {
  const client::CallId id = std::visit([](const auto& each) { return each.id; }, event);
  client::ApiClient& client = id > kHeartbeatIds ? parts_->heartbeats
                              : id > kEventIds   ? parts_->event_calls
                                                 : parts_->api;
  client.on_api_event(event, now);
}

void Agent::on_wakeup(Now now) {
  for (client::ApiClient* each : parts_->clients()) each->on_wakeup(now);
}

std::optional<Instant> Agent::next_wakeup() const {
  std::optional<Instant> next;
  for (const client::ApiClient* each : parts_->clients()) {
    const std::optional<Instant> due = each->next_wakeup();
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

std::vector<client::ApiCommand> Agent::take_api_commands() {
  std::vector<client::ApiCommand> commands;
  for (client::ApiClient* each : parts_->clients()) {
    std::vector<client::ApiCommand> more = each->take_api_commands();
    if (commands.empty()) {
      commands = std::move(more);
    } else {
      std::ranges::move(more, std::back_inserter(commands));
    }
  }
  return commands;
}

void Agent::on_manifests(const StaticManifests& read, Now now) {
  Parts& p = *parts_;
  if (p.knows_machine) {
    p.on_manifests(read, now);
  } else {
    p.manifests.at(static_cast<std::size_t>(read.source)) = read;
  }
}

std::vector<PodParts> Agent::held_parts() const {
  std::vector<PodParts> pods;
  for (const api::Pod& pod : parts_->workers.all()) {
    const std::string& uid = pod.metadata.uid;
    if (parts_->workers.is_finished(uid)) continue;
    PodParts& made = pods.emplace_back(PodParts{pod.metadata.ns, pod.metadata.name, {}});
    const auto add = [&](const api::Container& container) {
      made.containers.push_back({container.name, parts_->managers.held_by(uid, container.name)});
    };
    for (const api::Container& each : pod.spec.init_containers)
      if (each.restart_policy == "Always") add(each);
    for (const api::Container& each : pod.spec.containers) add(each);
  }
  return pods;
}

HeldParts Agent::allocatable_parts() const {
  return parts_->managers.allocatable();
}

void Agent::on_device_event(const DeviceEvent& event, Now now) {
  parts_->devices.on_event(event, now);
}

std::vector<DeviceCommand> Agent::take_device_commands() {
  return parts_->devices.take_commands();
}

void Agent::on_host_event(const std::shared_ptr<const HostEvent>& event, Now now) {
  const auto* const seen = std::get_if<Observed>(event.get());
  if (seen == nullptr || !seen->summary) return on_host_event(*event, now);
  parts_->eviction.on_observed(*seen, now, {event, &*seen->summary});
}

void Agent::on_host_event(const HostEvent& event, Now now) {
  Parts& p = *parts_;

  struct Visitor {
    Parts& p;
    Now now;

    void operator()(const ContainerStarted& e) const {
      p.container_gc.on_started(e, now);
      p.workers.on_container_started(e, now);
    }

    void operator()(const ContainerStartFailed& e) const { p.workers.on_container_start_failed(e, now); }

    void operator()(const ContainerExited& e) const {
      if (e.oom_killed) p.keep_recording("oom-kill");
      p.container_gc.on_exited(e);
      p.workers.on_container_exited(e, now);
    }

    void operator()(const PodStopped& e) const { p.workers.on_pod_stopped(e, now); }

    void operator()(const Observed& e) const { p.eviction.on_observed(e, now); }

    void operator()(const PressureWake& e) const { p.eviction.on_pressure_wake(e, now); }

    void operator()(const Reacted& e) const { p.eviction.on_reacted(e, now); }

    void operator()(const Reclaimed& e) const { p.eviction.on_reclaimed(e, now); }

    void operator()(const Relieved& e) const { p.eviction.on_relieved(e, now); }

    void operator()(const GroupLimited& e) const { p.enforcement.on_limited(e, now); }

    void operator()(const PodResized& e) const { p.workers.on_resized(e, now); }

    void operator()(const HttpAnswered& e) const { p.workers.on_http_answered(e, now); }

    void operator()(const TcpTried& e) const { p.workers.on_tcp_tried(e, now); }

    void operator()(const GrpcAnswered& e) const { p.workers.on_grpc_answered(e, now); }

    void operator()(const VolumesSetUp& e) const { p.volumes.on_set_up(e, now); }

    void operator()(const VolumeFileRead& e) const { p.workers.on_volume_file_read(e, now); }

    void operator()(const RanInContainer& e) const { p.workers.on_ran(e, now); }

    void operator()(const SandboxRan& e) const { p.workers.on_sandbox_ran(e, now); }

    void operator()(const SandboxLost& e) const { p.workers.on_sandbox_lost(e, now); }

    void operator()(const RemainsListed& e) const { p.container_gc.on_listed(e, now); }

    void operator()(const PodNotice& e) const { p.workers.on_notice(e, now); }

    void operator()(const NodeNotice& e) const {
      p.context.events.record(node_reference(p.context.options.node_name), client::EventType::kWarning, e.reason,
                              e.message, now);
    }

    void operator()(const PodsFound& e) const {
      if (std::exchange(p.knows_machine, true)) return;
      p.workers.take_over(e);
      p.container_gc.on_found(e, now);
      p.begin_pods(now);
    }

    void operator()(const RuntimeReported& e) const {
      const bool changed = e.problem != p.runtime.problem || e.network_problem != p.runtime.network_problem ||
                           e.version != p.runtime.version || e.handlers != p.runtime.handlers ||
                           e.supplemental_groups_policy != p.runtime.supplemental_groups_policy;
      if (!e.version.empty()) p.machine.container_runtime_version = e.version;
      p.runtime = e;
      p.workers.know_handlers(e.handlers);
      if (changed) p.status.report_soon(now);
    }
  };

  std::visit(Visitor{p, now}, event);
}

bool Agent::shut_down(std::function<void(Now)> done, Now now) {
  return parts_->shutdown.begin(std::move(done), now);
}

void Agent::report_stop(std::function<void(Now)> done, Now now) {
  parts_->stopping = true;
  const auto once = std::make_shared<std::function<void(Now)>>(std::move(done));
  const auto finish = [once](Now then) {
    if (*once) std::exchange(*once, {})(then);
  };
  parts_->api.at(now.mono + kLastReportWait, finish);
  parts_->status.report_last(finish, now);
}

std::vector<HostCommand> Agent::take_host_commands() {
  std::vector<HostCommand> commands = parts_->workers.take_saves();
  if (commands.empty()) return std::exchange(parts_->host_commands, {});
  std::ranges::move(std::exchange(parts_->host_commands, {}), std::back_inserter(commands));
  return commands;
}

const AgentOptions& Agent::options() const {
  return parts_->options;
}

bool Agent::registered() const {
  return parts_->status.registered();
}

std::optional<double> Agent::registration_seconds() const {
  return parts_->registration_seconds;
}

eviction::ConditionSet Agent::conditions() const {
  return parts_->eviction.conditions();
}

std::shared_ptr<const api::Summary> Agent::last_summary() const {
  return parts_->eviction.last_summary();
}

api::Json Agent::decisions(Now now) const {
  return decision_list(parts_->options.node_name, parts_->eviction.current_decision(now), parts_->decisions.kept());
}

api::Json Agent::state(Now now) const {
  const Parts& p = *parts_;
  const auto client_state = [](const client::ApiClient& client) {
    return api::Json::object({{"inFlight", static_cast<std::uint64_t>(client.in_flight())},
                              {"synced", client.synced()},
                              {"waiting", static_cast<std::uint64_t>(client.waiting())}});
  };
  const auto cache_state = [now](const auto& informer) {
    return api::Json::object({{"heardAgeSeconds", age_of(informer.last_received(), now)},
                              {"lists", informer.lists()},
                              {"objects", static_cast<std::uint64_t>(informer.cache().size())},
                              {"undecodable", informer.undecodable()}});
  };
  const auto summary = p.eviction.last_summary();
  api::Json ages = api::Json::object();
  if (summary) {
    for (const StatsAge& each : ages_of(*summary, now.wall)) ages[each.part] = each.seconds;
  }
  api::Json state = p.workers.state();
  state["allocatable"] = p.enforcement.state();
  state["api"] = client_state(p.api);
  state["caches"] = api::Json::object({{"nodes", cache_state(p.nodes)}, {"pods", cache_state(p.pods)}});
  state["containerGarbage"] = p.container_gc.state();
  state["events"] =
      api::Json::object({{"dropped", p.events.dropped()}, {"waiting", static_cast<std::uint64_t>(p.events.waiting())}});
  state["eviction"] = p.eviction.state(now);
  state["heartbeats"] = client_state(p.heartbeats);
  state["lease"] = p.lease.state(now);
  state["managers"] = p.managers.state(now);
  state["node"] = p.status.state(now);
  state["shutdown"] = p.shutdown.state();
  state["staticPods"] = p.static_pods.state();
  state["statistics"] = api::Json::object({{"ageSeconds", std::move(ages)}});
  state["volumes"] = p.volumes.state();
  return state;
}

std::vector<api::Pod> Agent::pods() const {
  return parts_->workers.all();
}

}  // namespace spillway::agent
