// The cgroup driver in what a container runtime says of itself, and members of the configuration that limits follow
// from.
#include "agent/cri/runtime_driver.h"

#include "agent/config/kubelet_config.h"
#include "agent/config/resource_config.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

using api::Json;
using cgroups::CgroupDriver;

Json parsed(const char* text) {
  return api::parse_json(text).value();
}

TEST(RuntimeDriver, AnAnswerToRuntimeConfig) {
  EXPECT_EQ(driver_in_config(parsed(R"({"linux":{}})")), CgroupDriver::kSystemd) << "zero values are left out";
  EXPECT_EQ(driver_in_config(parsed(R"({"linux":{"cgroup_driver":1}})")), CgroupDriver::kCgroupfs);
  EXPECT_EQ(driver_in_config(parsed(R"({"linux":{"cgroup_driver":7}})")), std::nullopt);
  EXPECT_EQ(driver_in_config(parsed("{}")), std::nullopt);
}

TEST(RuntimeDriver, TheInfoOfAnOlderContainerd) {
  const auto config = [](const char* options) {
    return fmt::format(R"({{"containerd":{{"defaultRuntimeName":"runc","runtimes":{{"runc":{{"options":{}}},)"
                       R"("other":{{"options":{{"SystemdCgroup":true}}}}}}}}}})",
                       options);
  };
  EXPECT_EQ(driver_in_status(config(R"({"SystemdCgroup":true})")), CgroupDriver::kSystemd);
  EXPECT_EQ(driver_in_status(config(R"({"SystemdCgroup":false})")), CgroupDriver::kCgroupfs);
  EXPECT_EQ(driver_in_status(config("null")), CgroupDriver::kCgroupfs) << "the default, in another runtime's place";
}

TEST(RuntimeDriver, OtherTextsSayNothing) {
  for (const char* text : {"", "{", "[]", "{}", R"({"containerd":{}})", R"({"containerd":{"defaultRuntimeName":"x"}})"})
    EXPECT_EQ(driver_in_status(text), std::nullopt) << text;
}

Outcome checked(const char* text) {
  const CheckedConfig config = check_config({.file = {}, .value = parsed(text)});
  EXPECT_TRUE(config.findings.empty()) << config.findings.front().text();
  return check_resources(effective_config(config.value, std::nullopt));
}

TEST(ResourceConfig, APeriodOfOnesOwnUnlessItsGateIsOff) {
  EXPECT_TRUE(checked(R"({"cpuCFSQuotaPeriod":"100ms"})"));
  EXPECT_TRUE(checked(R"({"cpuCFSQuotaPeriod":"0s"})")) << "absent";
  EXPECT_EQ(checked(R"({"cpuCFSQuotaPeriod":"5ms","featureGates":{"CustomCPUCFSQuotaPeriod":false}})").error().message,
            "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {5ms} requires feature gate CustomCPUCFSQuotaPeriod");
  EXPECT_TRUE(checked(R"({"cpuCFSQuotaPeriod":"5ms"})"));
  EXPECT_FALSE(checked(R"({"cpuCFSQuotaPeriod":"2s"})"));
}

TEST(ResourceConfig, ThePeriodInMicroseconds) {
  const auto micros = [](const char* text) {
    return cpu_period_micros(effective_config(check_config({.file = {}, .value = parsed(text)}).value, std::nullopt));
  };
  EXPECT_EQ(micros("{}"), 100'000);
  EXPECT_EQ(micros(R"({"cpuCFSQuotaPeriod":"5ms"})"), 5'000);
}

TEST(ResourceConfig, AReservationBelowZeroIsRefused) {
  const auto refused = checked(R"({"kubeReserved":{"cpu":"-200m","memory":"1Gi"}})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().at, "kubeReserved[cpu]");
  EXPECT_EQ(refused.error().message, "resource quantity for \"cpu\" cannot be negative: -200m");
  EXPECT_FALSE(checked(R"({"systemReserved":{"memory":"-200G"}})"));
  EXPECT_TRUE(checked(R"({"systemReserved":{"memory":"0"}})"));
}

TEST(ResourceConfig, FactorAndSwap) {
  EXPECT_TRUE(checked(R"({"memoryThrottlingFactor":0.5})"));
  EXPECT_TRUE(checked(R"({"memoryThrottlingFactor":1})"));
  EXPECT_FALSE(checked(R"({"memoryThrottlingFactor":0})"));
  EXPECT_FALSE(checked(R"({"memoryThrottlingFactor":1.5})"));
  EXPECT_TRUE(checked(R"({"memorySwap":{"swapBehavior":"LimitedSwap"}})"));
  EXPECT_TRUE(checked(R"({"memorySwap":{}})"));
  EXPECT_EQ(checked(R"({"memorySwap":{"swapBehavior":"limited"}})").error().message,
            "memorySwap.swapBehavior \"limited\" must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"");
}

}  // namespace
}  // namespace spillway::agent
