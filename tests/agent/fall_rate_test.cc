#include "agent/eviction/fall_rate.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

Instant at(Duration elapsed) {
  return Instant(hours(1)) + elapsed;
}

TEST(FallRate, RemembersTheSteepestFallOfTheWindow) {
  FallRate fall;
  fall.add(mebibytes(500), at({}));
  fall.add(mebibytes(400), at(seconds(1)));  // 100 MiB/s
  fall.add(mebibytes(390), at(seconds(2)));
  EXPECT_EQ(fall.steepest_per_second(at(seconds(2)), seconds(10)), mebibytes(100));
  EXPECT_EQ(fall.steepest_per_second(at(seconds(12)), seconds(10)), mebibytes(10));
  EXPECT_EQ(fall.steepest_per_second(at(seconds(30)), seconds(10)), Bytes{0});
}

TEST(FallRate, AGentleFallDoesNotReplaceASteepOneOfTheSameSecond) {
  FallRate fall;
  fall.add(mebibytes(500), at({}));
  fall.add(mebibytes(400), at(milliseconds(100)));  // 1000 MiB/s
  fall.add(mebibytes(399), at(milliseconds(200)));
  EXPECT_EQ(fall.steepest_per_second(at(milliseconds(200)), seconds(2)), mebibytes(1000));
}

TEST(FallRate, IgnoresRisesAndStepsTooShortToMeasure) {
  FallRate fall;
  fall.add(mebibytes(500), at({}));
  fall.add(mebibytes(600), at(seconds(1)));
  fall.add(mebibytes(100), at(seconds(1) + milliseconds(1)));
  EXPECT_EQ(fall.steepest_per_second(at(seconds(1)), seconds(10)), Bytes{0});
}

TEST(ObserveInterval, IsHalfTheTimeToTheThresholdWithinLimits) {
  const ObserveOptions options;
  EXPECT_EQ(observe_interval(gibibytes(16), Bytes{0}, options), seconds(1));
  EXPECT_EQ(observe_interval(Bytes{200'000'000}, Bytes{0}, options), milliseconds(25));
  EXPECT_EQ(observe_interval(Bytes{1000}, Bytes{0}, options), milliseconds(1));
  EXPECT_EQ(observe_interval(Bytes{-5}, Bytes{0}, options), milliseconds(1));
  EXPECT_EQ(observe_interval(Bytes{2'000'000'000}, Bytes{10'000'000'000}, options), milliseconds(50));
}

TEST(Emergency, IsWhenMemoryRunsOutWithinTheGrace) {
  EXPECT_FALSE(is_emergency(mebibytes(100), Bytes{0}, mebibytes(50), seconds(1)));
  EXPECT_TRUE(is_emergency(mebibytes(40), Bytes{0}, mebibytes(50), seconds(1)));
  EXPECT_TRUE(is_emergency(mebibytes(100), mebibytes(60), mebibytes(50), seconds(1)));
  EXPECT_FALSE(is_emergency(mebibytes(100), mebibytes(60), Bytes{0}, seconds(1)));
  EXPECT_TRUE(is_emergency(mebibytes(60), mebibytes(60), Bytes{0}, seconds(1)));
}

}  // namespace
}  // namespace spillway::agent
