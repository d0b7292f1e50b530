// A scenario as data: a cluster, its configuration, a timeline of events, and expectations. Written as YAML
// (docs/simulate.md); parser.h reads it, player.h plays it. Thread: any (values).
#pragma once

#include "agent/contract/options.h"
#include "api/json/json.h"
#include "base/bytes.h"
#include "base/time.h"
#include "controllers/controller_set.h"
#include "sim/cluster.h"
#include "sim/scenario/expectation.h"
#include "sim/scenario/inventory.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  std::optional<std::size_t> first;                          // that many of them; nullopt: all

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

/// Every message between anybody and the API server takes up to this long, at least half of it; zero: as it was.
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

/// Jumps all wall clocks; the monotonic clock goes on as before.
struct JumpClock {
  Duration by{};
};

/// The wall clocks of these machines; they stay wrong until they jump again.
struct JumpMachineClocks {
  NodeChoice nodes;
  Duration by{};
};

/// Messages between these nodes and anybody get lost, or take longer, than those of others.
struct WorsenLinks {
  NodeChoice nodes;
  Link link;
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
                            PauseRollout, ResumeRollout, UndoRollout, ChangeThresholds, ReadFiles>;

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

/// Nodes of a cluster that is made up; each takes 105 to 125 KB of memory, and 60 KB more for each of its pods.
inline constexpr std::int64_t kGeneratedNodesMax = 200'000;

/// A cluster that is made up: nodes in zones in turn, and what runs there.
struct GeneratedCluster {
  struct Workload {
    std::string kind = "ReplicaSet";  // or DaemonSet, Deployment
    std::string ns = "default";
    std::string name;
    std::int64_t replicas = 1;
    Bytes memory = mebibytes(10);  // the use of each of its pods
    Bytes growth_per_second;       // zero: all of it from the start
    std::string memory_request;    // quantities; empty: none
    std::string memory_limit;
    std::string cpu_request;
    std::string priority_class;                    // empty: none
    std::string node;                              // its pods name that one and are not scheduled; empty: none
    api::Json max_unavailable;                     // a Deployment's: a number, or a text like "25%"; null: its default
    api::Json max_surge;                           // the same
    std::optional<std::int64_t> budget_available;  // minAvailable of a PodDisruptionBudget
    /// The time that its pods stay on a node that is not ready or unreachable, in seconds; nullopt: the server's 300.
    std::optional<std::int64_t> toleration_seconds;
  };

  std::int64_t nodes = 30;
  std::int64_t zones = 3;
  std::int64_t racks = 0;  // in each zone; label rack=ZONE-rack-N; 0: no label
  std::int64_t pods_per_node = 2;
  Bytes memory = gibibytes(64);
  std::int64_t cpu_milli = 4000;
  Bytes disk = gibibytes(100);
  Bytes swap = {};
  std::vector<Workload> workloads;
};

/// The configuration of the product's parts.
struct ScenarioConfig {
  std::optional<agent::AgentOptions> agents;  // nullopt: plain_agents()
  api::Json agents_written;                   // as the file says it; null: not at all
  controllers::ControllerSet::Options controllers;
};

/// Faults that happen by chance while the timeline lasts.
struct ChanceFaults {
  NetworkFaults network;
  StoreFaults store;
  EtcdFaults etcd;
  std::uint32_t death_ppm = 0;          // commands before which the process that gave them ends
  std::uint32_t journal_death_ppm = 0;  // evictions written into a journal after which that machine ends
  std::uint32_t agent_death_ppm = 0;    // likewise the agent alone: its pods run on

  friend bool operator==(const ChanceFaults&, const ChanceFaults&) = default;
};

/// The servers of the control plane and their store.
struct ServerPlan {
  std::size_t servers = 1;
  std::size_t etcd = 0;  // members of the etcd that they share; 0: one server, its store in memory

  friend bool operator==(const ServerPlan&, const ServerPlan&) = default;
};

struct Scenario {
  std::string name;
  std::string story;
  std::string file;
  std::optional<std::uint64_t> seed;
  std::variant<GeneratedCluster, Inventory> cluster;
  ServerPlan control_plane;
  ScenarioConfig config;
  ChanceFaults faults;
  bool no_surplus = false;          // a ReplicaSet never has a pod too many, not even for a moment
  Duration settle = minutes(2);     // before the timeline begins
  Duration duration = minutes(10);  // duration of the timeline
  /// After the timeline everything is healed, and the cluster has to come to rest within this; nullopt: it ends there.
  std::optional<Duration> rest;
  std::vector<TimelineEvent> timeline;
  std::vector<Expectation> expectations;
};

/// "replicasets" of ReplicaSet, and the like of DaemonSet and Deployment.
std::string_view plural_of(std::string_view kind);

/// The machines, objects and pods of a generated cluster.
Inventory inventory_of(const GeneratedCluster& cluster);

std::vector<MachineSpec> machines_of(const Scenario& scenario);

/// "zone=zone-0" and the like, checked against the nodes there are. By number, from 0.
std::vector<std::size_t> chosen_nodes(const NodeChoice& choice, const std::vector<MachineSpec>& machines);

}  // namespace spillway::sim
