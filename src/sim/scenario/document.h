// A scenario as data: a cluster, its configuration, a timeline of events, and expectations. Written as YAML
// (docs/simulate.md); parser.h reads it, player.h plays it. Thread: any (values).
#pragma once

#include "agent/contract/options.h"
#include "api/json/json.h"
#include "base/bytes.h"
#include "base/time.h"
#include "controllers/controller_set.h"
#include "sim/etcd/sim_etcd.h"
#include "sim/flaky_store.h"
#include "sim/scenario/actions.h"
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

/// Nodes of a cluster that is made up; each takes 105 to 125 KB of memory, and 60 KB more for each of its pods.
inline constexpr std::int64_t kGeneratedNodesMax = 200'000;

/// A generated cluster: nodes that are distributed over zones, and workloads.
struct GeneratedCluster {
  struct Workload {
    std::string kind = "ReplicaSet";  // or DaemonSet, Deployment
    std::string ns = "default";
    std::string name;
    std::int64_t replicas = 1;
    Bytes memory = mebibytes(10);  // the use of each of its pods
    Bytes growth_per_second;       // zero: all the memory is used from the start
    std::string memory_request;    // quantities; empty: none
    std::string memory_limit;
    std::string cpu_request;
    std::string priority_class;                    // empty: none
    std::string node;                              // node of the pods, which are then not scheduled; empty: they are
    api::Json max_unavailable;                     // a Deployment's: a number, or a text like "25%"; null: its default
    api::Json max_surge;                           // as in the spec of a Deployment
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
  api::Json agents_written;                   // as in the file; null: absent
  controllers::ControllerSet::Options controllers;
};

/// Faults that happen by chance while the timeline lasts.
struct ChanceFaults {
  NetworkFaults network;
  StoreFaults store;
  EtcdFaults etcd;
  std::uint32_t death_ppm = 0;          // commands before which the process that gave them ends
  std::uint32_t journal_death_ppm = 0;  // evictions written into a journal after which that machine ends
  std::uint32_t agent_death_ppm = 0;    // deaths of the agent alone: its pods keep running

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
  bool no_surplus = false;               // a ReplicaSet never has a pod too many, not even for a moment
  Duration timeline_delay = minutes(2);  // before the timeline begins
  Duration duration = minutes(10);       // duration of the timeline
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

}  // namespace spillway::sim
