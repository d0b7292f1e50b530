// ReplicaSets and DaemonSets while answers and watch events overtake each other: no pod is ever made without need. Each
// size is tried with many seeds: 6 in a test run, SPILLWAY_REPLICASET_ROUNDS for more.
#include "sim/cluster.h"
#include "sim/workload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

namespace spillway::sim {
namespace {

constexpr std::string_view kPods = "/registry/pods/default/";

std::uint64_t rounds() {
  const char* text = std::getenv("SPILLWAY_REPLICASET_ROUNDS");
  return text == nullptr ? 6 : std::strtoull(text, nullptr, 10);
}

api::Json pod_spec() {
  return api::Json::object(
      {{"containers", api::Json::array({api::Json::object(
                          {{"name", "main"}, {"image", "none"}, {"command", api::Json::array({"sleep", "1d"})}})})}});
}

struct Made {
  std::size_t pods = 0;  // ever
  std::size_t left = 0;  // at the end
};

/// Lets the workload come to rest in a cluster whose messages take up to three seconds, and as long again.
Made make(const api::Json& workload, std::string_view plural, std::size_t wanted, std::uint64_t seed,
          std::int32_t nodes) {
  ClusterOptions options;
  options.seed = seed;
  options.nodes = nodes;
  options.observe_interval_max = seconds(10);
  options.faults = {.latency_max = milliseconds(50), .slow_ppm = 200'000};
  Cluster cluster(options);
  std::set<std::string> ever;
  cluster.world().listen([&ever](const store::Change& change, Now) {
    if (change.key.starts_with(kPods) && !change.previous) ever.insert(change.key);
  });
  cluster.run_for(seconds(15));
  cluster.create(fmt::format("/apis/apps/v1/namespaces/default/{}", plural), workload);
  for (int waited = 0; waited < 120 && ever.size() < wanted; ++waited) cluster.run_for(seconds(1));
  cluster.run_for(seconds(20));
  return {ever.size(), cluster.world().pods().size()};
}

class ReplicaSets : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ReplicaSets, MakeAsManyPodsAsAreAskedFor) {
  const std::size_t wanted = GetParam();
  std::size_t beyond = 0;
  std::size_t rounds_beyond = 0;
  for (std::uint64_t seed = 1; seed <= rounds(); ++seed) {
    const Made made =
        make(replica_set("web", static_cast<std::int64_t>(wanted), pod_spec()), "replicasets", wanted, seed, 2);
    EXPECT_EQ(made.left, wanted) << "seed " << seed;
    EXPECT_EQ(made.pods, wanted) << "seed " << seed;
    beyond += made.pods > wanted ? made.pods - wanted : 0;
    rounds_beyond += made.pods > wanted ? 1 : 0;
  }
  fmt::print("{} replicas, {} rounds: {} pods beyond, in {} rounds\n", wanted, rounds(), beyond, rounds_beyond);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReplicaSets, ::testing::Values(1, 3, 5, 50));

TEST(DaemonSets, MakeOnePodForEachNode) {
  constexpr std::int32_t kNodes = 5;
  std::size_t beyond = 0;
  for (std::uint64_t seed = 1; seed <= rounds(); ++seed) {
    const Made made = make(daemon_set("agent", pod_spec()), "daemonsets", kNodes, seed, kNodes);
    EXPECT_EQ(made.left, kNodes) << "seed " << seed;
    EXPECT_EQ(made.pods, kNodes) << "seed " << seed;
    beyond += made.pods > kNodes ? made.pods - kNodes : 0;
  }
  fmt::print("a DaemonSet on {} nodes, {} rounds: {} pods beyond\n", kNodes, rounds(), beyond);
}

}  // namespace
}  // namespace spillway::sim
