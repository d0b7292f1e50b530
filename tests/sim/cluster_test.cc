// The whole product on virtual time: scenarios end as they must, and the same seed is the same run.
#include "sim/cluster.h"

#include "sim/scenario.h"

#include <gtest/gtest.h>

namespace spillway::sim {

namespace {

TEST(ZoneFailure, OnlyTheDeadZoneIsTouchedAndAllRecovers) {
  const Report report = run_zone_failure({.seed = 1, .nodes = 12, .zones = 3, .duration = minutes(20)});
  for (const std::string& violation : report.violations) ADD_FAILURE() << violation;
  EXPECT_GT(report.tainted_nodes_max, 0U);
  EXPECT_LE(report.tainted_nodes_max, 4U);
}

TEST(ZoneFailure, TheSameSeedIsTheSameRun) {
  const ZoneFailureOptions options{.seed = 7, .nodes = 6, .zones = 2, .duration = minutes(10)};
  EXPECT_EQ(run_zone_failure(options).trace_hash, run_zone_failure(options).trace_hash);
}

TEST(ZoneFailure, AnotherSeedIsAnotherRun) {
  ZoneFailureOptions options{.seed = 7, .nodes = 4, .zones = 2, .duration = minutes(5)};
  const std::string first = run_zone_failure(options).trace_hash;
  options.seed = 8;
  EXPECT_NE(run_zone_failure(options).trace_hash, first);
}

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

class SwarmSeed : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(SwarmSeed, HoldsWhileThingsBreakAndComesToRest) {
  const Report report = run_swarm_seed(GetParam());
  SCOPED_TRACE(report.summary);
  for (const std::string& violation : report.violations) ADD_FAILURE() << violation;
}

INSTANTIATE_TEST_SUITE_P(Seeds, SwarmSeed, ::testing::Range<std::uint64_t>(1, 3));

}  // namespace

}  // namespace spillway::sim
