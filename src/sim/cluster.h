// A whole cluster in one thread on virtual time: the product's API server, controllers, scheduler and agents over a
// simulated network, store and machines. All randomness is drawn from the seed. Thread: one.
#pragma once

#include "agent/agent.h"
#include "agent/contract/journal.h"
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "sim/etcd/checked_store.h"
#include "sim/etcd/sim_etcd.h"
#include "sim/flaky_store.h"
#include "sim/invariants.h"
#include "sim/process_deaths.h"
#include "sim/read_back.h"
#include "sim/sim_driver.h"
#include "sim/sim_host.h"
#include "sim/sim_journal.h"
#include "sim/sim_machine.h"
#include "sim/sim_network.h"
#include "sim/sim_server.h"
#include "sim/time/virtual_time.h"
#include "sim/world.h"
#include "store/memory_store.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include "recording/sink.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

/// The options of agents unless a scenario says otherwise: a hard threshold of 64Mi, nothing reserved.
agent::AgentOptions plain_agents();

/// Checks that an agent can be started with these options on each of the machines. kInvalid: names the first on which
/// it cannot.
Outcome check_agents(const agent::AgentOptions& options, const std::vector<MachineSpec>& machines);

struct ClusterOptions {
  std::uint64_t seed = 1;
  std::int32_t nodes = 3;
  std::int32_t zones = 1;
  Bytes node_memory = mebibytes(512);
  /// The machines, in place of `nodes`, `zones` and `node_memory`; empty: those decide.
  std::vector<MachineSpec> machines;
  /// The options of every agent, apart from its name and labels; nullopt: plain_agents().
  std::optional<agent::AgentOptions> agent;
  /// The longest time between two memory readings of an agent. Large clusters without memory hogs need none every
  /// second.
  Duration observe_interval_max = seconds(1);
  NetworkFaults faults;
  StoreFaults store_faults;
  /// Members of an etcd that all servers have as their store; 0: one server, whose store is in memory.
  std::size_t etcd_replicas = 0;
  std::size_t servers = 1;
  EtcdFaults etcd_faults;
  bool faults_wait = false;  // no faults before begin_faults()
  /// Commands before which the process that gave them ends: an agent with its machine, the controllers, the scheduler.
  /// It is back a few seconds later.
  std::uint32_t death_ppm = 0;
  /// Evictions that are written into a journal, after which the agent does nothing more: it ends with its machine.
  std::uint32_t journal_death_ppm = 0;
  /// Likewise, but the agent ends alone: its pods run on, and it is back at once.
  std::uint32_t agent_death_ppm = 0;
  controllers::ControllerSet::Options controllers;
  telemetry::Log log;  // the log of every engine
  /// The sink of an agent's recording; null, or a null result: none. The sink must outlive the cluster.
  std::function<recording::Sink*(const std::string& node)> recording;
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  VirtualTime& time() { return time_; }

  SimNetwork& network() { return network_; }

  Invariants& invariants() { return invariants_; }

  World& world() { return world_; }

  const World& world() const { return world_; }

  void run_for(Duration duration);

  /// Begins the faults of the options.
  void begin_faults();
  /// Ends the faults: from now on no message, write or process is lost.
  void end_faults();

  // Actions of an administrator; refusals of a server that is down or disagrees are ignored.
  void create(std::string_view collection_path, const api::Json& object);
  void remove(std::string_view path);
  /// A merge patch.
  void patch(std::string_view path, const api::Json& changes);
  /// Replaces the value at a JSON pointer in an object.
  void replace(std::string_view path, std::string_view pointer, const api::Json& value);

  /// Null: the store is in memory.
  SimEtcd* etcd() { return etcd_ ? &*etcd_ : nullptr; }

  std::size_t server_count() const { return servers_.size(); }

  /// The number of reads by which one server showed a write that another one had acknowledged.
  std::uint64_t answers_confirmed() const { return read_back_ ? read_back_->confirmed() : 0; }

  /// The server's way to all members of etcd is cut: for its store, not for its clients.
  void cut_off_server(std::size_t server);
  void reach_server_again(std::size_t server);

  // Crashes lose all memory of the engine, and what was in flight. Restarting one that runs does nothing.
  void crash_server(std::size_t server = 0);
  void restart_server(std::size_t server = 0);
  void crash_controllers();
  void restart_controllers();
  void crash_scheduler();
  void restart_scheduler();
  /// The machine stops with its agent; the journal survives.
  void crash_node(std::size_t node);
  void restart_node(std::size_t node);

