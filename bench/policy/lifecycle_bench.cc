// One monitor pass over healthy nodes whose leases all moved, and one over a cluster that has just fallen silent.
// Counterpart: the upstream pass on the same input, spec "Node lifecycle", S20.
#include "policy/lifecycle/node_monitor.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <vector>

namespace spillway::lifecycle {
namespace {

struct Cluster {
  explicit Cluster(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      auto node = std::make_shared<api::Node>();
      node->metadata.name = fmt::format("node-{:06}", i);
      node->metadata.uid = fmt::format("uid-{:06}", i);
      node->metadata.resource_version = fmt::format("{}", i + 1);
      node->metadata.labels = {{"kubernetes.io/hostname", node->metadata.name},
                               {"kubernetes.io/os", "linux"},
                               {"topology.kubernetes.io/region", "r1"},
                               {"topology.kubernetes.io/zone", fmt::format("z{}", i % 3)}};
      node->metadata.creation_timestamp = now.wall;
      for (const char* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
        node->status.conditions.push_back({.type = type,
                                           .status = std::string_view(type) == "Ready" ? "True" : "False",
                                           .last_heartbeat_time = now.wall,
                                           .last_transition_time = now.wall});
      }
      api::Lease lease;
      lease.renew_time = now.wall;
      nodes.push_back(node);
      snapshot.push_back(node.get());
      leases.push_back(lease);
    }
  }

  void advance(Duration by) {
    now.mono += by;
    now.wall += std::chrono::duration_cast<microseconds>(by);
  }

  std::size_t pass() {
    std::size_t writes = 0;
    const auto opening = monitor.begin_pass(snapshot, now);
    benchmark::DoNotOptimize(opening);
    assessed.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      assessed.push_back(monitor.assess(*nodes[i], &leases[i], now));
      monitor.count(*nodes[i], assessed.back());
    }
    const auto verdict = monitor.finish_pass(snapshot, now);
    benchmark::DoNotOptimize(verdict);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      writes += assessed[i].write ? 1 : 0;
      benchmark::DoNotOptimize(monitor.decide_taint(*nodes[i], assessed[i], now));
      benchmark::DoNotOptimize(monitor.decide_marking(*nodes[i], assessed[i]));
    }
    return writes;
  }

  Now now{Instant(hours(1)), WallTime(seconds(1'700'000'000))};
  std::vector<std::shared_ptr<const api::Node>> nodes;
  std::vector<const api::Node*> snapshot;
  std::vector<api::Lease> leases;
  std::vector<Assessment> assessed;
  NodeMonitor monitor{MonitorConfig{}, Profile{}};
};

void healthy_pass(benchmark::State& state) {
  Cluster cluster(state.range(0));
  cluster.pass();
  for (auto _ : state) {
    state.PauseTiming();
    cluster.advance(seconds(5));
    for (api::Lease& lease : cluster.leases) lease.renew_time = cluster.now.wall;
    state.ResumeTiming();
    benchmark::DoNotOptimize(cluster.pass());
  }
  state.counters["ns_per_node"] =
      benchmark::Counter(static_cast<double>(state.range(0)) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(healthy_pass)->Arg(5000)->Arg(130000)->Unit(benchmark::kMillisecond);

void mass_failure_pass(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Cluster cluster(state.range(0));
    cluster.pass();
    cluster.advance(seconds(60));
    for (std::size_t i = 0; i < cluster.leases.size(); i += 20) cluster.leases[i].renew_time = cluster.now.wall;
    state.ResumeTiming();
    benchmark::DoNotOptimize(cluster.pass());
  }
}

BENCHMARK(mass_failure_pass)->Arg(5000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::lifecycle
