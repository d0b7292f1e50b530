#include "policy/eviction/clearance.h"

#include "policy/eviction/threshold_parse.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::eviction {
namespace {

const Capacities kNode{{Signal::kMemoryAvailable, std::int64_t{8} * 1024 * 1024 * 1024}};

std::string overlap(ThresholdConfig ours, ThresholdConfig theirs, const Capacities& capacities = kNode) {
  const auto mine = parse_thresholds(ours);
  const auto others = parse_thresholds(theirs);
  if (!mine || !others) return "unreadable";
  const auto found = find_overlap(*mine, *others, capacities);
  return found ? text_of(found->ours) + " | " + text_of(found->theirs) : "";
}

ThresholdConfig hard(std::string value, std::string signal = "memory.available") {
  return {.hard = {{std::move(signal), std::move(value)}},
          .soft = {},
          .soft_grace_period = {},
          .minimum_reclaim = {},
          .enforce_pods = EnforcePods::kNo};
}

ThresholdConfig soft(std::string value, std::string grace) {
  return {.hard = {},
          .soft = {{"memory.available", std::move(value)}},
          .soft_grace_period = {{"memory.available", std::move(grace)}},
          .minimum_reclaim = {},
          .enforce_pods = EnforcePods::kNo};
}

TEST(Clearance, AHardThresholdMustBeStrictlyBeforeTheKubeletsHardOne) {
  EXPECT_EQ(overlap(hard("200Mi"), hard("100Mi")), "");
  EXPECT_EQ(overlap(hard("100Mi"), hard("100Mi")), "memory.available<100Mi | memory.available<100Mi");
  EXPECT_EQ(overlap(hard("50Mi"), hard("100Mi")), "memory.available<50Mi | memory.available<100Mi");
}

TEST(Clearance, ASignalTheKubeletDoesNotWatchIsFree) {
  EXPECT_EQ(overlap(hard("100Mi"), hard("10%", "nodefs.available")), "");
  EXPECT_EQ(overlap(hard("100Mi"), {}), "");
  EXPECT_EQ(overlap(hard("100Mi"), hard("0%")), "") << "switched off";
  EXPECT_EQ(overlap(hard("100Mi"), hard("NaN%")), "") << "never met";
}

TEST(Clearance, DisksMayBeOneAndTheSame) {
  EXPECT_EQ(overlap(hard("20%", "nodefs.available"), hard("15%", "imagefs.available")), "");
  EXPECT_EQ(overlap(hard("12%", "nodefs.available"), hard("15%", "imagefs.available")),
            "nodefs.available<12% | imagefs.available<15%");
  EXPECT_EQ(overlap(hard("6%", "nodefs.inodesFree"), hard("15%", "imagefs.available")), "") << "bytes are not inodes";
  EXPECT_NE(overlap(hard("4%", "imagefs.inodesFree"), hard("5%", "nodefs.inodesFree")), "");
}

TEST(Clearance, SharesAreComparedAtTheCapacityOfTheNode) {
  EXPECT_EQ(overlap(hard("10%"), hard("800Mi")), "") << "819.2Mi of 8Gi";
  EXPECT_EQ(overlap(hard("10%"), hard("820Mi")), "memory.available<10% | memory.available<820Mi");
  EXPECT_EQ(overlap(hard("10%"), hard("5%"), {}), "") << "two shares need no capacity";
  EXPECT_EQ(overlap(hard("10%"), hard("1Mi"), {}), "memory.available<10% | memory.available<1Mi")
      << "what cannot be compared is not believed";
}

TEST(Clearance, SoftThresholdsAreEarlierByAmountOrByGraceAndLaterByNeither) {
  EXPECT_EQ(overlap(soft("500Mi", "1m"), soft("400Mi", "1m")), "");
  EXPECT_EQ(overlap(soft("400Mi", "30s"), soft("400Mi", "1m")), "");
  EXPECT_EQ(overlap(soft("400Mi", "1m"), soft("400Mi", "1m")),
            "memory.available<400Mi for 1m0s | memory.available<400Mi for 1m0s");
  EXPECT_NE(overlap(soft("500Mi", "2m"), soft("400Mi", "1m")), "") << "a fall through both is the kubelet's first";
  EXPECT_NE(overlap(soft("300Mi", "30s"), soft("400Mi", "1m")), "");
}

TEST(Clearance, AHardThresholdBesideASoftOneIsAsInOneKubelet) {
  EXPECT_EQ(overlap(hard("300Mi"), soft("400Mi", "1m")), "");
  EXPECT_EQ(overlap(soft("400Mi", "1m"), hard("100Mi")), "");
  EXPECT_NE(overlap(soft("50Mi", "1m"), hard("100Mi")), "") << "the kubelet has acted long before";
}

}  // namespace
}  // namespace spillway::eviction
