// Goal: pods are slowed before the threshold, never below what they use, and let go when there is room again.
#include "agent/eviction/memory_brake.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

BrakeSituation at(std::int64_t headroom_mib) {
  return {.headroom = mebibytes(headroom_mib), .pods_usage = mebibytes(300), .fall_per_second = {}, .limit = {}};
}

TEST(MemoryBrake, IsOffFarFromTheThreshold) {
  EXPECT_EQ(brake_limit(at(4096)), std::nullopt);
  EXPECT_EQ(brake_limit(at(768)), std::nullopt);
}

TEST(MemoryBrake, LetsPodsGrowTo16MiBBeforeTheThreshold) {
  EXPECT_EQ(brake_limit(at(767)), mebibytes(300 + 767 - 16));
  EXPECT_EQ(brake_limit(at(100)), mebibytes(384));
}

TEST(MemoryBrake, ANewOneIsNeverBelowWhatIsInUse) {
  for (const std::int64_t headroom : {16, 10, 0, -50}) EXPECT_EQ(brake_limit(at(headroom)), mebibytes(300)) << headroom;
}

TEST(MemoryBrake, DoesNotFollowThoseWhoGoOnThroughIt) {
  BrakeSituation situation = at(15);
  situation.limit = mebibytes(299);
  EXPECT_EQ(brake_limit(situation), mebibytes(299));
  situation.pods_usage = mebibytes(330);
  situation.headroom = mebibytes(-15);
  EXPECT_EQ(brake_limit(situation), mebibytes(299));
}

TEST(MemoryBrake, IsReleasedWhenNoPodCanBeEvicted) {
  BrakeSituation situation = at(-1);
  situation.limit = mebibytes(299);
  situation.victim = BrakeVictim::kNobody;
  EXPECT_EQ(brake_limit(situation), std::nullopt);
}

TEST(MemoryBrake, BeginsEarlierTheFasterMemoryFalls) {
  BrakeSituation situation = at(4096);
  situation.fall_per_second = gibibytes(2);
  EXPECT_EQ(brake_limit(situation), mebibytes(300 + 4096 - 16));
}

TEST(MemoryBrake, StaysSetBeyondTheDistanceAtWhichItWasSet) {
  BrakeSituation situation = at(1000);
  EXPECT_EQ(brake_limit(situation), std::nullopt);
  situation.limit = mebibytes(1);
  EXPECT_EQ(brake_limit(situation), mebibytes(300 + 1000 - 16));
  situation.headroom = mebibytes(1152);
  EXPECT_EQ(brake_limit(situation), std::nullopt);
}

}  // namespace
}  // namespace spillway::agent
