#include "sim/cluster.h"
#include "sim/node_facts.h"
#include "sim/run_observer.h"
#include "sim/scenario.h"
#include "sim/workload.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {

namespace {

api::Json serving_pod() {
  return api::Json::object(
      {{"containers",
        api::Json::array({api::Json::object(
            {{"name", "main"},
             {"image", "none"},
             {"command", api::Json::array({"serve"})},
             {"resources",
              api::Json::object({{"requests", api::Json::object({{"cpu", "100m"}, {"memory", "16Mi"}})}})}})})}});
}

void require(bool holds, Cluster& cluster, const std::string& text) {
  if (!holds) cluster.invariants().violate(cluster.time().now(), text);
}

}  // namespace

Report run_zone_failure(const ZoneFailureOptions& options) {
  ClusterOptions wanted;
  wanted.seed = options.seed;
  wanted.nodes = options.nodes;
  wanted.zones = options.zones;
  // Far from any memory threshold, so that the agents have little to look at.
  wanted.node_memory = gibibytes(64);
  wanted.observe_interval_max = seconds(10);
  Cluster cluster(wanted);
  if (options.observer != nullptr) options.observer->on_begin(cluster);
  const auto count = [&cluster](auto predicate) {
    const auto& nodes = cluster.world().nodes();
    return static_cast<std::uint64_t>(
        std::count_if(nodes.begin(), nodes.end(), [&](const auto& entry) { return predicate(entry.second); }));
  };
  const auto dead_zone = [](const api::Node& node) { return zone_of(node) == "zone-0"; };
  const auto total = static_cast<std::uint64_t>(options.nodes);

  cluster.run_for(seconds(10));
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", replica_set("web", options.nodes, serving_pod()));
  cluster.run_for(options.duration / 10 - seconds(10));
  require(count(is_ready) == total, cluster, fmt::format("{} of {} nodes got ready", count(is_ready), total));

  Report report;
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    if (cluster.node_zone(i) == "zone-0") cluster.partition_node(i);
  }
  for (int step = 0; step < 10; ++step) {
    cluster.run_for(options.duration / 20);
    report.tainted_nodes_max = std::max(report.tainted_nodes_max, count(has_silence_taint));
  }
  require(count([&](const api::Node& node) {
            return !dead_zone(node) && (!is_ready(node) || has_silence_taint(node));
          }) == 0,
          cluster, "a node outside the dead zone was touched");
  require(count([&](const api::Node& node) { return dead_zone(node) && is_ready(node); }) == 0, cluster,
          "a node of the dead zone still counts as ready");

  for (std::size_t i = 0; i < cluster.node_count(); ++i) cluster.heal_node(i);
  cluster.run_for(options.duration - options.duration / 10 - options.duration / 20 * 10);
  require(count(is_ready) == total, cluster, fmt::format("only {} of {} nodes recovered", count(is_ready), total));
  require(count(has_silence_taint) == 0, cluster, fmt::format("{} nodes kept their taint", count(has_silence_taint)));

  if (options.observer != nullptr) options.observer->on_end(cluster);
  report.violations = cluster.invariants().violations();
  report.trace_hash = cluster.world().trace().text();
  report.writes = cluster.world().trace().writes();
  report.messages = cluster.network().messages();
  report.events = cluster.time().events_run();
  report.summary = fmt::format("{} nodes in {} zones; zone-0 silent for {} s", options.nodes, options.zones,
                               std::chrono::duration_cast<seconds>(options.duration / 20 * 10).count());
  return report;
}

}  // namespace spillway::sim
