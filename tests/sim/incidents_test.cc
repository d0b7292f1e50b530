// The incidents that are quick to play: recovery, and that brakes never do more than no brakes.
#include "sim/incidents.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::sim {

namespace {

class SmallIncident : public ::testing::TestWithParam<std::string_view> {};

TEST_P(SmallIncident, RecoversAndBrakesOnlyHold) {
  const auto all = incidents();
  const auto incident = std::ranges::find(all, GetParam(), &Incident::name);
  ASSERT_NE(incident, all.end());
  const IncidentReport off = run_incident(*incident, Brakes::kOff, 1);
  const IncidentReport on = run_incident(*incident, Brakes::kOn, 1);
  for (const std::string& violation : off.violations) ADD_FAILURE() << violation;
  for (const std::string& violation : on.violations) ADD_FAILURE() << violation;
  EXPECT_LE(on.readiness_flips, off.readiness_flips);
  EXPECT_LE(on.taints, off.taints);
  EXPECT_LE(on.deletions, off.deletions);
}

INSTANTIATE_TEST_SUITE_P(Named, SmallIncident, ::testing::Values("lost-lease-watch", "killed-before-tainting"));

}  // namespace

}  // namespace spillway::sim
