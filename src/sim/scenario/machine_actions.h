// Carries out the events of a timeline that happen to machines and their pods, and takes them back: on the machines of
// a simulated cluster, and on hollow nodes. Thread: one.
#pragma once

#include "sim/scenario/actions.h"
#include "sim/sim_host.h"
#include "sim/time/virtual_time.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace spillway::sim {

/// Port: the machines that a timeline acts on, by their numbers from 0.
class ActedMachines {
 public:
  virtual ~ActedMachines() = default;

  virtual VirtualTime& time() = 0;
  /// Null: the machine is down.
  virtual SimHost* machine(std::size_t node) = 0;
  /// Null: the machine is down, or does not exist.
  virtual SimHost* machine_named(const std::string& node) = 0;
  /// Visits the pods that the API server has, in the order of their names, until `visit` returns false.
  virtual void for_each_pod(const std::function<bool(const api::Pod& pod)>& visit) const = 0;

  virtual void partition_node(std::size_t node, Cut cut) = 0;
  virtual void heal_node(std::size_t node) = 0;
  virtual void crash_node(std::size_t node) = 0;
  virtual void restart_node(std::size_t node) = 0;
  virtual void restart_agent(std::size_t node, const agent::EvictionOptions& eviction) = 0;
  virtual void jump_clock_of(std::size_t node, Duration by) = 0;
  virtual void set_link_of(std::size_t node, const Link& link) = 0;
  virtual void restore_link_of(std::size_t node) = 0;
};

/// True if the pod has ended for good.
bool has_ended(const api::Pod& pod);

class MachineActions {
 public:
  /// `names`: the machines as the scenario names them, for its choices. Both must outlive this.
  MachineActions(ActedMachines& machines, const std::vector<MachineSpec>& names) : machines_(machines), names_(names) {}

  MachineActions(const MachineActions&) = delete;
  MachineActions& operator=(const MachineActions&) = delete;

  /// True for the actions of this class; the others are about servers, controllers and objects.
  static bool can_act(const Action& action);

  /// Carries out an action now; longer ones set their own timers. False: it is not one of these.
  bool carry_out(const Action& action);
  /// Restores the state before the action. False: as above.
  bool take_back(const Action& action);

  // Overloads, one for each action on machines.
  void operator()(const PartitionNodes& action);
  void operator()(const HealNodes& action);
  void operator()(const CrashNodes& action);
  void operator()(const RestartNodes& action);
  void operator()(const RollingReboot& action);
  void operator()(const UseMemory& action);
  void operator()(const FillDisk& action);
  void operator()(const ReadFiles& action);
  void operator()(const ForkProcesses& action);
  void operator()(const JumpClock& action);
  void operator()(const JumpMachineClocks& action);
  void operator()(const WorsenLinks& action);
  void operator()(const HoldEndings& action);
  void operator()(const KeepImages& action);
  void operator()(const SlowDisks& action);
  void operator()(const ChangeThresholds& action);

 private:
  std::vector<std::size_t> nodes_of(const NodeChoice& choice) const { return chosen_nodes(choice, names_); }

  struct Chosen {
    std::string uid;
    std::string node;
  };

  std::vector<Chosen> pods_of(const PodChoice& choice) const;
  /// Calls `act` for each chosen pod that runs, with its machine.
  void for_each(const PodChoice& choice, const std::function<void(const std::string& uid, SimHost& machine)>& act);

  ActedMachines& machines_;
  const std::vector<MachineSpec>& names_;
  std::map<std::string, Bytes> used_before_;  // memory, by pod uid
  std::map<std::string, Bytes> disk_before_;
  std::map<std::string, std::int64_t> processes_before_;
};

}  // namespace spillway::sim
