// Goal: with memory reserved for higher classes, the cgroups of the lower ones are limited by what pods request; no
// limit is below what is used.
#include "host/pods/pod_limits.h"

#include "support/fake_cgroup.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace spillway::host {
namespace {

using api::QosClass;

agent::CreatePod requesting_pod(QosClass qos, const std::string& memory) {
  auto definition = std::make_shared<api::Pod>();
  api::Container& container = definition->spec.containers.emplace_back();
  if (!memory.empty()) container.resources.requests["memory"] = api::parse_quantity(memory).value();
  agent::CreatePod made;
  made.qos = qos;
  made.definition = std::move(definition);
  return made;
}

TEST(ClassLimits, KeepMemoryForHigherClasses) {
  const std::array pods{requesting_pod(QosClass::kGuaranteed, "1Gi"), requesting_pod(QosClass::kBurstable, "512Mi"),
                        requesting_pod(QosClass::kBurstable, "512Mi"), requesting_pod(QosClass::kBestEffort, "")};
  const std::array all{&pods[0], &pods[1], &pods[2], &pods[3]};
  agent::ResourceFacts facts;
  const auto memory = [&](QosClass qos) { return class_limits(qos, all, facts).memory; };
  EXPECT_EQ(memory(QosClass::kBurstable), std::nullopt) << "nothing is reserved";
  facts.qos_reserve = {.percent = 50, .allocatable = gibibytes(4)};
  EXPECT_EQ(memory(QosClass::kBurstable), mebibytes(3584));
  EXPECT_EQ(memory(QosClass::kBestEffort), mebibytes(3072));
  EXPECT_EQ(memory(QosClass::kGuaranteed), std::nullopt);
  EXPECT_EQ(class_limits(QosClass::kBurstable, all, facts).swap, Swap::kLeftAsItIs);
}

class UsedMemory : public ::testing::TestWithParam<CgroupVersion> {};

TEST_P(UsedMemory, IsTheLeastLimit) {
  support::FakeCgroup fake(GetParam());
  fake.add("burstable");
  const std::string file = GetParam() == CgroupVersion::kV2 ? "memory.current" : "memory.usage_in_bytes";
  fake.put(Controller::kMemory, "burstable", file, "5000\n");
  const CgroupDir cgroup = fake.root().open_child("burstable").value();
  CgroupLimits limits{.memory = Bytes{4000}};
  EXPECT_TRUE(spare_used_memory(cgroup, limits));
  EXPECT_EQ(limits.memory, Bytes{5000});
  limits.memory = Bytes{6000};
  EXPECT_FALSE(spare_used_memory(cgroup, limits));
  EXPECT_EQ(limits.memory, Bytes{6000});
  limits.memory.reset();
  EXPECT_FALSE(spare_used_memory(cgroup, limits));
}

INSTANTIATE_TEST_SUITE_P(BothVersions, UsedMemory, ::testing::Values(CgroupVersion::kV1, CgroupVersion::kV2));

}  // namespace
}  // namespace spillway::host
