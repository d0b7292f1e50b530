// The keeper of a lease renews it while the agent's loop gives signs, or may be busy; not once it must be stuck.
#include "agent/node/lease_keeper.h"

#include "agent/scripted_api.h"
#include "api/text/time_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;

constexpr Duration kTick = milliseconds(100);

class LeaseKeeping : public ::testing::Test {
 protected:
  LeaseKeeping() : keeper_(options(), Rng(7), telemetry::Log(), nullptr, [this] { asked_ = true; }) {
    api_.put(Json::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", Json::object({{"name", "n1"}})}}));
    keeper_.start(now_);
    pass(Duration::zero());
  }

  static AgentOptions options() {
    AgentOptions made;
    made.node_name = "n1";
    return made;
  }

  /// Advances the time; the agent's loop answers at once while `gives_signs_`.
  void pass(Duration time) {
    const Instant end = now_.mono + time;
    for (;;) {
      run_until_idle();
      if (now_.mono >= end) return;
      now_.mono += kTick;
      now_.wall += std::chrono::duration_cast<microseconds>(kTick);
      if (keeper_.next_wakeup() && *keeper_.next_wakeup() <= now_.mono) keeper_.on_wakeup(now_);
    }
  }

  void run_until_idle() {
    for (;;) {
      if (asked_ && gives_signs_) {
        asked_ = false;
        keeper_.on_sign(now_);
      }
      const std::vector<client::ApiCommand> commands = keeper_.take_api_commands();
      if (commands.empty()) return;
      for (const client::ApiCommand& command : commands) {
        const auto& call = std::get<client::SendCall>(command);
        if (call.request.method != api::Method::kGet) writes_.push_back(now_.mono);
        for (const client::ApiEvent& event : api_.handle(command)) keeper_.on_api_event(event, now_);
      }
    }
  }

  /// The longest time without a write from `since` until now.
  Duration longest_gap(Instant since) const {
    Duration longest{};
    Instant before = since;
    for (const Instant each : writes_) {
      if (each < since) continue;
      longest = std::max(longest, each - before);
      before = each;
    }
    return std::max(longest, now_.mono - before);
  }

  ScriptedApi api_;
  Now now_{Instant(hours(1)), api::parse_time("2026-03-01T10:00:00Z").value()};
  bool gives_signs_ = true;
  bool asked_ = false;
  std::vector<Instant> writes_;
  LeaseKeeper keeper_;
};

TEST_F(LeaseKeeping, RenewsEveryQuarterOfTheDuration) {
  pass(minutes(2));
  EXPECT_LT(longest_gap(now_.mono - minutes(2)), seconds(11));
  EXPECT_FALSE(keeper_.state().withheld);
}

TEST_F(LeaseKeeping, GoesOnWhileTheAgentsLoopIsHeldForAWhile) {
  pass(seconds(30));
  const Instant held = now_.mono;
  gives_signs_ = false;
  pass(seconds(45));
  gives_signs_ = true;
  pass(seconds(30));
  EXPECT_LT(longest_gap(held), seconds(11));
}

TEST_F(LeaseKeeping, StopsWhenTheAgentsLoopIsStuckAndBeginsAgainWithIt) {
  pass(seconds(30));
  const Instant stuck = now_.mono;
  gives_signs_ = false;
  pass(minutes(5));
  EXPECT_TRUE(keeper_.state().withheld);
  ASSERT_FALSE(writes_.empty());
  EXPECT_GT(writes_.back() - stuck, seconds(50));
  // The sign is requested with each renewal: at most a period after the last turn.
  EXPECT_LT(writes_.back() - stuck, LeaseKeeper::kSignWait + seconds(11));
  gives_signs_ = true;
  const Instant alive = now_.mono;
  pass(seconds(2));
  EXPECT_GE(writes_.back(), alive);
  EXPECT_FALSE(keeper_.state().withheld);
}

TEST_F(LeaseKeeping, ALeaseThatWaitsForItsNodeIsMadeWhenTheNodeIsRegistered) {
  ScriptedApi without_node;
  api_ = std::move(without_node);
  pass(seconds(25));
  writes_.clear();
  api_.put(Json::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", Json::object({{"name", "n1"}})}}));
  keeper_.on_node_registered(now_);
  pass(seconds(1));
  EXPECT_EQ(writes_.size(), 1U);
}

}  // namespace
}  // namespace spillway::agent
