// Is the lease of another program held? One reading shows its holder, not if the holder lives.
#include "client/leader_election.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaseGuardTest : public ::testing::Test {
 protected:
  LeaseGuardTest()
      : guard({}, Rng(3),
              {[this](Now) { reported.emplace_back("free"); },
               [this](const std::string& holder, Now) { reported.push_back("held by " + holder); }}) {
    guard.start(now);
  }

  /// Answers the read that is under way; there must be exactly one.
  void answer(Result<api::Response> response) {
    const std::vector<ApiCommand> commands = guard.take_api_commands();
    ASSERT_THAT(commands, SizeIs(1));
    guard.on_api_event(CallDone{std::get<SendCall>(commands[0]).id, std::move(response)}, now);
  }

  void found(std::string_view holder, int renewal) {
    answer(api::Response{200,
                         {},
                         fmt::format(R"({{"spec":{{"holderIdentity":"{}","leaseDurationSeconds":15,)"
                                     R"("renewTime":"2026-01-01T00:00:{:02}.000000Z"}}}})",
                                     holder, renewal)});
  }

  void missing() { answer(api::Response{404, {}, R"({"kind":"Status","reason":"NotFound","code":404})"}); }

  void advance(Duration by) {
    now.mono += by;
    now.wall += std::chrono::duration_cast<microseconds>(by);
    if (const auto next = guard.next_wakeup(); next && *next <= now.mono) guard.on_wakeup(now);
  }

  Now now{Instant(seconds(1000)), WallTime(seconds(1'767'225'600))};
  std::vector<std::string> reported;
  LeaseGuard guard;
};

TEST_F(LeaseGuardTest, NoLeaseIsFreeAndThatIsSaidOnce) {
  missing();
  advance(seconds(2));
  missing();
  EXPECT_THAT(reported, ElementsAre("free"));
}

TEST_F(LeaseGuardTest, AFirstReadDecidesNothing) {
  found("other", 1);
  EXPECT_THAT(reported, IsEmpty());
}

TEST_F(LeaseGuardTest, ALeaseThatMovesIsHeld) {
  found("other", 1);
  advance(seconds(2));
  found("other", 1);
  EXPECT_THAT(reported, IsEmpty()) << "not renewed between the looks";
  advance(seconds(2));
  found("other", 3);
  EXPECT_THAT(reported, ElementsAre("held by other"));
}

TEST_F(LeaseGuardTest, ALeaseThatIsNotRenewedForItsTimeIsFree) {
  found("dead", 1);
  for (int i = 0; i < 7; ++i) {
    advance(seconds(2));
    found("dead", 1);
  }
  EXPECT_THAT(reported, IsEmpty()) << "14 of 15 seconds";
  advance(seconds(2));
  found("dead", 1);
  EXPECT_THAT(reported, ElementsAre("free"));
}

TEST_F(LeaseGuardTest, AnEmptyHolderIsFreeAtOnce) {
  found("", 1);
  EXPECT_THAT(reported, ElementsAre("free"));
}

TEST_F(LeaseGuardTest, AFailedReadIsNotAFreeLease) {
  answer(make_error(ErrorCode::kServiceUnavailable, "refused"));
  advance(seconds(2));
  answer(api::Response{403, {}, R"({"kind":"Status","reason":"Forbidden","code":403})"});
  EXPECT_THAT(reported, IsEmpty());
  advance(seconds(2));
  missing();
  EXPECT_THAT(reported, ElementsAre("free")) << "it goes on asking";
}

TEST_F(LeaseGuardTest, ALaterHolderOfTheLeaseIsReported) {
  missing();
  advance(seconds(2));
  found("late", 1);
  advance(seconds(2));
  found("late", 3);
  EXPECT_THAT(reported, ElementsAre("free", "held by late"));
}

}  // namespace
}  // namespace spillway::client
