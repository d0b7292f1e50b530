#include "sim/cluster.h"

#include "agent/contract/journal.h"
#include "api/text/identities.h"
#include "base/check.h"
#include "store/etcd/etcd_store.h"

#include <fmt/format.h>

#include <set>
#include <tuple>
#include <utility>

namespace spillway::sim {

namespace {

const api::UserInfo kAdministrator{
    "simulation", "", {std::string(api::kMastersGroup), std::string(api::kAuthenticatedGroup)}};

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

/// The user of an engine, with the rights that it has in any cluster.
api::UserInfo engine_user(std::string_view name) {
  return {std::string(name), "", {std::string(api::kAuthenticatedGroup)}};
}

api::UserInfo node_user(std::string_view node) {
  api::UserInfo user = engine_user(fmt::format("{}{}", api::kNodeUserPrefix, node));
  user.groups.emplace_back(api::kNodesGroup);
  return user;
}

/// Two messages of one write can get lost, each for the time-out of a call, and the third be slow.
Duration write_latency_max(const NetworkFaults& faults) {
  if (faults.lost_ppm == 0) return seconds(5);
  return 2 * client::ApiClient::Limits().call_timeout + faults.slow_max;
}

std::optional<ActAudit::Limit> limit_of(const std::optional<lifecycle::ActLimit>& limit) {
  if (!limit) return std::nullopt;
  return ActAudit::Limit{limit->acts, limit->window};
}

ActAudit::Limits act_limits(const ClusterOptions& options) {
  const lifecycle::BrakeConfig& brakes = options.controllers.brakes;
  const double rate = options.controllers.node_lifecycle.monitor.zones.node_eviction_rate;
  return {.node_eviction_rate = rate,
          .mark = limit_of(brakes.mark_not_ready.global),
          .mark_in_zone = limit_of(brakes.mark_not_ready.per_zone),
          .taint = limit_of(brakes.taint.global),
          .taint_in_zone = limit_of(brakes.taint.per_zone),
          .delete_pod = limit_of(brakes.delete_pod.global),
          .late_max = write_latency_max(options.faults) +
                      (options.etcd_replicas > 0 ? store::EtcdStore::kCallMax : Duration())};
}

std::string name_of_server(std::size_t server) {
  return fmt::format("server-{}", server);
}

/// Takes the answers to requests whose outcome does not matter.
class NullSink final : public api::ResponseSink {
 public:
  void on_response(api::Response) override {}

  void on_stream(api::Response) override {}

  [[nodiscard]] bool write(std::shared_ptr<const std::string>) override { return true; }

  void on_end() override {}
};

/// `metric_label`: of the eviction, a signal or the limit that is exceeded.
EvictionAudit::Cause cause_of(const std::string& metric_label) {
  if (metric_label.ends_with(".limit")) return EvictionAudit::Cause::kOwnLimit;
  const bool for_memory = metric_label.starts_with("memory.") || metric_label.starts_with("allocatableMemory.");
  return for_memory ? EvictionAudit::Cause::kMemory : EvictionAudit::Cause::kOtherShortage;
}

}  // namespace

Outcome check_agents(const agent::AgentOptions& options, const std::vector<MachineSpec>& machines) {
  std::set<std::tuple<Bytes, Bytes, Bytes, std::int64_t>> sizes;
  VirtualTime time;
  for (const MachineSpec& machine : machines) {
    if (!sizes.emplace(machine.memory, machine.disk, machine.swap, machine.cpu_milli).second) continue;
    const SimHost host(time, Rng(0), size_of(machine), {});
    agent::AgentOptions own = options;
    own.node_name = machine.name;
    const auto agent = agent::Agent::create(std::move(own), info_of(machine, host), Rng(0), {}, {});
    if (!agent) return invalid("node " + machine.name, "{}", agent.error().text());
  }
  return {};
}

agent::AgentOptions plain_agents() {
  agent::AgentOptions options;
  options.eviction.thresholds.hard = {{"memory.available", "64Mi"}};
  return options;
}

Cluster::Cluster(ClusterOptions options)
    : options_(std::move(options)),
      rng_(options_.seed),
      log_(options_.log),
      network_(time_, rng_.fork("network")),
      store_([this](std::move_only_function<void()> task) { time_.after(Duration::zero(), std::move(task)); }),
      flaky_store_(store_, time_, rng_.fork("store")),
      deaths_(time_, rng_.fork("deaths"),
              {.before_command = options_.death_ppm,
               .with_machine = options_.journal_death_ppm,
               .alone = options_.agent_death_ppm}),
      invariants_({.acts = act_limits(options_)}),
      world_(time_, invariants_),
      servers_(options_.servers) {
  network_.set_audit(&invariants_.watches());
  make_machines();
  options_.etcd_replicas > 0 ? begin_etcd() : world_.follow(store_);
  if (!options_.faults_wait) begin_faults();
  SPILLWAY_CHECK(etcd_.has_value() || options_.servers == 1);
  for (std::size_t server = 0; server < servers_.size(); ++server) restart_server(server);
  restart_controllers();
  restart_scheduler();
  began_ = true;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // Machines boot at different times.
    time_.after(microseconds(static_cast<std::int64_t>(rng_.below(5'000'000))), [this, i] { restart_node(i); });
  }
}

