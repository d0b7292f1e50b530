// An engine of a leader's term: it receives and sends nothing once the term is over.
#include "client/leader_election.h"
#include "client/recording_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace spillway::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FencedEngineTest : public ::testing::Test {
 protected:
  FencedEngineTest()
      : fenced(std::make_unique<RecordingEngine>(record), [this](Now at) { return at.mono < term_ends; }) {}

  static Now at(Duration since_start) { return {Instant(since_start), WallTime(seconds(1'767'225'600))}; }

  static SendCall call(CallId id) { return {id, {api::Method::kGet, "/a", {}, {}}}; }

  const Instant term_ends = Instant(seconds(10));
  RecordingEngine::Record record;
  FencedEngine fenced;
};

TEST_F(FencedEngineTest, PassesEverythingWhileTheTermLasts) {
  record.wakeup = Instant(seconds(5));
  record.commands.emplace_back(call(7));
  fenced.start(at(seconds(1)));
  fenced.on_wakeup(at(seconds(5)));
  fenced.on_api_event(CallDone{7, api::Response{200, {}, "{}"}}, at(seconds(9)));
  EXPECT_THAT(record.received, ElementsAre("start", "wakeup", "done 7 200"));
  EXPECT_EQ(fenced.next_wakeup(), Instant(seconds(5)));
  EXPECT_THAT(fenced.take_api_commands(), SizeIs(1));
}

TEST_F(FencedEngineTest, TheLastInstantOfTheTermIsOutsideIt) {
  fenced.start(at(seconds(1)));
  fenced.on_wakeup(at(seconds(10)));
  EXPECT_THAT(record.received, ElementsAre("start"));
}

TEST_F(FencedEngineTest, AnswersAfterTheTermAreDropped) {
  fenced.start(at(seconds(1)));
  fenced.on_api_event(CallDone{7, api::Response{200, {}, "{}"}}, at(seconds(11)));
  EXPECT_THAT(record.received, ElementsAre("start"));
}

TEST_F(FencedEngineTest, CommandsLeftBehindAreNotSentAfterTheTerm) {
  fenced.start(at(seconds(1)));
  record.commands.emplace_back(call(7));
  record.wakeup = Instant(seconds(12));
  fenced.on_wakeup(at(seconds(12)));
  EXPECT_THAT(fenced.take_api_commands(), IsEmpty());
  EXPECT_EQ(fenced.next_wakeup(), std::nullopt) << "it never wants to be woken again";
}

TEST_F(FencedEngineTest, AnotherTermDoesNotOpenItAgain) {
  fenced.on_wakeup(at(seconds(12)));
  record.commands.emplace_back(call(7));
  fenced.on_wakeup(at(seconds(3)));  // as if the leader had been elected once more
  EXPECT_THAT(record.received, IsEmpty());
  EXPECT_THAT(fenced.take_api_commands(), IsEmpty());
}

}  // namespace
}  // namespace spillway::client
