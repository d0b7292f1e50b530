// One monitor pass over nodes whose leases all moved, with all of them healthy, 1 % silent for long, or one zone of ten
// dead; and the pass in which that zone is found dead. With the heap the monitor keeps per node.
// Counterpart: the upstream pass on the same input, spec "Node lifecycle", S20.
#include "policy/lifecycle/node_monitor.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <malloc.h>

#include <memory>
#include <vector>

namespace spillway::lifecycle {
namespace {

constexpr std::int64_t kZones = 10;

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
                               {"topology.kubernetes.io/zone", fmt::format("z{}", i % kZones)}};
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

  /// The writes of the pass succeed; the nodes show them from then on.
  void pass_and_confirm() {
    pass();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!assessed[i].write) continue;
      auto node = std::make_shared<api::Node>(*nodes[i]);
      node->status.conditions = *assessed[i].write;
      node->metadata.resource_version += "1";
      monitor.confirm_written(*node, assessed[i], now);
      nodes[i] = node;
      snapshot[i] = node.get();
    }
  }

  Now now{Instant(hours(1)), WallTime(seconds(1'700'000'000))};
  std::vector<std::shared_ptr<const api::Node>> nodes;
  std::vector<const api::Node*> snapshot;
  std::vector<api::Lease> leases;
  std::vector<Assessment> assessed;
  NodeMonitor monitor{MonitorConfig{}, Profile{}};
};

enum class Health { kAll, kOnePercentSilent, kOneZoneOfTenDead };

/// Whether node `i` goes on renewing its lease.
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

/// A steady pass: who is silent has been marked and waits for its turn. `bytes_per_node`: what the monitor keeps.
void steady_pass(benchmark::State& state, Health health) {
  Cluster cluster(state.range(0));
  cluster.assessed.reserve(cluster.nodes.size());
  const std::size_t heap_before = mallinfo2().uordblks;
  cluster.pass();
  cluster.assessed.clear();
  const std::size_t heap_after = mallinfo2().uordblks;
  const auto renew = [&cluster, health] {
    for (std::size_t i = 0; i < cluster.leases.size(); ++i) {
      if (renews(health, i)) cluster.leases[i].renew_time = cluster.now.wall;
    }
  };
  for (int i = 0; i < 15; ++i) {  // longer than the grace period
    cluster.advance(seconds(5));
    renew();
    cluster.pass_and_confirm();
  }
  for (auto _ : state) {
    state.PauseTiming();
    cluster.advance(seconds(5));
    renew();
    state.ResumeTiming();
    benchmark::DoNotOptimize(cluster.pass());
  }
  state.counters["ns_per_node"] =
      benchmark::Counter(static_cast<double>(state.range(0)) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_node"] =
      static_cast<double>(heap_after - heap_before) / static_cast<double>(state.range(0));
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
  for (auto _ : state) {
    state.PauseTiming();
    Cluster cluster(state.range(0));
    cluster.pass();
    cluster.advance(seconds(60));
    for (std::size_t i = 0; i < cluster.leases.size(); ++i) {
      if (renews(Health::kOneZoneOfTenDead, i)) cluster.leases[i].renew_time = cluster.now.wall;
    }
    state.ResumeTiming();
    benchmark::DoNotOptimize(cluster.pass());
  }
}

BENCHMARK(all_healthy)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond);
BENCHMARK(one_percent_failing)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond);
BENCHMARK(one_zone_of_ten_dead)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond);
BENCHMARK(zone_dies)->Arg(5000)->Arg(50000)->Arg(130000)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace spillway::lifecycle
