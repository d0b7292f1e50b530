// Everybody who hands something of the node to a container: devices, CPUs of its own, NUMA memory, and the topology
// policy that brings them together. Keeps the checkpoints of CPUs and memory up to date.
// Thread: loop. Invariants: what a pod was given is saved before its first container starts, and free again when the
// pod has ended. Source: Kubernetes docs, "Control Topology Management Policies on a node"; spec "Pod admission", 5.
#pragma once

#include "agent/contract/context.h"
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
};

/// How CPUs and memory of a node are handed out, checked against the machine and against what was true before.
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

  /// Takes what every container of the pod needs. A refusal leaves what was taken before it with the pod.
  admission::Answer allocate(const api::Pod& pod);
  /// Where a container of an admitted pod runs.
  Cpuset cpuset_of(const std::string& uid, const std::string& container) const;
  /// The pod has ended, or never starts.
  void release(const std::string& uid);
  /// Releases every pod but these.
  void keep_only(const std::set<std::string, std::less<>>& uids);

  /// For people and /debug/spillway: no contract.
  api::Json state(Now now) const;

 private:
  void save();

  AgentContext& context_;
  DeviceManager& devices_;
  Pinning pinning_;
  admission::CpuSet shared_told_;  // to the machine
};

}  // namespace spillway::agent
