// The whole product on virtual time: time, crashes and restarts.
#include "sim/cluster.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::sim {

namespace {

TEST(Cluster, TimeInWhichNothingHappensIsSkipped) {
  ClusterOptions options;
  options.nodes = 6;
  options.node_memory = gibibytes(64);
  options.observe_interval_max = seconds(10);
  Cluster cluster(options);
  cluster.run_for(minutes(2));
  const std::uint64_t before = cluster.time().events_run();
  cluster.run_for(minutes(10));
  const std::uint64_t node_seconds = 6 * 600;
  EXPECT_LT(cluster.time().events_run() - before, 2 * node_seconds);
}

const api::Pod& hog_in(const Cluster& cluster) {
  return cluster.world().pods().at({"default", "hog"});
}

TEST(Cluster, PodsRunOnWhileTheirAgentStartsAgainWithOtherThresholds) {
  ClusterOptions options;
  options.nodes = 1;
  options.node_memory = gibibytes(1);
  Cluster cluster(options);
  cluster.run_for(seconds(20));
  const auto pod = api::parse_json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog"}, "spec":
      {"containers": [{"name": "main", "image": "none", "command": ["stress", "--memory", "200Mi"]}]}})");
  ASSERT_TRUE(pod);
  cluster.create("/api/v1/namespaces/default/pods", *pod);
  cluster.run_for(seconds(20));
  const auto before = cluster.running_on(0);
  ASSERT_EQ(before.size(), 1U);
  agent::EvictionOptions eviction;
  eviction.thresholds.hard = {{"memory.available", "100Mi"}};
  cluster.restart_agent(0, eviction);
  EXPECT_EQ(cluster.running_on(0), before) << "at once";
  cluster.run_for(minutes(2));
  EXPECT_EQ(cluster.running_on(0), before);
  EXPECT_EQ(hog_in(cluster).status.phase, "Running");
  ASSERT_EQ(hog_in(cluster).status.container_statuses.size(), 1U);
  EXPECT_EQ(hog_in(cluster).status.container_statuses[0].restart_count, 0);
  eviction.thresholds.hard = {{"memory.available", "900Mi"}};
  cluster.restart_agent(0, eviction);
  cluster.run_for(minutes(1));
  EXPECT_EQ(hog_in(cluster).status.phase, "Failed");
  EXPECT_EQ(hog_in(cluster).status.reason, "Evicted");
  EXPECT_TRUE(cluster.running_on(0).empty());
  EXPECT_TRUE(cluster.invariants().violations().empty());
}

TEST(Cluster, AnAgentWritesTheTimeOfItsOwnClock) {
  ClusterOptions options;
  options.nodes = 2;
  Cluster cluster(options);
  cluster.run_for(minutes(1));
  std::size_t behind = 0;
  std::size_t right = 0;
  cluster.world().listen([&](const store::Change& change, Now) {
    if (!change.key.starts_with("/registry/leases/kube-node-lease/") || !change.value) return;
    const bool is_behind = change.value->contains("\"renewTime\":\"2025-12-31T23:");
    EXPECT_EQ(is_behind, change.key.ends_with(cluster.node_name(0))) << *change.value;
    ++(is_behind ? behind : right);
  });
  cluster.jump_clock_of(0, -hours(1));
  cluster.run_for(minutes(1));
  EXPECT_GT(behind, 3U);
  EXPECT_GT(right, 3U);
}

}  // namespace

}  // namespace spillway::sim
