// Goal: the advised wait doubles while refusals are frequent, up to 32 s, and falls again.
#include "policy/flow/retry_advice.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway::flow {
namespace {

/// The advice while this number of requests is refused in every second.
std::vector<int> advice_at(RetryAdvice& advice, Instant& now, int per_second, int for_seconds) {
  std::vector<int> out;
  for (int i = 0; i < per_second * for_seconds; ++i) {
    now += Duration(seconds(1)) / per_second;
    const int advised = advice.refuse(now);
    if (out.empty() || out.back() != advised) out.push_back(advised);
  }
  return out;
}

TEST(RetryAdvice, DoublesWhileRefusalsAreFrequentAndFallsAgain) {
  RetryAdvice advice;
  Instant now{};
  EXPECT_EQ(advice_at(advice, now, 10, 120), (std::vector<int>{1, 2, 4, 8, 16, 32}));
  now += seconds(31);
  EXPECT_EQ(advice.refuse(now), 32) << "the last half minute was busy";
  std::vector<int> rare;
  for (int i = 0; i < 6; ++i) rare.push_back(advice.refuse(now += seconds(33)));
  EXPECT_EQ(rare, (std::vector<int>{16, 8, 4, 2, 1, 1}));
}

TEST(RetryAdvice, FewRefusalsChangeNothing) {
  RetryAdvice advice;
  Instant now{};
  EXPECT_EQ(advice_at(advice, now, 2, 60), (std::vector<int>{1}));
}

TEST(RetryAdvice, AfterAPauseItBeginsAnew) {
  RetryAdvice advice;
  Instant now{};
  advice_at(advice, now, 10, 120);
  EXPECT_EQ(advice.refuse(now + minutes(2)), 1);
}

}  // namespace
}  // namespace spillway::flow
