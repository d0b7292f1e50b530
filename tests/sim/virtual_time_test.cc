#include "sim/time/virtual_time.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

class VirtualTimeTest : public ::testing::Test {
 protected:
  VirtualTime::EventId record(std::int64_t at_ms, const std::string& text) {
    return time_.at(Instant(milliseconds(at_ms)), [this, text] { ran_.push_back(text); });
  }

  VirtualTime time_;
  std::vector<std::string> ran_;
};

using Texts = std::vector<std::string>;

TEST_F(VirtualTimeTest, RunsByInstantThenInTheOrderSet) {
  record(20, "late");
  record(10, "a");
  record(10, "b");
  time_.run_until(Instant(milliseconds(15)));
  EXPECT_EQ(ran_, (Texts{"a", "b"}));
  EXPECT_EQ(time_.now().mono, Instant(milliseconds(15)));
  record(1, "overdue");
  time_.run_until(Instant(milliseconds(20)));
  EXPECT_EQ(ran_, (Texts{"a", "b", "overdue", "late"}));
  EXPECT_EQ(time_.events_run(), 4U);
}

TEST_F(VirtualTimeTest, WhatIsCancelledDoesNotRunAndLetsGo) {
  const auto held = std::make_shared<int>(0);
  const VirtualTime::EventId gone = time_.at(Instant(milliseconds(5)), [held] {});
  record(6, "kept");
  time_.cancel(gone);
  EXPECT_EQ(held.use_count(), 1);
  record(5, "in its place");
  time_.cancel(gone);  // a second cancel() does not cancel the event that now has its place
  time_.run_until(Instant(milliseconds(10)));
  EXPECT_EQ(ran_, (Texts{"in its place", "kept"}));
}

TEST_F(VirtualTimeTest, AnEventMaySetAndCancelOthers) {
  const VirtualTime::EventId doomed = record(10, "doomed");
  time_.at(Instant(milliseconds(5)), [this, doomed] {
    time_.cancel(doomed);
    record(5, "at once");
    record(7, "soon");
  });
  time_.run_until(Instant(milliseconds(12)));
  EXPECT_EQ(ran_, (Texts{"at once", "soon"}));
}

TEST_F(VirtualTimeTest, ManyCancelledOnesChangeNothing) {
  for (std::int64_t i = 0; i < 10'000; ++i) {
    const VirtualTime::EventId timer = record(100'000 + i, "time-out");
    if (i % 1'000 != 0) time_.cancel(timer);
  }
  time_.run_until(Instant(milliseconds(200'000)));
  EXPECT_EQ(ran_, Texts(10, "time-out"));
}

/// Events are run by instant and in the order in which they were set, with any changes meanwhile.
TEST_F(VirtualTimeTest, RunsInOrderWhateverIsSetAndCancelled) {
  Rng rng(5);
  std::multimap<std::pair<Instant, std::uint64_t>, bool> expected;  // true: cancelled
  std::vector<std::pair<VirtualTime::EventId, decltype(expected)::iterator>> all;
  std::vector<std::pair<Instant, std::uint64_t>> ran;
  for (std::uint64_t number = 0; number < 3'000; ++number) {
    const Instant due{milliseconds(static_cast<std::int64_t>(rng.below(500)))};
    const auto wanted = expected.emplace(std::pair(due, number), false);
    all.emplace_back(time_.at(due, [&ran, due, number] { ran.emplace_back(due, number); }), wanted);
    const std::size_t other = rng.below(all.size());
    if (rng.below(3) != 0) continue;
    time_.cancel(all[other].first);
    all[other].second->second = true;
  }
  std::erase_if(expected, [](const auto& each) { return each.second; });
  time_.run_until(Instant(seconds(1)));
  EXPECT_TRUE(std::ranges::equal(ran, expected | std::views::keys));
}

}  // namespace
}  // namespace spillway::sim
