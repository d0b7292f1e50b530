#include "sim/incidents.h"

#include "api/taint.h"
#include "sim/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace spillway::sim {

namespace {

constexpr std::string_view kController = "controller";
constexpr Duration kSettling = minutes(2);
constexpr Duration kRecovery = minutes(10);

void cut_all(Cluster& cluster, std::size_t spared) {
  for (std::size_t i = spared; i < cluster.node_count(); ++i) cluster.partition_node(i);
}

void heal_all(Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.node_count(); ++i) cluster.heal_node(i);
}

void play_control_plane_cut_off(Cluster& cluster) {
  cut_all(cluster, 0);
  cluster.run_for(minutes(10));
  heal_all(cluster);
}

void play_half_zone_flapping(Cluster& cluster) {
  for (int round = 0; round < 6; ++round) {
    for (std::size_t i = 0; i < cluster.node_count(); ++i) {
      if (cluster.node_zone(i) == "zone-0" && (i / 3) % 2 == 0) cluster.partition_node(i);
    }
    cluster.run_for(seconds(75));
    heal_all(cluster);
    cluster.run_for(seconds(30));
  }
}

/// One node after another, each away for longer than the grace period.
void play_rolling_reboot(Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    cluster.crash_node(i);
    cluster.time().after(seconds(90), [&cluster, i] { cluster.restart_node(i); });
    cluster.run_for(seconds(45));
  }
  cluster.run_for(seconds(60));
}

void play_all_but_one(Cluster& cluster) {
  cut_all(cluster, 1);
  cluster.run_for(minutes(12));
  heal_all(cluster);
}

/// The clock is set forward by an hour while two nodes are tainted already, and the controllers come back.
void play_clock_jump(Cluster& cluster) {
  cluster.partition_node(0);
  cluster.partition_node(1);
  cluster.run_for(seconds(90));
  cluster.time().jump_wall(hours(1));
  cluster.crash_controllers();
  cluster.restart_controllers();
  cluster.run_for(minutes(2));
  cluster.time().jump_wall(-hours(1));
  cluster.run_for(minutes(1));
  heal_all(cluster);
}

/// Leases are renewed; the controllers do not hear of it.
void play_lost_lease_watch(Cluster& cluster) {
  cluster.network().mute(std::string(kController), "/leases");
  cluster.run_for(minutes(10));
  cluster.network().unmute();
}

void play_killed_between_marking_and_tainting(Cluster& cluster) {
  for (const std::size_t node : {0U, 3U, 6U}) cluster.partition_node(node);
  const auto is_unknown = [&cluster] {
    const auto& nodes = cluster.world().nodes();
    return std::ranges::any_of(nodes, [](const auto& entry) {
      const api::NodeCondition* ready = api::find_condition(entry.second.status.conditions, "Ready");
      return ready != nullptr && ready->status == "Unknown";
    });
  };
  for (int i = 0; i < 200'000 && !is_unknown(); ++i) {
    cluster.time().run_until(cluster.time().now().mono + milliseconds(1));
  }
  cluster.crash_controllers();
  cluster.run_for(seconds(30));
  cluster.restart_controllers();
  cluster.run_for(minutes(8));
  heal_all(cluster);
}

constexpr std::array<Incident, 7> kIncidents = {{
    {"control-plane-cut-off", "no node is heard for ten minutes", 30, 3, play_control_plane_cut_off},
    {"half-zone-flapping", "half a zone leaves for 75 s and comes back for 30 s, six times", 30, 3,
     play_half_zone_flapping},
    {"rolling-reboot", "every node is away for 90 s, one starts every 45 s", 12, 3, play_rolling_reboot},
    {"499-of-500", "all nodes but one are silent for twelve minutes", 500, 1, play_all_but_one},
    {"clock-jump", "an hour forward and back, with two nodes tainted and a restart", 30, 3, play_clock_jump},
    {"lost-lease-watch", "the controllers' watch of leases is mute for ten minutes", 30, 3, play_lost_lease_watch},
    {"killed-before-tainting", "the controllers die when the first of three silent nodes is marked", 30, 3,
     play_killed_between_marking_and_tainting},
}};

lifecycle::BrakeConfig brakes_on() {
  using lifecycle::ActLimit;
  lifecycle::BrakeConfig brakes;
  brakes.mark_not_ready.global = ActLimit{20, minutes(1)};
  brakes.taint.global = ActLimit{3, minutes(5)};
  brakes.delete_pod = {ActLimit{10, minutes(1)}, ActLimit{5, minutes(1)}, ActLimit{2, seconds(10)}};
  brakes.stall_share = 0.5;
  brakes.stall_max = minutes(15);
  brakes.watch_age_max = minutes(3);
  brakes.clock_jump_max = seconds(5);
  brakes.cool_down = minutes(2);
  return brakes;
}

