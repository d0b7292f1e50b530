// The events of a timeline as values: what happens, to which nodes and pods, and when. Thread: any (values).
#pragma once

#include "agent/contract/options.h"
#include "api/json/json.h"
#include "base/bytes.h"
#include "base/time.h"
#include "sim/machine_spec.h"
#include "sim/network_faults.h"
#include "sim/sim_host.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::sim {

/// The nodes of an event: all of them, narrowed from left to right.
struct NodeChoice {
  std::optional<std::string> zone;                           // "zone-0"
  std::optional<std::pair<std::string, std::string>> label;  // key and value
  std::vector<std::string> names;                            // globs; empty: any
  std::size_t skip = 0;                                      // the first of those
  std::size_t every = 1;                                     // and then each nth
  std::vector<std::size_t> only;                             // in place of all that: these, from 0

  friend bool operator==(const NodeChoice&, const NodeChoice&) = default;
};

/// The pods of an event: those that run, in the order of their names.
struct PodChoice {
  std::string pods = "*";                                    // glob of namespace/name
  std::optional<std::pair<std::string, std::string>> label;  // key and value
  std::optional<std::size_t> first;                          // number of nodes at most; nullopt: all

  friend bool operator==(const PodChoice&, const PodChoice&) = default;
};

struct PartitionNodes {
  NodeChoice nodes;
  Cut cut = Cut::kBoth;
};

struct HealNodes {
  NodeChoice nodes;
};

struct CrashNodes {
  NodeChoice nodes;
};

struct RestartNodes {
  NodeChoice nodes;
};

/// Restarts nodes one after another: each is down for `away`; the next follows after `interval`.
struct RollingReboot {
  NodeChoice nodes;
  Duration away{};
  Duration interval{};
};

struct CrashControllers {};

struct RestartControllers {};

struct CrashScheduler {};

struct RestartScheduler {};

/// Stops listening: every call to that server is refused.
struct StopApiServer {
  std::size_t server = 0;
};

struct StartApiServer {
  std::size_t server = 0;
};

/// Every message to and from the API server takes up to this long, at least half of it; zero: as it was.
struct SlowApiServer {
  Duration latency{};
};

/// Makes pods use memory: at once, or little by little with `over` or `rate_per_second`.
struct UseMemory {
  PodChoice pods;
  Bytes to;
  Duration over{};
  Bytes rate_per_second;
};

/// Makes pods fill page cache by reading files, likewise.
struct ReadFiles {
  PodChoice pods;
  Bytes to;
  Duration over{};
  Bytes rate_per_second;
  bool again = false;  // the same files are read again and again: reclaimed cache comes back
};

/// Fills the disk by these pods, at once or little by little; the space is theirs until they are stopped.
struct FillDisk {
  PodChoice pods;
  Bytes to;
  Duration over{};
  Bytes rate_per_second;
};

/// Changes the number of processes of each chosen pod, as GrowMemory changes its memory.
struct ForkProcesses {
  PodChoice pods;
  std::int64_t to = 0;
  Duration over{};
  std::int64_t rate_per_second = 0;
};

/// Nodes are made unschedulable and their pods, but those of DaemonSets, evicted through the API; refusals of budgets
/// are asked again every 5 s for ten minutes.
struct DrainNodes {
  NodeChoice nodes;
};

struct UncordonNodes {
  NodeChoice nodes;
};

struct ScaleWorkload {
  std::string ns;
  std::string name;
  std::int64_t replicas = 0;
  std::string kind = "ReplicaSet";  // or Deployment
};

/// Chooses a Deployment by its name.
struct DeploymentChoice {
  std::string ns;
  std::string name;
};

/// Changes the template of a Deployment; members that are given here change the use and the requests of its pods.
struct RollOut {
  DeploymentChoice deployment;
  std::optional<Bytes> memory;
  std::string memory_request;  // a quantity; more than any machine has: the rollout hangs
};

struct PauseRollout {
  DeploymentChoice deployment;
};

struct ResumeRollout {
  DeploymentChoice deployment;
};

