// What an event of a timeline does to a cluster, and how it is taken back. Thread: one.
#pragma once

#include "sim/cluster.h"
#include "sim/scenario/document.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::sim {

class EventActions {
 public:
  EventActions(Cluster& cluster, const std::vector<MachineSpec>& machines)
      : cluster_(cluster), machines_(machines), faults_(cluster.network().faults()) {}

  EventActions(const EventActions&) = delete;
  EventActions& operator=(const EventActions&) = delete;

  /// Now; what takes longer sets its own timers, and the cluster is to run on as long as they do.
  void carry_out(const Action& action);
  /// As it was before.
  void take_back(const Action& action);

  // Of the variants.
  void operator()(const PartitionNodes& action);
  void operator()(const HealNodes& action);
  void operator()(const CrashNodes& action);
  void operator()(const RestartNodes& action);
  void operator()(const RollingReboot& action);
  void operator()(const CrashControllers&);
  void operator()(const RestartControllers&);
  void operator()(const StopApiServer&);
  void operator()(const StartApiServer&);
  void operator()(const SlowApiServer& action);
  void operator()(const UseMemory& action);
  void operator()(const DrainNodes& action);
  void operator()(const UncordonNodes& action);
  void operator()(const ScaleReplicaSet& action);
  void operator()(const JumpClock& action);
  void operator()(const MuteWatch& action);

 private:
  std::vector<std::size_t> nodes_of(const NodeChoice& choice) const { return chosen_nodes(choice, machines_); }

  std::vector<api::PodKey> pods_of(const PodChoice& choice) const;
  SimHost* machine_of(const std::string& node);
  void set_schedulable(std::size_t node, bool schedulable);
  void evict_from(std::size_t node, int attempts);

  Cluster& cluster_;
  const std::vector<MachineSpec>& machines_;
  NetworkFaults faults_;
  std::map<std::string, Bytes> used_before_;  // by pod uid
};

}  // namespace spillway::sim