  /// The process of that agent ends and begins again with these settings of evictions, which it keeps; its pods run on.
  /// A machine that is down begins with them. kInvalid: the error of check_agents().
  void restart_agent(std::size_t node, const agent::EvictionOptions& eviction);
  void partition_node(std::size_t node, Cut cut = Cut::kBoth);
  void heal_node(std::size_t node);

  /// The wall clock of that machine, until it is set right by another jump: a restart does not help.
  void jump_clock_of(std::size_t node, Duration by);

  void set_link_of(std::size_t node, const Link& link) { network_.set_link(nodes_[node].name, link); }

  void restore_link_of(std::size_t node) { network_.restore_link(nodes_[node].name); }

  std::size_t node_count() const { return nodes_.size(); }

  const std::string& node_name(std::size_t node) const { return nodes_[node].name; }

  const std::string& node_zone(std::size_t node) const { return nodes_[node].zone; }

  // Parts that a recorder reads. Null: the machine or the process is down.
  const SimHost* host(std::size_t node) const;
  const agent::Agent* agent(std::size_t node) const;
  const controllers::ControllerSet* controllers() const;

  bool is_cut_off(std::size_t node) const { return network_.is_partitioned(nodes_[node].name); }

  /// Called with every line that an agent writes to its journal, and the node's number.
  void on_journal(std::function<void(std::size_t node, const agent::JournalLine& line)> reader) {
    journal_reader_ = std::move(reader);
  }

  /// Null: the machine is down.
  SimHost* machine(std::size_t node);

  /// Processes of that machine by pod uid; empty while it is down.
  std::map<std::string, api::PodKey> running_on(std::size_t node) const;
  std::uint64_t kernel_oom_kills() const;

 private:
  struct Node {
    std::string name;
    std::string zone;
    MachineSpec machine;
    std::unique_ptr<SimJournal> journal;
    std::unique_ptr<SimMachine> parts;  // null: down
    std::uint64_t starts = 0;
    bool dies = false;   // the agent dies before its next command
    bool alone = false;  // … and its machine keeps running
    Duration clock_ahead{};
    std::optional<agent::EvictionOptions> eviction;  // nullopt: the settings of all agents
  };

  struct EngineParts {
    std::unique_ptr<client::ApiEngine> engine;
    std::unique_ptr<client::Transport> transport;
    std::unique_ptr<SimDriver> driver;
  };

  EngineParts drive(std::unique_ptr<client::ApiEngine> engine, const std::string& endpoint, std::string_view user,
                    std::function<void()> on_death);
  /// `machine`: one that has run on; null: it boots.
  void begin_agent(std::size_t node, std::unique_ptr<SimHost> machine);
  void on_agent_death(std::size_t node);
  /// Ends the agent and starts another one on the machine, which keeps running.
  void replace_agent(std::size_t node);
  void handle(api::Method method, std::string_view target, std::string body,
              std::string_view content_type = "application/json");
  void make_machines();
  void on_journal_line(std::size_t node, const agent::JournalLine& line);
  std::unique_ptr<store::Store> open_store(const std::string& server);
  void begin_etcd();
  void on_acting(std::size_t server);

  ClusterOptions options_;
  Rng rng_;
  VirtualTime time_;
  telemetry::Log log_;
  telemetry::Registry metrics_;
  SimNetwork network_;
  store::MemoryStore store_;
  FlakyStore flaky_store_;  // the store with faults, as the API server sees it
  ProcessDeaths deaths_;
  Invariants invariants_;
  World world_;
  std::optional<SimEtcd> etcd_;
  Acknowledged acknowledged_;
  std::vector<std::unique_ptr<SimServer>> servers_;          // null: down
  std::vector<std::unique_ptr<SimServer>> retired_servers_;  // stopped servers to which the store still owes answers
  std::unique_ptr<ReadBack> read_back_;                      // null: there is only one server
  bool began_ = false;
  EngineParts controllers_;
  EngineParts scheduler_;
  std::vector<Node> nodes_;
  std::uint64_t starts_ = 0;
  std::function<void(std::size_t, const agent::JournalLine&)> journal_reader_;
};

}  // namespace spillway::sim
