// The whole product on virtual time: scenarios end as they must, and the same seed is the same run.
#include "sim/scenario.h"

#include <gtest/gtest.h>

namespace spillway::sim {

namespace {

TEST(ZoneFailure, OnlyTheDeadZoneIsTouchedAndAllRecovers) {
  const Report report = run_zone_failure({.seed = 1, .nodes = 30, .zones = 3, .duration = minutes(20)});
  for (const std::string& violation : report.violations) ADD_FAILURE() << violation;
  EXPECT_GT(report.tainted_nodes_max, 0U);
  EXPECT_LE(report.tainted_nodes_max, 10U);
}

TEST(ZoneFailure, TheSameSeedIsTheSameRun) {
  const ZoneFailureOptions options{.seed = 7, .nodes = 12, .zones = 2, .duration = minutes(10)};
  EXPECT_EQ(run_zone_failure(options).trace_hash, run_zone_failure(options).trace_hash);
}

TEST(ZoneFailure, AnotherSeedIsAnotherRun) {
  ZoneFailureOptions options{.seed = 7, .nodes = 12, .zones = 2, .duration = minutes(5)};
  const std::string first = run_zone_failure(options).trace_hash;
  options.seed = 8;
  EXPECT_NE(run_zone_failure(options).trace_hash, first);
}

class SwarmSeed : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(SwarmSeed, HoldsWhileThingsBreakAndComesToRest) {
  const Report report = run_swarm_seed(GetParam());
  SCOPED_TRACE(report.summary);
  for (const std::string& violation : report.violations) ADD_FAILURE() << violation;
}

INSTANTIATE_TEST_SUITE_P(Seeds, SwarmSeed, ::testing::Range<std::uint64_t>(1, 6));

}  // namespace

}  // namespace spillway::sim
