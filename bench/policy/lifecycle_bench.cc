// One monitor pass over 5,000, 50,000 and 130,000 nodes whose leases move every ten seconds, with all of them healthy,
// 1 % silent for long, or one zone of ten dead; the pass in which that zone is found dead; one lease renewal, which is
// received outside of the passes. `vs_aim` and `vs_upstream`: how many times faster than the aim (5 ms for 5,000 and
// 150 ms for 130,000 nodes, in proportion between) and than upstream's pass. `bytes_per_node`: heap the monitor keeps;
// `bytes_grown`: by how much that grew in 200 more passes. Upstream's figures: spec "Node lifecycle", S20, no images,
// no pods, 1 worker.
#include "policy/lifecycle/node_monitor.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <malloc.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::lifecycle {
namespace {

constexpr std::int64_t kZones = 10;

struct Cluster {
  explicit Cluster(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      auto node = std::make_shared<api::Node>();
      node->metadata.name = fmt::format("ip-10-{:03}-{:03}.eu-west-1.compute.internal", i / 1000, i % 1000);
      node->metadata.uid = fmt::format("uid-{:06}", i);
      node->metadata.resource_version = fmt::format("{}", i + 1);
      node->metadata.labels = {{"kubernetes.io/hostname", node->metadata.name},
                               {"kubernetes.io/os", "linux"},
                               {"topology.kubernetes.io/region", "r1"},
                               {"topology.kubernetes.io/zone", fmt::format("z{}", i % kZones)}};
      node->metadata.creation_timestamp = now.wall;
      for (const char* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
        node->status.conditions.push_back({.type = type,
                                           .status = std::string_view(type) == "Ready" ? "True" : "False",
                                           .last_heartbeat_time = now.wall,
                                           .last_transition_time = now.wall});
      }
      api::Lease lease;
      lease.metadata.name = node->metadata.name;
      lease.renew_time = now.wall;
      leases.push_back(lease);
      index.emplace(node->metadata.name, nodes.size());
      nodes.push_back(std::move(node));
    }
  }

  void advance(Duration by) {
    now.mono += by;
    now.wall += std::chrono::duration_cast<microseconds>(by);
  }

  std::size_t index_of(std::string_view name) const { return index.find(name)->second; }

  /// All nodes are new to the monitor.
  void first_pass() {
    for (const auto& node : nodes) monitor.touch(node->metadata.name);
    pass();
  }

  std::size_t pass() {
    std::size_t writes = 0;
    const auto find = [this](std::string_view name) { return nodes[index_of(name)].get(); };
    const auto opening = monitor.begin_pass(find, now);
    assessed.clear();
    for (const api::Node* node : opening.due) {
      assessed.emplace_back(node, monitor.assess(*node, &leases[index_of(node->metadata.name)], now));
      monitor.count(*node, assessed.back().second);
    }
    benchmark::DoNotOptimize(monitor.finish_pass(now));
    for (const auto& [node, assessment] : assessed) {
      writes += assessment.write ? 1 : 0;
      benchmark::DoNotOptimize(monitor.decide_taint(*node, assessment, now));
      benchmark::DoNotOptimize(monitor.decide_marking(*node, assessment));
    }
    return writes;
  }

  /// The writes of the pass succeed; the nodes show them from then on.
  void pass_and_confirm() {
    pass();
    for (const auto& [seen, assessment] : assessed) {
      if (!assessment.write) continue;
      auto node = std::make_shared<api::Node>(*seen);
      node->status.conditions = *assessment.write;
      monitor.confirm_written(*node, assessment, now);
      monitor.touch(node->metadata.name);
      nodes[index_of(node->metadata.name)] = node;
    }
  }

  void renew(std::size_t i) {
    leases[i].renew_time = now.wall;
    monitor.assess(*nodes[i], &leases[i], now);
  }

