// Carries out the events of a timeline on a cluster, and takes them back. Thread: one.
#pragma once

#include "sim/cluster.h"
#include "sim/scenario/document.h"
#include "sim/scenario/machine_actions.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::sim {

class EventActions {
 public:
  EventActions(Cluster& cluster, const std::vector<MachineSpec>& machines);
  ~EventActions();

  EventActions(const EventActions&) = delete;
  EventActions& operator=(const EventActions&) = delete;

  /// Carries out an action now; longer actions set their own timers, and the cluster must run on as long as these do.
  void carry_out(const Action& action);
  /// Restores the state before the action.
  void take_back(const Action& action);

  // Overloads for the actions that machine_actions.h does not carry out.
  void operator()(const CrashControllers&);
  void operator()(const RestartControllers&);
  void operator()(const StopApiServer& action);
  void operator()(const StartApiServer& action);
  void operator()(const SlowApiServer& action);
  void operator()(const DrainNodes& action);
  void operator()(const UncordonNodes& action);
  void operator()(const ScaleWorkload& action);
  void operator()(const MuteWatch& action);
  void operator()(const CrashScheduler&);
  void operator()(const RestartScheduler&);
  void operator()(const CreateObject& action);
  void operator()(const DeleteObject& action);
  void operator()(const BreakEtcd& action);
  void operator()(const RepairEtcd& action);
  void operator()(const DeposeEtcd&);
  void operator()(const CompactEtcd&);
  void operator()(const RollOut& action);
  void operator()(const PauseRollout& action);
  void operator()(const ResumeRollout& action);
  void operator()(const UndoRollout& action);

 private:
  std::vector<std::size_t> nodes_of(const NodeChoice& choice) const { return chosen_nodes(choice, machines_); }

  void set_schedulable(std::size_t node, bool schedulable);
  void set_paused(const DeploymentChoice& deployment, bool paused);
  void evict_from(std::size_t node, int attempts);

  Cluster& cluster_;
  const std::vector<MachineSpec>& machines_;
  NetworkFaults faults_;                  // before the network was made slow
  std::unique_ptr<ActedMachines> acted_;  // the cluster's
  MachineActions machine_actions_;
  std::set<std::size_t> draining_;
  std::int64_t rollouts_ = 0;
};

}  // namespace spillway::sim
