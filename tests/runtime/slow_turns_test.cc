// Goal: slow turns of a loop become one report a minute, which names their cause.
#include "runtime/slow_turns.h"

#include <gtest/gtest.h>

namespace spillway::runtime {
namespace {

constexpr Instant kStart{hours(1)};

Loop::Turn turn(Duration took, std::string what = {}) {
  return {.took = took, .longest = took, .what = std::move(what)};
}

struct Counted {
  Duration waited{};
  SlowTurns turns{[this] { return std::optional(waited); }};
};

TEST(SlowTurns, AMinuteWithoutOnesIsNotReported) {
  Counted counted;
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(counted.turns.count(turn(SlowTurns::kSlow, "GET /a"), kStart + i * seconds(30)));
}

TEST(SlowTurns, OneReportAMinuteWithTheLongest) {
  Counted counted;
  EXPECT_FALSE(counted.turns.count(turn(milliseconds(60), "GET /a"), kStart));
  EXPECT_FALSE(counted.turns.count(turn(milliseconds(900), "PATCH /b"), kStart + seconds(20)));
  EXPECT_FALSE(counted.turns.count(turn(milliseconds(70), "GET /c"), kStart + seconds(59)));
  const auto report = counted.turns.count(turn(milliseconds(51), "GET /d"), kStart + SlowTurns::kPeriod);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->turns, 3);
  EXPECT_EQ(report->longest, milliseconds(900));
  EXPECT_EQ(report->cause, "request PATCH /b");
  const auto next = counted.turns.count(turn(milliseconds(1)), kStart + 2 * SlowTurns::kPeriod);
  ASSERT_TRUE(next) << "the turn that ended the minute belongs to the next";
  EXPECT_EQ(next->turns, 1);
  EXPECT_EQ(next->cause, "request GET /d");
}

TEST(SlowTurns, ATurnThatNothingWasSaidOf) {
  Counted counted;
  counted.turns.count(turn(milliseconds(60)), kStart);
  EXPECT_EQ(counted.turns.count(turn({}), kStart + SlowTurns::kPeriod)->cause, "work other than a request");
}

TEST(SlowTurns, AStepOfAnEngineIsACauseOfItsOwn) {
  Counted counted;
  counted.turns.count(turn(milliseconds(60), std::string(kStepMark) + "agent-n1"), kStart);
  EXPECT_EQ(counted.turns.count(turn({}), kStart + SlowTurns::kPeriod)->cause, "step of agent-n1");
}

TEST(LongestTurns, CountTheProcessorTimeOfATurn) {
  Duration used = seconds(3);  // before the loop began
  LongestTurns longest([&used] { return used; });
  EXPECT_FALSE(longest.count(turn(milliseconds(900), "GET /a"))) << "what came before is not the turn's";
  used += milliseconds(20);
  EXPECT_TRUE(longest.count(turn(milliseconds(800), "GET /b")));
  used += milliseconds(10);
  EXPECT_FALSE(longest.count(turn(seconds(5), "GET /c"))) << "it waited for a processor";
  ASSERT_EQ(longest.entries().size(), 2U);
  EXPECT_EQ(longest.entries()[0].took, milliseconds(20));
  EXPECT_EQ(longest.entries()[0].cause, "request GET /b");
  EXPECT_EQ(longest.entries()[1].cause, "request GET /c");
}

TEST(LongestTurns, KeepTheLongestOfEachCause) {
  Duration used{};
  LongestTurns longest([&used] { return used; });
  longest.count(turn({}));
  for (int i = 1; i <= 20; ++i) {
    used += milliseconds(i);
    EXPECT_TRUE(longest.count(turn(milliseconds(i), "GET /" + std::to_string(i % 10))));
  }
  ASSERT_EQ(longest.entries().size(), LongestTurns::kKept);
  for (std::size_t i = 0; i < LongestTurns::kKept; ++i) {
    EXPECT_EQ(longest.entries()[i].took, milliseconds(20 - static_cast<int>(i)));
  }
}

TEST(SlowTurns, AThreadThatHadNoProcessor) {
  Counted counted;
  counted.waited = seconds(100);  // earlier
  counted.turns.count(turn(milliseconds(200), "GET /a"), kStart);
  counted.waited += milliseconds(100);
  EXPECT_EQ(counted.turns.count(turn(milliseconds(200), "GET /a"), kStart + SlowTurns::kPeriod)->cause,
            "the processors of this machine were busy with other work");
  counted.waited += milliseconds(99);
  EXPECT_EQ(counted.turns.count(turn({}), kStart + 2 * SlowTurns::kPeriod)->cause, "request GET /a");
}

TEST(SlowTurns, AKernelThatDoesNotCountWaits) {
  SlowTurns turns([] { return std::optional<Duration>(); });
  turns.count(turn(milliseconds(200), "GET /a"), kStart);
  EXPECT_EQ(turns.count(turn({}), kStart + SlowTurns::kPeriod)->cause, "request GET /a");
}

}  // namespace
}  // namespace spillway::runtime