void Cluster::make_machines() {
  std::vector<MachineSpec> machines = std::move(options_.machines);
  if (machines.empty()) {
    for (std::int32_t i = 0; i < options_.nodes; ++i) {
      const std::string zone = fmt::format("zone-{}", i % options_.zones);
      machines.push_back({fmt::format("node-{:05}", i), {{std::string(kZoneLabel), zone}}, options_.node_memory});
    }
  }
  for (MachineSpec& machine : machines) {
    const auto zone = machine.labels.find(std::string(kZoneLabel));
    const std::string name = machine.name;
    auto reader = [this, node = nodes_.size()](const agent::JournalLine& line) {
      on_journal_line(node, line);
      if (journal_reader_) journal_reader_(node, line);
    };
    nodes_.push_back({name, zone == machine.labels.end() ? std::string() : zone->second, std::move(machine),
                      std::make_unique<SimJournal>(std::move(reader)), nullptr, 0});
  }
}

/// The audit needs the machine's state at the moment of the decision.
void Cluster::on_journal_line(std::size_t node, const agent::JournalLine& line) {
  const auto* const entry = std::get_if<agent::JournalEntry>(&line);
  if (entry == nullptr || !entry->eviction || entry->intent || !nodes_[node].parts) return;
  if (!nodes_[node].dies) {
    const ProcessDeaths::AgentDeath death = deaths_.draw_agent_death();
    nodes_[node].dies = death != ProcessDeaths::AgentDeath::kNone;
    nodes_[node].alone = death == ProcessDeaths::AgentDeath::kAlone;
  }
  const SimHost& host = *nodes_[node].parts->host;
  std::vector<EvictionAudit::Running> running;
  for (const auto& [uid, key] : host.running()) {
    const auto pod = world_.pods().find(key);
    if (pod == world_.pods().end() || pod->second.metadata.uid != uid || pod->second.metadata.deletion_timestamp)
      continue;
    if (pod->second.status.phase == "Running") running.push_back({&pod->second, host.resident_of_pod(uid)});
  }
  invariants_.evictions().on_decision(entry->eviction->uid, cause_of(entry->eviction->metric_label), running,
                                      time_.now());
}

Cluster::~Cluster() {
  for (Node& node : nodes_) node.parts.reset();
  crash_scheduler();
  crash_controllers();
  read_back_.reset();
  for (std::size_t server = 0; server < servers_.size(); ++server) network_.attach(nullptr, server);
  servers_.clear();
  retired_servers_.clear();
}

