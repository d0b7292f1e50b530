// The managers that assign parts of the node to containers: devices, exclusive CPUs, NUMA memory, and the topology
// policy that coordinates them. Keeps the checkpoints of CPUs and memory up to date.
// Thread: loop. Invariants: a pod's assignment is saved before its first container starts, and released when the pod
// has ended. Source: Kubernetes docs, "Control Topology Management Policies on a node"; spec "Pod admission", 5.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/held_resources.h"
#include "agent/contract/ports.h"
#include "agent/devices/device_manager.h"
#include "api/json/json.h"
#include "policy/admission/answer.h"
#include "policy/admission/static_cpus.h"
#include "policy/admission/static_memory.h"
#include "policy/admission/topology_admit.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::agent {

/// The files that earlier instances on this node saved; absent: none.
struct Checkpoints {
  std::optional<std::string> devices;
  std::optional<std::string> cpus;
  std::optional<std::string> memory;
  std::optional<std::string> allocated_pods = {};  // ResourceBook
  std::optional<std::string> actuated_pods = {};   // ResourceBook of the resources in force
};

/// The policies for CPUs and memory, checked against the machine and against the saved state.
struct Pinning {
  admission::TopologySetup topology;
  std::optional<admission::StaticCpus> cpus;
  std::optional<admission::StaticMemory> memory;
};

/// `reservation`: what kube, system and hard eviction keep from pods. kInvalid, in upstream's words: options that this
/// machine cannot have, or a checkpoint that contradicts them.
Result<Pinning> make_pinning(const AgentOptions& options, const MachineInfo& machine,
                             const api::ResourceList& reservation, const Checkpoints& checkpoints);

class ResourceManagers {
 public:
  ResourceManagers(AgentContext& context, DeviceManager& devices, Pinning pinning);

  DeviceManager& devices() { return devices_; }

  /// Saves the state that a restart needs, and sends the machine the shared CPUs.
  void start();

  /// Assigns the resources of every container of the pod. After a refusal the pod keeps earlier assignments.
  admission::Answer allocate(const api::Pod& pod);
  /// The CPUs and NUMA nodes of a container of an admitted pod.
  Cpuset cpuset_of(const std::string& uid, const std::string& container) const;
  /// The parts that a container of an admitted pod holds for itself.
  HeldParts held_by(const std::string& uid, const std::string& container) const;
  /// The parts of the node that pods can hold, held or not.
  HeldParts allocatable() const;
  /// The pod has ended, or never starts.
  void release(const std::string& uid);
  /// Releases every pod but these.
  void keep_only(const std::set<std::string, std::less<>>& uids);

  /// Releases the resources of all pods but these.
  api::Json state(Now now) const;

 private:
  void save();

  AgentContext& context_;
  DeviceManager& devices_;
  Pinning pinning_;
  admission::CpuSet shared_sent_;  // to the machine
};

}  // namespace spillway::agent
