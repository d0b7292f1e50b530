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
  std::optional<std::size_t> first;                          // at most this many; nullopt: all

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

/// Takes one node after another away for `away`; the next goes `interval` later.
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
  bool again = false;  // the same files over and over: what is reclaimed of it comes back
};

/// Fills the disk by these pods, at once or little by little; the space is theirs until they are stopped.
struct FillDisk {
  PodChoice pods;
  Bytes to;
  Duration over{};
  Bytes rate_per_second;
};

/// Changes the number of processes of each of these pods, likewise.
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

/// A Deployment, by its name.
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

/// The wall clocks of these machines; they stay wrong until they jump again.
struct JumpMachineClocks {
  NodeChoice nodes;
  Duration by{};
};

/// Messages from and to these nodes get lost, or take longer than those of others.
struct WorsenLinks {
  NodeChoice nodes;
  Link link;
};

/// The disks of these machines answer this much later; zero: as before.
struct SlowDisks {
  NodeChoice nodes;
  Duration by{};
};

/// Changes the reaction of these pods' containers to a stop.
struct HoldEndings {
  PodChoice pods;
  SimHost::Ending ending = SimHost::Ending::kAtGrace;
};

/// Puts images that no container uses on the disk of each of these machines.
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
  Bytes growth_per_second;     // zero: all of it from the start
  std::string memory_request;  // a quantity; empty: none
  std::string priority_class;  // empty: none
  bool restarts = true;        // its containers, when they end
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

struct MendEtcd {
  BreakEtcd broken;
};

/// Deposes etcd's leader.
struct DeposeEtcd {};

/// Compacts etcd: all history is forgotten.
struct CompactEtcd {};

using Action = std::variant<PartitionNodes, HealNodes, CrashNodes, RestartNodes, RollingReboot, CrashControllers,
                            RestartControllers, StopApiServer, StartApiServer, SlowApiServer, UseMemory, FillDisk,
                            ForkProcesses, DrainNodes, UncordonNodes, ScaleWorkload, JumpClock, MuteWatch,
                            CrashScheduler, RestartScheduler, CreateObject, DeleteObject, BreakEtcd, MendEtcd,
                            DeposeEtcd, CompactEtcd, JumpMachineClocks, WorsenLinks, HoldEndings, KeepImages, RollOut,
                            PauseRollout, ResumeRollout, UndoRollout, ChangeThresholds, ReadFiles, SlowDisks>;

struct TimelineEvent {
  enum class When { kAt, kFirstUnknown };
  When when = When::kAt;
  /// Since the timeline began; with kFirstUnknown not before the first node is marked Unknown, which may be later.
  Duration at{};
  Action action;
  std::optional<Duration> lasts;  // then it is taken back
  std::int64_t times = 1;
  Duration every{};  // from one beginning to the next
  std::string text;  // "partition", for a person
};

/// "zone=zone-0" and the like, checked against the nodes there are. By number, from 0.
std::vector<std::size_t> chosen_nodes(const NodeChoice& choice, const std::vector<MachineSpec>& machines);

}  // namespace spillway::sim