/// The world gets every write as it is committed; the servers get writes as etcd delivers them.
void Cluster::begin_etcd() {
  etcd_.emplace(time_, rng_.fork("etcd"), SimEtcdOptions{.replicas = options_.etcd_replicas, .faults = {}});
  etcd_->observe([this](std::span<const store::EtcdEvent> events) {
    std::vector<store::Change> changes;
    for (const store::EtcdEvent& event : events)
      changes.push_back({event.key, event.revision, event.create_revision, event.value, event.previous});
    world_.on_changes(changes);
  });
  if (options_.servers < 2) return;
  read_back_ = std::make_unique<ReadBack>(time_, rng_.fork("reader"), network_, options_.servers, invariants_);
  time_.after(seconds(5), [this] { read_back_->start(); });
}

std::unique_ptr<store::Store> Cluster::open_store(const std::string& server) {
  store::EtcdOptions options;
  options.seed = rng_.fork(fmt::format("store of {} {}", server, starts_)).next();
  options.log = log_;
  const auto post = [this](std::move_only_function<void()> task) { time_.after(Duration::zero(), std::move(task)); };
  return std::make_unique<CheckedStore>(
      std::make_unique<store::EtcdStore>(etcd_->connect(server), post, std::move(options)), etcd_->history(),
      acknowledged_, server,
      [this](const Violated& what, const std::string& text) { invariants_.violate(what, time_.now(), text); });
}

void Cluster::on_acting(std::size_t acting) {
  for (std::size_t other = 0; other < servers_.size(); ++other) {
    if (other == acting || !servers_[other] || !servers_[other]->is_acting()) continue;
    invariants_.violate(Property::kOneActingServer, time_.now(),
                        fmt::format("{} acts while {} does", name_of_server(acting), name_of_server(other)));
  }
}

void Cluster::cut_off_server(std::size_t server) {
  if (etcd_) etcd_->cut_off(name_of_server(server));
}

void Cluster::reach_server_again(std::size_t server) {
  if (etcd_) etcd_->reach_again(name_of_server(server));
}

void Cluster::run_for(Duration duration) {
  time_.run_until(time_.now().mono + duration);
}

void Cluster::begin_faults() {
  network_.set_faults(options_.faults);
  flaky_store_.set_faults(options_.store_faults);
  if (etcd_) etcd_->set_faults(options_.etcd_faults);
  deaths_.begin();
}

void Cluster::end_faults() {
  network_.set_faults({});
  flaky_store_.set_faults({});
  if (etcd_) etcd_->set_faults({});
  deaths_.end();
}

void Cluster::handle(api::Method method, std::string_view target, std::string body, std::string_view content_type) {
  const std::size_t place = servers_.size() == 1 ? 0 : rng_.below(servers_.size());
  SimServer* const server = servers_[place].get();
  if (server == nullptr) return;
  server->engine().handle({method, std::string(target), {{"content-type", std::string(content_type)}}, std::move(body)},
                          kAdministrator, std::make_shared<NullSink>(), time_.now());
  server->arm();
}

void Cluster::create(std::string_view collection_path, const api::Json& object) {
  handle(api::Method::kPost, collection_path, api::to_text(object));
}

void Cluster::remove(std::string_view path) {
  handle(api::Method::kDelete, path, {});
}

void Cluster::patch(std::string_view path, const api::Json& changes) {
  handle(api::Method::kPatch, path, api::to_text(changes), "application/merge-patch+json");
}

void Cluster::replace(std::string_view path, std::string_view pointer, const api::Json& value) {
  const api::Json step = api::Json::object({{"op", "replace"}, {"path", pointer}, {"value", value}});
  handle(api::Method::kPatch, path, api::to_text(api::Json::array({step})), "application/json-patch+json");
}

void Cluster::crash_server(std::size_t place) {
  if (!servers_[place]) return;
  invariants_.on_outage(true, time_.now());
  network_.attach(nullptr, place);
  auto server = std::move(servers_[place]);
  if (etcd_) return;  // the store was destroyed with the server
  server->stop();
  // The store may still complete its last writes.
  retired_servers_.push_back(std::move(server));
  time_.after(seconds(1), [this] { retired_servers_.erase(retired_servers_.begin()); });
}

