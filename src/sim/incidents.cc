#include "sim/incidents.h"

#include "sim/cluster.h"
#include "sim/incident_player.h"
#include "sim/node_facts.h"
#include "sim/run_observer.h"
#include "sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace spillway::sim {

namespace {

constexpr Duration kSettling = minutes(2);
constexpr Duration kRecovery = minutes(10);

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

api::Json plain_pod() {
  return api::Json::object(
      {{"containers", api::Json::array({api::Json::object({{"name", "main"}, {"image", "none"}})})}});
}

void check_recovery(Cluster& cluster) {
  for (const auto& [name, node] : cluster.world().nodes()) {
    if (is_ready(node) && !has_silence_taint(node)) continue;
    cluster.invariants().violate(cluster.time().now(), fmt::format("node {} did not recover", name));
  }
}

}  // namespace

IncidentReport run_incident(const Incident& incident, Brakes brakes, std::uint64_t seed, RunObserver* observer) {
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
  if (observer != nullptr) observer->on_begin(cluster);
  cluster.run_for(seconds(15));
  cluster.create("/apis/apps/v1/namespaces/default/replicasets",
                 replica_set("web", incident.nodes * incident.pods_per_node, plain_pod()));
  cluster.run_for(kSettling);
  Tally tally(cluster.world());
  cluster.world().listen([&tally](const store::Change& change, Now) { tally.on_change(change); });
  play(incident.steps, cluster);
  cluster.run_for(kRecovery);
  check_recovery(cluster);
  if (observer != nullptr) observer->on_end(cluster);
  IncidentReport report = tally.report;
  report.trace_hash = cluster.world().trace().text();
  report.violations = cluster.invariants().violations();
  for (const std::string& brake : held_by) report.held_by += (report.held_by.empty() ? "" : ",") + brake;
  return report;
}

}  // namespace spillway::sim