bool is_ready(const api::Node& node) {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  return ready != nullptr && ready->status == "True";
}

bool has_silence_taint(const api::Node& node) {
  return std::ranges::any_of(node.spec.taints, [](const api::Taint& taint) {
    return taint.effect == api::kNoExecute &&
           (taint.key == api::kTaintNodeUnreachable || taint.key == api::kTaintNodeNotReady);
  });
}

/// Counts what happens to nodes and pods from its making on.
class Tally {
 public:
  explicit Tally(const World& world) : world_(world) {
    for (const auto& [name, node] : world_.nodes()) nodes_[name] = {is_ready(node), has_silence_taint(node)};
  }

  void on_change(const store::Change& change) {
    const std::string_view key = change.key;
    if (key.starts_with("/registry/minions/")) on_node(std::string(key.substr(key.rfind('/') + 1)));
    if (key.starts_with("/registry/pods/")) on_pod(key);
  }

  IncidentReport report;

 private:
  struct NodeState {
    bool ready = false;
    bool tainted = false;
  };

  void on_node(const std::string& name) {
    const auto node = world_.nodes().find(name);
    if (node == world_.nodes().end()) return;
    NodeState& before = nodes_[name];
    const NodeState after{is_ready(node->second), has_silence_taint(node->second)};
    if (before.ready && !after.ready) ++report.readiness_flips;
    if (!before.tainted && after.tainted) ++report.taints;
    before = after;
  }

  void on_pod(std::string_view key) {
    const std::size_t name = key.rfind('/') + 1;
    const std::size_t ns = key.rfind('/', name - 2) + 1;
    const auto pod =
        world_.pods().find(api::PodKey{std::string(key.substr(ns, name - 1 - ns)), std::string(key.substr(name))});
    if (pod == world_.pods().end() || !pod->second.metadata.deletion_timestamp) return;
    if (terminating_.insert(pod->second.metadata.uid).second) ++report.deletions;
  }

  const World& world_;
  std::map<std::string, NodeState> nodes_;
  std::set<std::string> terminating_;
};

api::Json web(std::int32_t replicas) {
  const api::Json container = api::Json::object({{"name", "main"}, {"image", "none"}});
  const api::Json labels = api::Json::object({{"app", "web"}});
  return api::Json::object(
      {{"apiVersion", "apps/v1"},
       {"kind", "ReplicaSet"},
       {"metadata", api::Json::object({{"name", "web"}})},
       {"spec",
        api::Json::object(
            {{"replicas", replicas},
             {"selector", api::Json::object({{"matchLabels", labels}})},
             {"template",
              api::Json::object({{"metadata", api::Json::object({{"labels", labels}})},
                                 {"spec", api::Json::object({{"containers", api::Json::array({container})}})}})}})}});
}

void check_recovery(Cluster& cluster) {
  for (const auto& [name, node] : cluster.world().nodes()) {
    if (is_ready(node) && !has_silence_taint(node)) continue;
    cluster.invariants().violate(cluster.time().now(), fmt::format("node {} did not recover", name));
  }
}

}  // namespace

std::span<const Incident> incidents() {
  return kIncidents;
}

IncidentReport run_incident(const Incident& incident, Brakes brakes, std::uint64_t seed) {
  ClusterOptions options;
  options.seed = seed;
  options.nodes = incident.nodes;
  options.zones = incident.zones;
  options.node_memory = gibibytes(64);
  options.observe_interval_max = seconds(10);
  std::set<std::string> held_by;
  if (brakes == Brakes::kOn) {
    options.controllers.brakes = brakes_on();
    options.controllers.node_lifecycle.monitor.zones.full_disruption = lifecycle::FullDisruption::kSlow;
  }
  options.log =
      telemetry::Log([&held_by](telemetry::Level, std::string_view event, std::span<const telemetry::Field> fields) {
        if (event != "act held") return;
        for (const telemetry::Field& field : fields) {
          if (field.key == "reason") held_by.insert(field.value.substr(0, field.value.find(' ')));
        }
      });
  Cluster cluster(options);
  cluster.run_for(seconds(15));
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", web(incident.nodes * 2));
  cluster.run_for(kSettling);
  Tally tally(cluster.world());
  cluster.world().listen([&tally](const store::Change& change, Now) { tally.on_change(change); });
  incident.play(cluster);
  cluster.run_for(kRecovery);
  check_recovery(cluster);
  IncidentReport report = tally.report;
  report.trace_hash = cluster.world().trace().text();
  report.violations = cluster.invariants().violations();
  for (const std::string& brake : held_by) report.held_by += (report.held_by.empty() ? "" : ",") + brake;
  return report;
}

}  // namespace spillway::sim