void Cluster::restart_server(std::size_t place) {
  if (servers_[place]) return;
  if (began_) invariants_.on_outage(false, time_.now());
  const std::string name = name_of_server(place);
  const std::uint64_t seed = rng_.fork(fmt::format("server {}", ++starts_)).next();
  SimServer::Options options{.name = name, .seed = seed, .own_store = nullptr, .store = &flaky_store_};
  if (etcd_) options.own_store = open_store(name);
  options.on_acting = [this, place] { on_acting(place); };
  servers_[place] = std::make_unique<SimServer>(time_, metrics_, log_, std::move(options));
  SimServer* const server = servers_[place].get();
  server->start([this, place, server](const Outcome& ready) {
    if (ready) return network_.attach(&server->engine(), place);
    time_.after(Duration::zero(), [this, place, server] {  // as a process that could not begin
      if (servers_[place].get() != server) return;
      crash_server(place);
      time_.after(seconds(1), [this, place] { restart_server(place); });
    });
  });
}

Cluster::EngineParts Cluster::drive(std::unique_ptr<client::ApiEngine> engine, const std::string& endpoint,
                                    std::string_view user, std::function<void()> on_death) {
  EngineParts parts;
  parts.engine = std::move(engine);
  parts.transport = network_.connect(endpoint, engine_user(user));
  parts.driver = std::make_unique<SimDriver>(time_, *parts.engine, *parts.transport);
  parts.driver->before_command([this, on_death = std::move(on_death)] { return deaths_.lives_on(on_death); });
  parts.driver->start();
  return parts;
}

void Cluster::crash_controllers() {
  if (controllers_.engine) invariants_.on_outage(true, time_.now());
  controllers_.driver.reset();
  controllers_.transport.reset();
  controllers_.engine.reset();
}

void Cluster::restart_controllers() {
  if (controllers_.engine) return;
  ++starts_;
  if (began_) {
    invariants_.on_outage(false, time_.now());
    invariants_.on_controller_restart(time_.now());
  }
  controllers::ControllerSet::Options options = options_.controllers;
  options.enabled.batch = {.job = false, .cron_job = false, .ttl_after_finished = false};
  options.enabled.endpoints = {.endpoints = false, .endpoint_slices = false, .slice_mirroring = false};
  options.enabled.stateful_set = false;
  options.enabled.horizontal_autoscaler = false;  // the simulation has no metrics of pods
  options.daemon_history = false;
  controllers_ = drive(std::make_unique<controllers::ControllerSet>(
                           options, rng_.fork(fmt::format("controllers {}", starts_)), log_, metrics_),
                       "controller", api::kOwnControllersUser, [this] {
                         crash_controllers();
                         time_.after(deaths_.draw_absence(), [this] { restart_controllers(); });
                       });
}

void Cluster::crash_scheduler() {
  scheduler_.driver.reset();
  scheduler_.transport.reset();
  scheduler_.engine.reset();
}

void Cluster::restart_scheduler() {
  if (scheduler_.engine) return;
  scheduler_ =
      drive(std::make_unique<controllers::Scheduler>(controllers::Scheduler::Options{},
                                                     rng_.fork(fmt::format("scheduler {}", ++starts_)), log_, metrics_),
            "scheduler", api::kOwnSchedulerUser, [this] {
              crash_scheduler();
              time_.after(deaths_.draw_absence(), [this] { restart_scheduler(); });
            });
}

void Cluster::crash_node(std::size_t index) {
  nodes_[index].parts.reset();
}

void Cluster::restart_node(std::size_t index) {
  if (!nodes_[index].parts) begin_agent(index, nullptr);
}

void Cluster::restart_agent(std::size_t index, const agent::EvictionOptions& eviction) {
  Node& node = nodes_[index];
  node.eviction = eviction;
  if (node.parts) replace_agent(index);
}

