// Each brake: the acts that it holds, its reason, and when it releases them.
#include "policy/lifecycle/brakes.h"

#include <gtest/gtest.h>

namespace spillway::lifecycle {
namespace {

using policy::ReasonCode;

class BrakesTest : public ::testing::Test {
 protected:
  void pass(Duration by) {
    now.mono += by;
    now.wall += std::chrono::duration_cast<microseconds>(by);
  }

  std::optional<ReasonCode> ask(Brakes& brakes, ActKind kind, std::string zone = "a", std::string owner = {}) {
    const Brakes::Answer answer = brakes.ask({kind, std::move(zone), std::move(owner)}, now);
    again = answer.ask_again;
    return answer.held ? std::optional(answer.held->code) : std::nullopt;
  }

  Now now{Instant(hours(1)), WallTime(seconds(1'767'225'600))};
  Instant again;
};

TEST_F(BrakesTest, NothingIsHeldByDefault) {
  Brakes brakes({});
  for (int i = 0; i < 1000; ++i) {
    brakes.on_clock(now, seconds(5));
    brakes.on_heartbeats(1000, 1000, now);
    brakes.on_watch_age(hours(1));
    EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "a", "o"), std::nullopt);
    pass(hours(1));
  }
}

TEST_F(BrakesTest, LimitsAreOverAnyWindow) {
  Brakes brakes({.taint = {.global = ActLimit{2, seconds(60)}}});
  EXPECT_EQ(ask(brakes, ActKind::kTaint), std::nullopt);
  pass(seconds(50));
  EXPECT_EQ(ask(brakes, ActKind::kTaint, "b"), std::nullopt);
  EXPECT_EQ(ask(brakes, ActKind::kTaint, "c"), ReasonCode::kActLimitReached);
  EXPECT_EQ(again, now.mono + seconds(10));
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod), std::nullopt);  // another act
  pass(seconds(10));
  EXPECT_EQ(ask(brakes, ActKind::kTaint), std::nullopt);
  EXPECT_EQ(ask(brakes, ActKind::kTaint), ReasonCode::kActLimitReached);
}

TEST_F(BrakesTest, ZonesAndOwnersHaveTheirOwnLimits) {
  Brakes brakes({.delete_pod = {.per_zone = ActLimit{2, minutes(1)}, .per_owner = ActLimit{1, minutes(1)}}});
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "a", "web"), std::nullopt);
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "b", "web"), ReasonCode::kActLimitReached);
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "a", ""), std::nullopt);
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "a", "db"), ReasonCode::kActLimitReached);
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "b", "db"), std::nullopt);
}

TEST_F(BrakesTest, AHeldActIsNotCounted) {
  Brakes brakes({.delete_pod = {.global = ActLimit{1, minutes(1)}, .per_owner = ActLimit{1, minutes(2)}}});
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "a", "web"), std::nullopt);
  pass(minutes(1));
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "a", "web"), ReasonCode::kActLimitReached);
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod, "a", "db"), std::nullopt);
}

TEST_F(BrakesTest, AManualHoldLastsUntilItIsLifted) {
  Brakes brakes({});
  brakes.set_manual_hold({"maintenance", {}});
  pass(hours(5));
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), ReasonCode::kManualHold);
  brakes.set_manual_hold({});
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), std::nullopt);
}

TEST_F(BrakesTest, AZoneIsHeldByItsName) {
  Brakes brakes({});
  brakes.set_manual_hold({std::nullopt, {{"r1::a", "move"}}});
  const std::string a("r1:\0:a", 6);
  EXPECT_EQ(ask(brakes, ActKind::kTaint, a), ReasonCode::kManualHold);
  EXPECT_EQ(ask(brakes, ActKind::kTaint, std::string("r1:\0:b", 6)), std::nullopt);
  EXPECT_EQ(ask(brakes, ActKind::kTaint, ""), std::nullopt);
  EXPECT_EQ(brakes.hold(now), std::nullopt);
  EXPECT_EQ(brakes.hold_in(a, now)->facts.front(), (policy::Fact{"zone", "r1::a"}));
  brakes.set_manual_hold({"all of it", {{"r1::a", "move"}}});
  // the brake of the smaller scope is named
  EXPECT_EQ(brakes.hold_in(a, now)->facts.back(), (policy::Fact{"why", "move"}));
  EXPECT_EQ(ask(brakes, ActKind::kTaint, ""), ReasonCode::kManualHold);
}

TEST_F(BrakesTest, AJumpOfTheWallClockHolds) {
  Brakes brakes({.clock_jump_max = seconds(2), .clock_hold = seconds(50)});
  brakes.on_clock(now, seconds(5));
  pass(seconds(5));
  brakes.on_clock(now, seconds(5));
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod), std::nullopt);
  pass(seconds(5));
  now.wall -= minutes(10);
  brakes.on_clock(now, seconds(5));
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod), ReasonCode::kClockJumped);
  pass(seconds(50));
  EXPECT_EQ(ask(brakes, ActKind::kDeletePod), std::nullopt);
}

TEST_F(BrakesTest, AProcessThatWasStoppedHolds) {
  Brakes brakes({.clock_jump_max = seconds(2)});
  brakes.on_clock(now, seconds(5));
  pass(seconds(60));
  brakes.on_clock(now, seconds(5));
  EXPECT_EQ(ask(brakes, ActKind::kTaint), ReasonCode::kClockJumped);
}

TEST_F(BrakesTest, AnOldWatchHolds) {
  Brakes brakes({.watch_age_max = seconds(90)});
  brakes.on_watch_age(seconds(90));
  EXPECT_EQ(ask(brakes, ActKind::kTaint), std::nullopt);
  brakes.on_watch_age(seconds(91));
  EXPECT_EQ(ask(brakes, ActKind::kTaint), ReasonCode::kWatchStale);
}

TEST_F(BrakesTest, MostHeartbeatsLateAtOnceIsAStallNotADeath) {
  Brakes brakes({.stall_share = 0.5, .stall_max = minutes(2), .cool_down = minutes(1)});
  brakes.on_heartbeats(100, 50, now);
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), std::nullopt);
  brakes.on_heartbeats(100, 51, now);
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), ReasonCode::kHeartbeatStall);
  pass(minutes(1));
  brakes.on_heartbeats(100, 0, now);  // all are back
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), ReasonCode::kStormCoolDown);
  pass(minutes(1));
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), std::nullopt);
}

TEST_F(BrakesTest, AStallThatLastsIsTrusted) {
  Brakes brakes({.stall_share = 0.5, .stall_max = minutes(2), .cool_down = minutes(1)});
  brakes.on_heartbeats(100, 100, now);
  pass(minutes(2));
  brakes.on_heartbeats(100, 100, now);
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), std::nullopt);
  brakes.on_heartbeats(10, 0, now);
  EXPECT_EQ(ask(brakes, ActKind::kMarkNotReady), std::nullopt);
}

TEST(ActLimits, AreParsed) {
  const auto limits = parse_act_limits("20/1m,zone=5/30s,owner=1/10s");
  ASSERT_TRUE(limits.has_value());
  EXPECT_EQ(*limits, (ActLimits{ActLimit{20, minutes(1)}, ActLimit{5, seconds(30)}, ActLimit{1, seconds(10)}}));
  for (const char* wrong : {"20", "0/1m", "-1/1m", "x/1m", "1/0s", "1/", "node=1/1m", "1/1m,2/1m"}) {
    EXPECT_FALSE(parse_act_limits(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace spillway::lifecycle
