// Carries out the events of a timeline on a cluster, and takes them back. Thread: one.
#pragma once

#include "sim/cluster.h"
#include "sim/scenario/document.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::sim {

class EventActions {
 public:
  EventActions(Cluster& cluster, const std::vector<MachineSpec>& machines) : cluster_(cluster), machines_(machines) {}

  EventActions(const EventActions&) = delete;
  EventActions& operator=(const EventActions&) = delete;

  /// Carries out an action now; longer actions set their own timers, and the cluster must run on as long as these do.
  void carry_out(const Action& action);
  /// Restores the state before the action.
  void take_back(const Action& action);

  // One function for each action of a timeline.
  void operator()(const PartitionNodes& action);
  void operator()(const HealNodes& action);
  void operator()(const CrashNodes& action);
  void operator()(const RestartNodes& action);
  void operator()(const RollingReboot& action);
  void operator()(const CrashControllers&);
  void operator()(const RestartControllers&);
  void operator()(const StopApiServer& action);
  void operator()(const StartApiServer& action);
  void operator()(const SlowApiServer& action);
  void operator()(const UseMemory& action);
  void operator()(const FillDisk& action);

  void operator()(const ReadFiles& action) {
    for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
      machine.read_files(uid, {.target = action.to,
                               .over = action.over,
                               .rate_per_second = action.rate_per_second,
                               .reading = action.again ? PageCache::Reading::kAgain : PageCache::Reading::kOnce});
    });
  }

  void operator()(const ForkProcesses& action);
  void operator()(const DrainNodes& action);
  void operator()(const UncordonNodes& action);
  void operator()(const ScaleWorkload& action);
  void operator()(const JumpClock& action);
  void operator()(const MuteWatch& action);
  void operator()(const CrashScheduler&);
  void operator()(const RestartScheduler&);
  void operator()(const CreateObject& action);
  void operator()(const DeleteObject& action);
  void operator()(const BreakEtcd& action);
  void operator()(const MendEtcd& action);
  void operator()(const DeposeEtcd&);
  void operator()(const CompactEtcd&);
  void operator()(const JumpMachineClocks& action);
  void operator()(const WorsenLinks& action);
  void operator()(const HoldEndings& action);
  void operator()(const KeepImages& action);
  void operator()(const RollOut& action);
  void operator()(const PauseRollout& action);
  void operator()(const ResumeRollout& action);
  void operator()(const UndoRollout& action);
  void operator()(const ChangeThresholds& action);

 private:
  std::vector<std::size_t> nodes_of(const NodeChoice& choice) const { return chosen_nodes(choice, machines_); }

  std::vector<api::PodKey> pods_of(const PodChoice& choice) const;
  SimHost* machine_of(const std::string& node);
  /// Calls `act` for each of these pods that runs, with its machine.
  void for_each(const PodChoice& choice, const std::function<void(const std::string& uid, SimHost& machine)>& act);
  void set_schedulable(std::size_t node, bool schedulable);
  void set_paused(const DeploymentChoice& deployment, bool paused);
  void evict_from(std::size_t node, int attempts);

  Cluster& cluster_;
  const std::vector<MachineSpec>& machines_;
  NetworkFaults faults_;                      // before the network was made slow
  std::map<std::string, Bytes> used_before_;  // memory, by pod uid
  std::map<std::string, Bytes> disk_before_;
  std::map<std::string, std::int64_t> processes_before_;
  std::set<std::size_t> draining_;
  std::int64_t rollouts_ = 0;
};

}  // namespace spillway::sim
