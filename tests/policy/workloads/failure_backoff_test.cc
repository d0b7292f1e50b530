// The wait of failed daemon pods for their successors, and the time after which the past is forgotten.
#include "policy/workloads/failure_backoff.h"

#include <gtest/gtest.h>

namespace spillway::workloads {
namespace {

constexpr Instant kStart{hours(1)};

TEST(FailureBackoff, DoublesUpToAQuarterOfAnHour) {
  FailureBackoff backoff;
  Instant now = kStart;
  EXPECT_EQ(backoff.not_before("n", now), std::nullopt);
  Duration wait = seconds(1);
  for (int i = 0; i < 40; ++i) {
    backoff.failed("n", now);
    ASSERT_EQ(backoff.not_before("n", now), now + wait) << i;
    now += wait;
    EXPECT_EQ(backoff.not_before("n", now), std::nullopt);
    wait = std::min(2 * wait, FailureBackoff::kMax);
  }
  EXPECT_EQ(backoff.not_before("other", now), std::nullopt);
}

TEST(FailureBackoff, BeginsAgainAfterHalfAnHourWithoutAFailure) {
  FailureBackoff backoff;
  for (int i = 0; i < 10; ++i) backoff.failed("n", kStart);
  const Instant still = kStart + FailureBackoff::kForgottenAfter;
  FailureBackoff remembering = backoff;
  remembering.failed("n", still);
  EXPECT_EQ(remembering.not_before("n", still), still + FailureBackoff::kMax);
  const Instant later = still + milliseconds(1);
  backoff.failed("n", later);
  EXPECT_EQ(backoff.not_before("n", later), later + FailureBackoff::kMin);
}

TEST(FailureBackoff, KeepsNoNodeForEver) {
  FailureBackoff backoff;
  for (int i = 0; i < 100; ++i) backoff.failed(std::to_string(i), kStart + seconds(i));
  backoff.tidy(kStart + FailureBackoff::kForgottenAfter + seconds(50));
  EXPECT_EQ(backoff.size(), 50U);
  backoff.tidy(kStart + hours(2));
  EXPECT_EQ(backoff.size(), 0U);
}

}  // namespace
}  // namespace spillway::workloads
