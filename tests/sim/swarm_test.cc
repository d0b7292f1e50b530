// Twenty seeds of the swarm (`./dev swarm` runs any number): whatever breaks, the invariants hold, and in the end there
// is rest.
#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::sim {
namespace {

class Swarm : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Swarm, HoldsItsInvariantsAndComesToRest) {
  const Report report = run_swarm_seed(GetParam());
  EXPECT_THAT(report.violations, ::testing::IsEmpty()) << "replay: ./dev swarm --seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Swarm, ::testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace spillway::sim
