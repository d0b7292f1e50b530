// The speed of a simulated cluster, compared with real time: `times_real_time` is virtual seconds per second of
// processor time; the simulator has one thread. Steady: one pod per node, nothing happens but heartbeats, the start is
// not counted. Zone outage: start, the silence of one of three zones and its recovery, all counted.
// Peer: KWOK and SimKube run in real time, 1.
#include "api/json/json.h"
#include "base/check.h"
#include "sim/cluster.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"

#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

namespace spillway::sim {
namespace {

constexpr std::string_view kReplicaSet = R"({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
  "spec": {"selector": {"matchLabels": {"app": "web"}},
           "template": {"metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "main", "image": "none", "command": ["serve"]}]}}}})";

void steady(benchmark::State& state) {
  ClusterOptions options;
  options.nodes = static_cast<std::int32_t>(state.range(0));
  options.zones = 3;
  options.node_memory = gibibytes(64);
  options.observe_interval_max = seconds(10);
  Cluster cluster(options);
  cluster.run_for(seconds(10));
  auto replica_set = api::parse_json(kReplicaSet);
  SPILLWAY_CHECK(replica_set.has_value());
  replica_set->make({"spec", "replicas"}) = options.nodes;
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", *replica_set);
  cluster.run_for(minutes(2));
  const std::uint64_t writes = cluster.world().trace().writes();
  constexpr std::int64_t kStepSeconds = 60;
  for (auto _ : state) cluster.run_for(seconds(kStepSeconds));
  const auto virtual_seconds = static_cast<double>(state.iterations() * kStepSeconds);
  state.counters["times_real_time"] = benchmark::Counter(virtual_seconds, benchmark::Counter::kIsRate);
  state.counters["writes_per_s"] =
      benchmark::Counter(static_cast<double>(cluster.world().trace().writes() - writes), benchmark::Counter::kIsRate);
  if (!cluster.invariants().violations().empty()) state.SkipWithError("an invariant was violated");
}

/// examples/incidents/zone-outage.yaml: 2 min of start, 18 of them the timeline.
void zone_outage(benchmark::State& state) {
  constexpr std::string_view kText =
      "name: zone-outage\n"
      "cluster: {zones: 3, podsPerNode: 1}\n"
      "duration: 18m\n"
      "timeline:\n"
      "- {at: 0s, partition: {zone: zone-0}, for: 10m}\n";
  const auto no_file = [](const std::string& file) -> Result<std::string> { return invalid(file, "cannot be read"); };
  const auto scenario = parse_scenario("zone-outage.yaml", std::string(kText), no_file,
                                       {.inventory = {}, .nodes = state.range(0), .zones = {}});
  SPILLWAY_CHECK(scenario.has_value());
  double virtual_seconds = 0;
  for (auto _ : state) {
    const RunOutcome outcome = run_scenario(*scenario, {.seed = 1, .should_continue = {}});
    if (!outcome.violations.empty()) state.SkipWithError("an invariant was violated");
    virtual_seconds += std::chrono::duration<double>(outcome.lasted).count();
  }
  state.counters["times_real_time"] = benchmark::Counter(virtual_seconds, benchmark::Counter::kIsRate);
}

BENCHMARK(steady)->Arg(100)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond);
BENCHMARK(zone_outage)->Arg(100)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace spillway::sim
