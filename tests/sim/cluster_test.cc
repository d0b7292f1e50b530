// The whole product on virtual time: time, crashes and restarts.
#include "sim/cluster.h"

#include <gtest/gtest.h>

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

}  // namespace

}  // namespace spillway::sim
