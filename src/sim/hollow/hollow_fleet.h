// Hollow nodes: the product's agents over simulated machines, registered with any API server. The fleet stands on one
// clock and event queue (VirtualTime); its owner moves that clock, by the real one or in a test. Nodes register
// one after the other at a rate. How machines and pods behave is said by annotations (annotations.h) and by the
// timeline of a scenario (scenario/machine_actions.h). Thread: one.
#pragma once

#include "agent/agent.h"
#include "base/rng.h"
#include "sim/hollow/annotations.h"
#include "sim/hollow/hollow_control.h"
#include "sim/hollow/hollow_link.h"
#include "sim/scenario/machine_actions.h"
#include "sim/sim_driver.h"
#include "sim/sim_machine.h"
#include "sim/time/timer_set.h"
#include "sim/time/virtual_time.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::sim {

/// The label of every hollow node, with the value "true".
inline constexpr std::string_view kHollowLabel = "spillway.io/hollow";
/// Every node has 256 of the 2^22 addresses of 100.64.0.0/10: its own, and those of its pods.
inline constexpr std::size_t kHollowNodesMax = 16'384;

struct HollowOptions {
  std::vector<MachineSpec> machines;
  std::size_t first_number = 0;  // number of the first machine among the addresses
  agent::AgentOptions agent;     // apart from name and labels; checked by check_agents()
  double nodes_per_second = 20;  // registrations
  /// The longest time between two readings of a node's memory.
  Duration observe_interval_max = seconds(10);
  std::uint64_t seed = 1;
  /// A connection of its own for each node, by its name, and one for the fleet, by an empty name.
  std::function<std::unique_ptr<client::Transport>(const std::string& node)> connect;
  std::function<Instant()> arrival;  // see HollowLink
  telemetry::Log log;
};

struct HollowCounts {
  std::size_t nodes = 0;
  std::size_t started = 0;
  std::size_t registered = 0;
  std::size_t ready = 0;  // as the nodes' own informers see it
  std::size_t silent = 0;
  std::size_t down = 0;
  std::size_t pods = 0;
  std::size_t pods_running = 0;
  std::uint64_t requests = 0;
};

class HollowFleet final : public ActedMachines {
 public:
  HollowFleet(VirtualTime& time, HollowOptions options);
  ~HollowFleet() override;
  HollowFleet(const HollowFleet&) = delete;
  HollowFleet& operator=(const HollowFleet&) = delete;

  /// Begins to register the nodes. `done` is called once, when all have been registered.
  void start(std::function<void()> done);

  /// Begins a timeline, whose times count from now. `names`: the machines as the scenario names them; `on_event` is
  /// called as each event begins and is taken back. Both, and the timeline, must outlive the fleet.
  void run_timeline(const std::vector<TimelineEvent>& timeline, const std::vector<MachineSpec>& names,
                    std::function<void(const TimelineEvent& event, bool begins)> on_event);

  /// Ends all agents: no more messages are sent. Their Nodes stay.
  void stop();
  /// Ends all agents, then deletes their Nodes. `done` is called once.
  void delete_nodes(std::function<void(const HollowControl::Deleted&)> done);

  HollowCounts counts() const;

  // The port of the timeline.
  VirtualTime& time() override { return time_; }

  SimHost* machine(std::size_t node) override;
  SimHost* machine_named(const std::string& node) override;
  void for_each_pod(const std::function<bool(const api::Pod& pod)>& visit) const override;
  void partition_node(std::size_t node, Cut cut) override;
  void heal_node(std::size_t node) override;
  void crash_node(std::size_t node) override;
  void restart_node(std::size_t node) override;
  void restart_agent(std::size_t node, const agent::EvictionOptions& eviction) override;
  void jump_clock_of(std::size_t node, Duration by) override;
  void set_link_of(std::size_t node, const Link& link) override;
  void restore_link_of(std::size_t node) override;

 private:
  struct Node;

  void begin(std::size_t node, std::unique_ptr<SimHost> machine);
  void set_clock_of(Node& node);
  agent::AgentOptions options_of(const Node& node) const;
  void execute(Node& node, agent::HostCommand command);
  void on_node(std::size_t node, const api::StringMap& annotations);
  void act_on(std::size_t node, const HollowNodeWishes& before);
  void on_pod(Node& node, const std::shared_ptr<const api::Pod>& before, const std::shared_ptr<const api::Pod>& after);
  void report(std::string_view kind, const std::string& name, const std::vector<std::string>& problems) const;
  void control(const std::function<void()>& step);
  void await_registrations(std::function<void()> done);

  VirtualTime& time_;
  HollowOptions options_;
  Rng rng_;
  HollowLink::Common links_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, std::size_t> numbers_;
  std::map<api::PodKey, std::shared_ptr<const api::Pod>> pods_;
  HollowControl control_;
  std::unique_ptr<client::Transport> control_link_;
  SimDriver control_driver_;
  std::unique_ptr<MachineActions> actions_;
  TimerSet timers_;
};

}  // namespace spillway::sim
