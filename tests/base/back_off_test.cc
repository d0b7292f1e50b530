#include "base/back_off.h"

#include <gtest/gtest.h>

namespace spillway {

namespace {

TEST(BackOff, DoublesUntilTheLongestWait) {
  BackOff back_off(milliseconds(100), milliseconds(500));
  EXPECT_EQ(back_off.next(), milliseconds(100));
  EXPECT_EQ(back_off.next(), milliseconds(200));
  EXPECT_EQ(back_off.next(), milliseconds(400));
  EXPECT_EQ(back_off.next(), milliseconds(500));
  EXPECT_EQ(back_off.next(), milliseconds(500));
  EXPECT_EQ(back_off.wait(), milliseconds(500));
}

TEST(BackOff, BeginsAgainAfterReset) {
  BackOff back_off(seconds(1), seconds(30));
  EXPECT_TRUE(back_off.is_idle());
  back_off.next();
  back_off.next();
  EXPECT_FALSE(back_off.is_idle());
  back_off.reset();
  EXPECT_TRUE(back_off.is_idle());
  EXPECT_EQ(back_off.wait(), Duration{});
  EXPECT_EQ(back_off.next(), seconds(1));
}

TEST(BackOff, NeverWaitsLongerThanTheLongest) {
  BackOff back_off(seconds(1), milliseconds(300));
  EXPECT_EQ(back_off.next(), milliseconds(300));
}

}  // namespace

}  // namespace spillway