/// Back to the template before this one, as kubectl rollout undo: not while it is paused.
struct UndoRollout {
  DeploymentChoice deployment;
};

/// Jumps all wall clocks; the monotonic clock does not jump.
struct JumpClock {
  Duration by{};
};

/// Sets the wall clocks of these machines wrong, until another jump.
struct JumpMachineClocks {
  NodeChoice nodes;
  Duration by{};
};

/// Messages from and to these nodes are lost more often, or take longer.
struct WorsenLinks {
  NodeChoice nodes;
  Link link;
};

/// The disks of these machines answer later by this time; zero: as before.
struct SlowDisks {
  NodeChoice nodes;
  Duration by{};
};

/// Changes how containers of these pods react to a stop.
struct HoldEndings {
  PodChoice pods;
  SimHost::Ending ending = SimHost::Ending::kAtGrace;
};

/// Adds unused images to the disk of each of these machines.
struct KeepImages {
  NodeChoice nodes;
  Bytes to;
  bool undeletable = false;
};

/// Starts each of these agents again with other settings of evictions, as after a change of its configuration: members
/// that `written` does not name have the default of a KubeletConfiguration. Pods run on.
struct ChangeThresholds {
  NodeChoice nodes;
  api::Json written;  // members of a KubeletConfiguration
  agent::EvictionOptions eviction;
};

/// The controllers' watches whose path has this in it carry nothing any more; empty: all do again.
struct MuteWatch {
  std::string path;
};

/// Creates an object as an administrator does: a pod that uses memory, or a Namespace, ConfigMap or Service (a
/// NodePort).
struct CreateObject {
  std::string kind;
  std::string ns = "default";  // not of a Namespace
  std::string name;
  // Members for a pod.
  Bytes memory = mebibytes(10);
  Bytes growth_per_second;     // zero: all the memory is used from the start
  std::string memory_request;  // a quantity; empty: none
  std::string priority_class;  // empty: none
  bool restarts = true;        // ended containers are started again
};

struct DeleteObject {
  std::string kind;  // also Node
  std::string ns = "default";
  std::string name;
  std::optional<std::size_t> place;  // in place of a name: of all pods in the order of their names, modulo their number
  bool at_once = false;              // a pod is deleted without its grace
};

/// Breaks the store of all servers: stops or cuts off a member by its number or, with kCutOff, cuts off a server.
struct BreakEtcd {
  enum class What { kStop, kPart, kCutOff };
  What what{};
  std::size_t number = 0;
};

struct RepairEtcd {
  BreakEtcd broken;
};

/// Deposes etcd's leader.
struct DeposeEtcd {};

/// Compacts etcd: all history is forgotten.
struct CompactEtcd {};

using Action = std::variant<PartitionNodes, HealNodes, CrashNodes, RestartNodes, RollingReboot, CrashControllers,
                            RestartControllers, StopApiServer, StartApiServer, SlowApiServer, UseMemory, FillDisk,
                            ForkProcesses, DrainNodes, UncordonNodes, ScaleWorkload, JumpClock, MuteWatch,
                            CrashScheduler, RestartScheduler, CreateObject, DeleteObject, BreakEtcd, RepairEtcd,
                            DeposeEtcd, CompactEtcd, JumpMachineClocks, WorsenLinks, HoldEndings, KeepImages, RollOut,
                            PauseRollout, ResumeRollout, UndoRollout, ChangeThresholds, ReadFiles, SlowDisks>;

struct TimelineEvent {
  enum class When { kAt, kFirstUnknown };
  When when = When::kAt;
  /// Since the timeline began; with kFirstUnknown not before the first node is marked Unknown, which may be later.
  Duration at{};
  Action action;
  std::optional<Duration> lasts;  // time after which the action is taken back
  std::int64_t times = 1;
  Duration every{};  // time between two beginnings
  std::string text;  // "partition", for a person
};

/// The numbers of the chosen nodes, from 0: "zone=zone-0" and the like must match the existing nodes.
std::vector<std::size_t> chosen_nodes(const NodeChoice& choice, const std::vector<MachineSpec>& machines);

}  // namespace spillway::sim