void Cluster::replace_agent(std::size_t index) {
  Node& node = nodes_[index];
  std::unique_ptr<SimHost> machine = std::move(node.parts->host);
  node.parts.reset();
  for (const auto& [uid, key] : machine->running()) invariants_.evictions().on_return(uid, time_.now());
  begin_agent(index, std::move(machine));
}

void Cluster::begin_agent(std::size_t index, std::unique_ptr<SimHost> machine) {
  Node& node = nodes_[index];
  const Rng rng = rng_.fork(fmt::format("{} {}", node.name, ++node.starts));
  agent::AgentOptions options = options_.agent.value_or(plain_agents());
  if (node.eviction) options = with_evictions(std::move(options), *node.eviction);
  options.eviction.observe.interval_max = options_.observe_interval_max;
  node.parts = boot(time_, rng,
                    {.machine = node.machine,
                     .agent = std::move(options),
                     .sinks = {.log = log_,
                               .journal = node.journal.get(),
                               .recording = options_.recording ? options_.recording(node.name) : nullptr},
                     .history = node.journal->entries(),
                     .transport = network_.connect(node.name, node_user(node.name)),
                     .host = std::move(machine)});
  SimMachine& parts = *node.parts;
  node.dies = node.alone = false;
  jump_clock_of(index, Duration::zero());
  parts.driver->before_command([this, index] {
    const auto die = [this, index, start = nodes_[index].starts] {
      if (nodes_[index].starts == start) on_agent_death(index);  // otherwise another agent runs there already
    };
    if (!nodes_[index].dies) return deaths_.lives_on(die);
    time_.after(Duration::zero(), die);
    return false;
  });
  parts.driver->after_step([this, &node, &parts] {
    for (agent::HostCommand& command : parts.agent->take_host_commands()) {
      if (!parts.driver->may_execute()) return;
      if (const auto* start = std::get_if<agent::StartContainer>(&command)) {
        invariants_.on_start(node.name, start->uid, time_.now());
      }
      parts.host->execute(std::move(command));
    }
  });
  parts.driver->start();
}

void Cluster::on_agent_death(std::size_t node) {
  if (nodes_[node].alone && nodes_[node].parts) return replace_agent(node);
  crash_node(node);
  time_.after(deaths_.draw_absence(), [this, node] { restart_node(node); });
}

void Cluster::jump_clock_of(std::size_t index, Duration by) {
  Node& node = nodes_[index];
  node.clock_ahead += by;
  if (by != Duration::zero()) invariants_.on_clock_jump(node.name);
  if (!node.parts) return;
  node.parts->host->set_clock(node.clock_ahead);
  node.parts->driver->set_clock(node.clock_ahead);
}

void Cluster::partition_node(std::size_t node, Cut cut) {
  network_.partition(nodes_[node].name, cut);
}

void Cluster::heal_node(std::size_t node) {
  network_.heal(nodes_[node].name);
}

const SimHost* Cluster::host(std::size_t node) const {
  return nodes_[node].parts ? nodes_[node].parts->host.get() : nullptr;
}

const agent::Agent* Cluster::agent(std::size_t node) const {
  return nodes_[node].parts ? nodes_[node].parts->agent.get() : nullptr;
}

const controllers::ControllerSet* Cluster::controllers() const {
  return static_cast<const controllers::ControllerSet*>(controllers_.engine.get());
}

SimHost* Cluster::machine(std::size_t node) {
  return nodes_[node].parts ? nodes_[node].parts->host.get() : nullptr;
}

std::map<std::string, api::PodKey> Cluster::running_on(std::size_t node) const {
  const auto& parts = nodes_[node].parts;
  return parts ? parts->host->running() : std::map<std::string, api::PodKey>();
}

std::uint64_t Cluster::kernel_oom_kills() const {
  std::uint64_t kills = 0;
  for (const Node& node : nodes_) kills += node.parts ? node.parts->host->kernel_oom_kills() : 0;
  return kills;
}

}  // namespace spillway::sim
