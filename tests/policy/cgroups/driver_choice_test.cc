// The cgroup driver of a node, from its configuration and its container runtime.
#include "policy/cgroups/driver_choice.h"

#include <gtest/gtest.h>

namespace spillway::cgroups {
namespace {

constexpr auto kSystemd = CgroupDriver::kSystemd;
constexpr auto kCgroupfs = CgroupDriver::kCgroupfs;

TEST(DriverChoice, TheRuntimeSaysItWhereTheConfigurationDoesNot) {
  EXPECT_EQ(choose_driver({.runtime = kSystemd}).value(), kSystemd);
  EXPECT_EQ(choose_driver({.runtime = kCgroupfs}).value(), kCgroupfs);
  EXPECT_EQ(choose_driver({}).value(), kCgroupfs);
}

TEST(DriverChoice, TheConfigurationSaysItWhereTheRuntimeDoesNot) {
  EXPECT_EQ(choose_driver({.configured = kSystemd}).value(), kSystemd);
  EXPECT_EQ(choose_driver({.configured = kSystemd, .runtime = kSystemd}).value(), kSystemd);
}

TEST(DriverChoice, AWrongPairIsRefusedWithWhatToDo) {
  const auto chosen = choose_driver({.configured = kCgroupfs, .runtime = kSystemd, .socket = "/run/c.sock"});
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::kConflict);
  EXPECT_EQ(chosen.error().message,
            "cgroupDriver is cgroupfs, but the container runtime at /run/c.sock uses systemd, so that no pod could "
            "start: set cgroupDriver: systemd, or change the runtime (containerd: SystemdCgroup = false)");
}

}  // namespace
}  // namespace spillway::cgroups
