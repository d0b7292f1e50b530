// Slices of pods as properties of systemd's units, for both versions of cgroups.
#include "host/systemd/unit_properties.h"

#include <gtest/gtest.h>

#include <limits>

namespace spillway::host {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

const UnitProperty* find(const UnitProperties& properties, std::string_view name) {
  for (const UnitProperty& each : properties)
    if (each.name == name) return &each;
  return nullptr;
}

TEST(UnitProperties, ASliceIsAccountedForAndWantsItsParent) {
  const cgroups::SliceUnit unit{"kubepods-burstable.slice", "kubepods.slice"};
  const UnitProperties v2 = slice_properties(unit, CgroupVersion::kV2);
  EXPECT_EQ(find(v2, "Wants")->value, (decltype(UnitProperty::value){std::vector<std::string>{"kubepods.slice"}}));
  for (const char* name : {"MemoryAccounting", "CPUAccounting", "IOAccounting", "TasksAccounting"})
    ASSERT_NE(find(v2, name), nullptr) << name;
  const UnitProperties v1 = slice_properties(unit, CgroupVersion::kV1);
  EXPECT_EQ(find(v1, "IOAccounting"), nullptr);
  EXPECT_NE(find(v1, "BlockIOAccounting"), nullptr);
}

TEST(UnitProperties, LimitsHaveTheNamesOfTheirVersion) {
  const CgroupLimits limits{.memory = mebibytes(64),
                            .pids = 100,
                            .cpu_shares = 1024,
                            .cpu_quota_micros = 20'000,
                            .memory_min = mebibytes(16)};
  EXPECT_EQ(limit_properties(limits, CgroupVersion::kV2),
            (UnitProperties{{"MemoryMax", std::uint64_t{64} << 20},
                            {"MemorySwapMax", std::uint64_t{0}},
                            {"MemoryMin", std::uint64_t{16} << 20},
                            {"CPUWeight", std::uint64_t{39}},
                            {"CPUQuotaPerSecUSec", std::uint64_t{200'000}},
                            {"CPUQuotaPeriodUSec", std::uint64_t{100'000}},
                            {"TasksMax", std::uint64_t{100}}}));
  EXPECT_EQ(limit_properties(limits, CgroupVersion::kV1),
            (UnitProperties{{"MemoryLimit", std::uint64_t{64} << 20},
                            {"CPUShares", std::uint64_t{1024}},
                            {"CPUQuotaPerSecUSec", std::uint64_t{200'000}},
                            {"CPUQuotaPeriodUSec", std::uint64_t{100'000}},
                            {"TasksMax", std::uint64_t{100}}}));
}

TEST(UnitProperties, WhatIsAbsentIsLeftAsItIs) {
  EXPECT_TRUE(limit_properties({}, CgroupVersion::kV2).empty());
}

TEST(UnitProperties, AQuotaIsRoundedUpToASystemdStep) {
  const auto per_second = [](std::int64_t quota, std::int64_t period) {
    return std::get<std::uint64_t>(
        find(limit_properties({.cpu_quota_micros = quota, .cpu_period_micros = period}, CgroupVersion::kV2),
             "CPUQuotaPerSecUSec")
            ->value);
  };
  EXPECT_EQ(per_second(1'000, 100'000), 10'000U);
  EXPECT_EQ(per_second(1'001, 100'000), 20'000U) << "not less than was asked for";
  EXPECT_EQ(per_second(5'000, 10'000), 500'000U);
  EXPECT_EQ(per_second(-1, 100'000), kNoLimit);
}

}  // namespace
}  // namespace spillway::host
