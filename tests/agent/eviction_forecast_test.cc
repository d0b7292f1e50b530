// Goal: the forecast follows the last half minute, and says nothing where nothing is known.
#include "agent/eviction/eviction_forecast.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway::agent {
namespace {

using eviction::Signal;

eviction::Observations seen(std::int64_t available) {
  eviction::Observations all;
  all[Signal::kNodeFsAvailable] = eviction::Observation{.available = available, .capacity = 10'000, .time = {}};
  return all;
}

const std::vector<eviction::Threshold> kThresholds{
    {.signal = Signal::kNodeFsAvailable, .value = api::Quantity::of_units(1000), .grace_period = {}, .min_reclaim = {}},
    {.signal = Signal::kNodeFsAvailable, .value = api::Quantity::of_units(500), .grace_period = {}, .min_reclaim = {}}};

TEST(EvictionForecast, IsTheTimeToTheNearestThresholdAtTheRateOfTheLastHalfMinute) {
  EvictionForecast forecast;
  for (int i = 0; i <= 10; ++i) forecast.add(seen(5000 - i * 100), Instant(seconds(2 * i)));
  const auto left = forecast.seconds_to_threshold(Signal::kNodeFsAvailable, kThresholds, Instant(seconds(20)));
  ASSERT_TRUE(left);
  EXPECT_NEAR(*left, 3000.0 / 50.0, 0.1);
}

TEST(EvictionForecast, IsZeroOnceAThresholdIsReachedAndInfiniteWhileNothingFalls) {
  EvictionForecast forecast;
  forecast.add(seen(5000), Instant(seconds(0)));
  forecast.add(seen(5000), Instant(seconds(10)));
  EXPECT_TRUE(std::isinf(*forecast.seconds_to_threshold(Signal::kNodeFsAvailable, kThresholds, Instant(seconds(10)))));
  forecast.add(seen(999), Instant(seconds(12)));
  EXPECT_EQ(forecast.seconds_to_threshold(Signal::kNodeFsAvailable, kThresholds, Instant(seconds(12))), 0.0);
}

TEST(EvictionForecast, ForgetsWhatIsOlderThanHalfAMinute) {
  EvictionForecast forecast;
  for (int i = 0; i <= 5; ++i) forecast.add(seen(9000 - i * 800), Instant(seconds(2 * i)));
  for (int i = 0; i <= 20; ++i) forecast.add(seen(5000), Instant(seconds(40 + 2 * i)));
  EXPECT_TRUE(std::isinf(*forecast.seconds_to_threshold(Signal::kNodeFsAvailable, kThresholds, Instant(seconds(80)))));
}

TEST(EvictionForecast, KnowsNothingOfWhatWasNotSeenOrHasNoThreshold) {
  EvictionForecast forecast;
  forecast.add(seen(5000), Instant(seconds(0)));
  EXPECT_EQ(forecast.seconds_to_threshold(Signal::kPidAvailable, kThresholds, Instant(seconds(0))), std::nullopt);
  EXPECT_EQ(forecast.seconds_to_threshold(Signal::kNodeFsAvailable, {}, Instant(seconds(0))), std::nullopt);
}

}  // namespace
}  // namespace spillway::agent
