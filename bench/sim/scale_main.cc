// One simulated cluster of a size: what its start and its rest cost, as one JSON document. scale.py runs a row of
// sizes, each in a process of its own, so that its memory is its own. Start: from nothing until every pod runs. Rest:
// nothing but heartbeats, one after another as long as asked.
#include "api/json/json.h"
#include "base/check.h"
#include "runtime/fast_heap.h"
#include "sim/cluster.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace spillway::sim {
namespace {

struct Options {
  std::int32_t nodes = 100;
  std::int32_t pods_per_node = 3;
  std::int64_t rest_seconds = 300;
  std::int64_t start_seconds_max = 3600;  // virtual
  std::uint64_t seed = 1;
};

constexpr std::string_view kReplicaSet = R"({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
  "spec": {"selector": {"matchLabels": {"app": "web"}},
           "template": {"metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "main", "image": "none", "command": ["serve"]}]}}}})";

/// Time and memory that the process has used so far.
struct Spent {
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::int64_t memory_bytes = 0;  // the most at once

  static Spent now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds_of = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    return {std::chrono::duration<double>(wall).count(), seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
            std::int64_t{usage.ru_maxrss} * 1024};
  }
};

std::int64_t count_running(const Cluster& cluster) {
  const auto& pods = cluster.world().pods();
  return std::ranges::count_if(pods, [](const auto& pod) { return pod.second.status.phase == "Running"; });
}

double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Virtual time it took; the run ends if the pods do not come.
Duration start(Cluster& cluster, const Options& options) {
  const auto pods = std::int64_t{options.nodes} * options.pods_per_node;
  const Instant begin = cluster.time().now().mono;
  while (std::ssize(cluster.world().nodes()) < options.nodes) cluster.run_for(seconds(1));
  auto replica_set = api::parse_json(kReplicaSet);
  SPILLWAY_CHECK(replica_set.has_value());
  replica_set->make({"spec", "replicas"}) = pods;
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", *replica_set);
  while (count_running(cluster) < pods) {
    cluster.run_for(seconds(1));
    SPILLWAY_CHECK(cluster.time().now().mono - begin < seconds(options.start_seconds_max));
  }
  return cluster.time().now().mono - begin;
}

int run(const Options& options) {
  ClusterOptions of;
  of.seed = options.seed;
  of.nodes = options.nodes;
  of.zones = 3;
  of.node_memory = gibibytes(64);
  of.observe_interval_max = seconds(10);
  const Spent before = Spent::now();
  Cluster cluster(of);
  const Duration started = start(cluster, options);
  const Spent at_rest = Spent::now();
  const std::string start_hash = cluster.world().trace().text();
  const std::uint64_t events = cluster.time().events_run();
  const std::uint64_t messages = cluster.network().messages();
  cluster.run_for(seconds(options.rest_seconds));
  const Spent after = Spent::now();
  const double rest_cpu = after.cpu_seconds - at_rest.cpu_seconds;
  const api::Json result =
      api::Json::object({{"nodes", std::int64_t{options.nodes}},
                         {"pods", std::int64_t{options.nodes} * options.pods_per_node},
                         {"startCpuSeconds", at_rest.cpu_seconds - before.cpu_seconds},
                         {"startWallSeconds", at_rest.wall_seconds - before.wall_seconds},
                         {"startVirtualSeconds", to_seconds(started)},
                         {"restCpuSeconds", rest_cpu},
                         {"restWallSeconds", after.wall_seconds - at_rest.wall_seconds},
                         {"restVirtualSeconds", options.rest_seconds},
                         {"restTimesRealTime", static_cast<double>(options.rest_seconds) / rest_cpu},
                         {"memoryBytes", after.memory_bytes},
                         {"bytesPerNode", (after.memory_bytes - before.memory_bytes) / options.nodes},
                         {"writes", static_cast<std::int64_t>(cluster.world().trace().writes())},
                         {"restEvents", static_cast<std::int64_t>(cluster.time().events_run() - events)},
                         {"restMessages", static_cast<std::int64_t>(cluster.network().messages() - messages)},
                         {"startHash", start_hash},
                         {"traceHash", cluster.world().trace().text()},
                         {"violations", static_cast<std::int64_t>(cluster.invariants().violations().size())}});
  fmt::print("{}\n", api::to_text(result));
  std::fflush(stdout);
  return cluster.invariants().violations().empty() ? 0 : 1;
}

}  // namespace
}  // namespace spillway::sim

int main(int argc, char** argv) {
  spillway::sim::Options options;
  CLI::App app("What a simulated cluster costs");
  app.add_option("--nodes", options.nodes, "Machines")->check(CLI::Range(1, 1'000'000));
  app.add_option("--pods-per-node", options.pods_per_node, "Pods of a ReplicaSet")->check(CLI::Range(0, 100));
  app.add_option("--rest", options.rest_seconds, "Virtual seconds of rest")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Of everything random");
  CLI11_PARSE(app, argc, argv);
  spillway::runtime::use_fast_heap();
  return spillway::sim::run(options);
}