  Now now{Instant(hours(1)), WallTime(seconds(1'700'000'000))};
  std::vector<std::shared_ptr<const api::Node>> nodes;
  std::map<std::string, std::size_t, std::less<>> index;
  std::vector<api::Lease> leases;
  std::vector<std::pair<const api::Node*, Assessment>> assessed;
  NodeMonitor monitor{MonitorConfig{}, Profile{}};
};

enum class Health { kAll, kOnePercentSilent, kOneZoneOfTenDead };

/// True if node `i` keeps renewing its lease.
bool renews(Health health, std::size_t i) {
  switch (health) {
    case Health::kAll:
      return true;
    case Health::kOnePercentSilent:
      return i % 100 != 0;
    case Health::kOneZoneOfTenDead:
      return i % kZones != 0;
  }
  return true;
}

/// Five seconds go by; half of the nodes renew their leases.
void five_seconds(Cluster& cluster, Health health) {
  static std::size_t turn = 0;
  ++turn;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    if (i % 1000 == 0) cluster.advance(Duration(seconds(5)) / (cluster.nodes.size() / 1000));
    if ((i + turn) % 2 == 0 && renews(health, i)) cluster.renew(i);
  }
}

std::size_t heap() {
  return mallinfo2().uordblks;
}

/// A figure in proportion to the number of nodes; a Rate of it says how many times faster a pass is.
benchmark::Counter times_faster(double reference_ms) {
  return benchmark::Counter(reference_ms * 1e-3, benchmark::Counter::kIsIterationInvariantRate);
}

/// A steady pass: silent nodes have been marked and wait for their turn.
void steady_pass(benchmark::State& state, Health health) {
  Cluster cluster(state.range(0));
  cluster.assessed.reserve(cluster.nodes.size());
  const std::size_t before = heap();
  cluster.first_pass();
  cluster.assessed.clear();
  for (int i = 0; i < 15; ++i) {  // longer than the grace period
    five_seconds(cluster, health);
    if (i == 1) cluster.assessed.clear();
    if (i == 2)
      state.counters["bytes_per_node"] = static_cast<double>(heap() - before) / static_cast<double>(state.range(0));
    cluster.pass_and_confirm();
  }
  const std::size_t steady = heap();
  for (auto _ : state) {
    state.PauseTiming();
    five_seconds(cluster, health);
    state.ResumeTiming();
    benchmark::DoNotOptimize(cluster.pass());
  }
  state.counters["bytes_grown"] = static_cast<double>(heap()) - static_cast<double>(steady);
  state.counters["looked_at"] = static_cast<double>(cluster.assessed.size());
  const double nodes = static_cast<double>(state.range(0));
  state.counters["vs_aim"] = times_faster(nodes <= 5000 ? 5.0 : nodes * 150.0 / 130'000.0);
  state.counters["vs_upstream"] = times_faster(nodes <= 5000 ? 41.0 : nodes * 590.0 / 50'000.0);
}

void all_healthy(benchmark::State& state) {
  steady_pass(state, Health::kAll);
}

void one_percent_failing(benchmark::State& state) {
  steady_pass(state, Health::kOnePercentSilent);
}

void one_zone_of_ten_dead(benchmark::State& state) {
  steady_pass(state, Health::kOneZoneOfTenDead);
}

/// The pass that finds a zone of ten silent: everything it does once.
void zone_dies(benchmark::State& state) {
  std::unique_ptr<Cluster> last;
  for (auto _ : state) {
    state.PauseTiming();
    last = std::make_unique<Cluster>(state.range(0));
    Cluster& cluster = *last;
    cluster.first_pass();
    cluster.advance(seconds(5));
    cluster.pass();
    cluster.advance(seconds(55));
    for (std::size_t i = 0; i < cluster.leases.size(); ++i) {
      if (renews(Health::kOneZoneOfTenDead, i)) cluster.renew(i);
    }
    state.ResumeTiming();
    benchmark::DoNotOptimize(cluster.pass());
  }
  state.counters["vs_aim"] = times_faster(static_cast<double>(state.range(0)) * 150.0 / 130'000.0);
}

/// One event of a renewed lease.
void lease_renewal(benchmark::State& state) {
  Cluster cluster(state.range(0));
  cluster.first_pass();
  std::size_t i = 0;
  for (auto _ : state) {
    cluster.advance(microseconds(77));
    cluster.renew(i);
    i = (i + 7919) % cluster.nodes.size();
  }
}

BENCHMARK(all_healthy)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond)->Iterations(200);
BENCHMARK(one_percent_failing)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond)->Iterations(50);
BENCHMARK(one_zone_of_ten_dead)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond)->Iterations(50);
BENCHMARK(zone_dies)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(lease_renewal)->Arg(5000)->Arg(50000)->Arg(130000);

}  // namespace
}  // namespace spillway::lifecycle
