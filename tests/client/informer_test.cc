#include "client/informer.h"

#include "api/object/node.h"
#include "client/scripted_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class InformerTest : public ::testing::Test {
 protected:
  InformerTest() : nodes(engine.client, "/api/v1/nodes", "labelSelector=a%3Db") {
    nodes.cache().listen({[this](const auto& before, const auto& after, Now) {
      const auto version = [](const auto& node) { return node ? node->metadata.resource_version : std::string("-"); };
      changes.push_back(
          fmt::format("{} {}>{}", (after ? after : before)->metadata.name, version(before), version(after)));
    }});
  }

  /// Lists n1 and n2 at version 10 and opens the watch.
  CallId begin() {
    engine.start();
    engine.answer(engine.take<SendCall>().id, 200,
                  list_document("10", node_document("n1", "7") + "," + node_document("n2", "8")));
    changes.clear();
    return engine.take<OpenWatch>().id;
  }

  ScriptedEngine engine;
  Informer<api::Node> nodes;
  std::vector<std::string> changes;
};

TEST_F(InformerTest, ListsInPagesThenWatchesFromTheListedVersion) {
  engine.start();
  const auto first = engine.take<SendCall>();
  EXPECT_EQ(first.request.target, "/api/v1/nodes?limit=500&labelSelector=a%3Db");
  EXPECT_FALSE(engine.client.synced());
  engine.answer(first.id, 200, list_document("10", node_document("n1", "7"), "t/1"));
  EXPECT_FALSE(engine.client.synced());
  const auto second = engine.take<SendCall>();
  EXPECT_THAT(second.request.target, HasSubstr("continue=t%2F1"));
  engine.answer(second.id, 200, list_document("10", node_document("n2", "8")));
  EXPECT_TRUE(engine.client.synced());
  EXPECT_THAT(changes, ElementsAre("n1 ->7", "n2 ->8"));
  const auto watch = engine.take<OpenWatch>();
  EXPECT_THAT(watch.request.target, HasSubstr("allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds="));
  EXPECT_THAT(watch.request.target, HasSubstr("labelSelector=a%3Db"));
}

TEST_F(InformerTest, AppliesEvents) {
  const CallId watch = begin();
  engine.frame(watch, "ADDED", node_document("n3", "11"));
  engine.frame(watch, "MODIFIED", node_document("n1", "12"));
  engine.frame(watch, "MODIFIED", node_document("n1", "12"));  // nothing new
  engine.frame(watch, "BOOKMARK", node_document("", "13"));
  engine.frame(watch, "DELETED", node_document("n2", "14"));
  EXPECT_THAT(changes, ElementsAre("n3 ->11", "n1 7>12", "n2 8>-"));
  EXPECT_EQ(nodes.cache().size(), 2U);
}

TEST_F(InformerTest, ResumesAfterACloseFromTheLastVersion) {
  const CallId watch = begin();
  engine.frame(watch, "BOOKMARK", node_document("", "44"));
  engine.deliver(WatchEnded{watch, {}});
  EXPECT_THAT(engine.take<OpenWatch>().request.target, HasSubstr("resourceVersion=44&"));
}

TEST_F(InformerTest, ListsAgainWhenTheVersionHasExpired) {
  const CallId watch = begin();
  engine.frame(
      watch, "ERROR",
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"old","code":410})");
  EXPECT_EQ(engine.take<CloseWatch>().id, watch);
  const auto list = engine.take<SendCall>();
  engine.frame(watch, "ADDED", node_document("ghost", "99"));  // an event of the closed watch
  engine.answer(list.id, 200, list_document("50", node_document("n2", "8") + "," + node_document("n4", "49")));
  EXPECT_THAT(changes, ElementsAre("n4 ->49", "n1 7>-"));
}

TEST_F(InformerTest, BacksOffWhileTheServerIsAway) {
  engine.start();
  std::vector<milliseconds::rep> waits;
  for (int i = 0; i < 9; ++i) {
    const Instant before = engine.now.mono;
    engine.deliver(CallDone{engine.take<SendCall>().id, make_error(ErrorCode::kServiceUnavailable, "refused")});
    ASSERT_THAT(engine.commands, IsEmpty()) << "at most one list, and not at once";
    while (engine.commands.empty()) engine.advance(milliseconds(10));
    waits.push_back(std::chrono::duration_cast<milliseconds>(engine.now.mono - before).count());
  }
  EXPECT_GE(waits.front(), 400);
  EXPECT_LE(waits.front(), 810);
  EXPECT_GE(waits.back(), 15'000);
  EXPECT_LE(waits.back(), 30'010);
}

TEST_F(InformerTest, ASilentWatchIsOpenedAgainAndThenListed) {
  const CallId watch = begin();
  engine.advance(seconds(60));
  engine.frame(watch, "BOOKMARK", node_document("", "20"));
  engine.advance(seconds(89));
  EXPECT_THAT(engine.commands, IsEmpty());
  engine.advance(seconds(2));
  EXPECT_EQ(engine.take<CloseWatch>().id, watch);
  EXPECT_THAT(engine.take<OpenWatch>().request.target, HasSubstr("resourceVersion=20&"));
  engine.advance(seconds(100));
  engine.take<CloseWatch>();
  EXPECT_THAT(engine.take<SendCall>().request.target, StartsWith("/api/v1/nodes?limit="));  // a restored store?
}

/// The server was away for long before the watch that is silent: no wait for that comes on top of the silence.
TEST_F(InformerTest, ASilenceIsNotFollowedByTheWaitForAServerThatWasAway) {
  CallId watch = begin();
  for (int i = 0; i < 7; ++i) {
    engine.deliver(WatchEnded{watch, make_error(ErrorCode::kServiceUnavailable, "refused")});
    while (engine.commands.empty()) engine.advance(milliseconds(10));
    watch = engine.take<OpenWatch>().id;
  }
  engine.advance(seconds(90));
  EXPECT_EQ(engine.take<CloseWatch>().id, watch);
  engine.advance(milliseconds(390));
  EXPECT_THAT(engine.commands, IsEmpty()) << "not all at once";
  engine.advance(milliseconds(420));
  EXPECT_THAT(engine.take<SendCall>().request.target, StartsWith("/api/v1/nodes?limit="));
}

/// An object that was written before a list began is in that list, or was deleted.
TEST_F(InformerTest, ReportsWhichListItHasReadToTheEnd) {
  EXPECT_EQ(nodes.last_whole_list(), 0U);
  engine.start();
  EXPECT_EQ(nodes.lists_begun(), 1U);
  const CallId first = engine.take<SendCall>().id;
  engine.answer(first, 200, list_document("10", node_document("n1", "7"), "t1"));
  engine.answer(engine.take<SendCall>().id, 500, "failed");
  EXPECT_EQ(nodes.last_whole_list(), 0U) << "a page is missing";
  while (engine.commands.empty()) engine.advance(milliseconds(10));
  EXPECT_EQ(nodes.lists_begun(), 2U);
  engine.answer(engine.take<SendCall>().id, 200, list_document("12", node_document("n2", "11")));
  EXPECT_EQ(nodes.last_whole_list(), 2U);
}

TEST_F(InformerTest, AFrameThatIsNoEventBreaksTheWatch) {
  const CallId watch = begin();
  engine.deliver(WatchFrame{watch, std::make_shared<const std::string>("{\"type\":")});
  EXPECT_EQ(engine.take<CloseWatch>().id, watch);
  engine.advance(seconds(1));
  EXPECT_THAT(engine.take<OpenWatch>().request.target, HasSubstr("resourceVersion=10&"));
}

TEST_F(InformerTest, ObjectsThatDoNotDecodeAreCountedAndSkipped) {
  const CallId watch = begin();
  engine.frame(watch, "MODIFIED",
               R"({"metadata":{"name":"n1","resourceVersion":"11"},"spec":{"unschedulable":"perhaps"}})");
  EXPECT_THAT(changes, IsEmpty());
  EXPECT_EQ(nodes.undecodable(), 1U);
  EXPECT_EQ(nodes.cache().find("n1")->metadata.resource_version, "7");
}

TEST_F(InformerTest, AnExpiredPageStartsTheListOver) {
  engine.start();
  engine.answer(engine.take<SendCall>().id, 200, list_document("10", node_document("n1", "7"), "t1"));
  engine.answer(engine.take<SendCall>().id, 410, "gone");
  const auto again = engine.take<SendCall>();
  EXPECT_THAT(again.request.target, Not(HasSubstr("continue")));
  engine.answer(again.id, 200, list_document("12", node_document("n2", "11")));
  EXPECT_EQ(nodes.cache().size(), 1U);
}

TEST_F(InformerTest, AWatchThatEndsJustBeforeItsSilenceTimerLeavesTheNextItsWholeTime) {
  const CallId first = begin();
  engine.advance(milliseconds(89'990));
  engine.deliver(WatchEnded{first, {}});
  const CallId second = engine.take<OpenWatch>().id;
  engine.advance(milliseconds(89'990));
  EXPECT_THAT(engine.commands, IsEmpty()) << "the timer of the first is not that of the second";
  engine.advance(milliseconds(20));
  EXPECT_EQ(engine.take<CloseWatch>().id, second);
}

TEST_F(InformerTest, AWatchThatIsSilentAfterManyOthersIsNoticedToo) {
  CallId watch = begin();
  for (int i = 0; i < 5; ++i) {
    engine.advance(seconds(20));
    engine.frame(watch, "BOOKMARK", node_document("", std::to_string(20 + i)));
    engine.deliver(WatchEnded{watch, {}});
    watch = engine.take<OpenWatch>().id;
  }
  engine.advance(milliseconds(90'010));
  EXPECT_EQ(engine.take<CloseWatch>().id, watch);
}

TEST_F(InformerTest, AServerThatClosesAtOnceIsNotAskedInALoop) {
  CallId watch = begin();
  std::size_t opened = 0;
  const Instant end = engine.now.mono + minutes(5);
  while (engine.now.mono < end) {
    engine.deliver(WatchEnded{watch, {}});
    for (int i = 0; engine.commands.empty() && i < 4000; ++i) engine.advance(milliseconds(10));
    watch = engine.take<OpenWatch>().id;
    ++opened;
  }
  EXPECT_LE(opened, 30U);
  EXPECT_GE(opened, 10U) << "and it is asked again";
  engine.frame(watch, "ADDED", node_document("n3", "11"));
  engine.deliver(WatchEnded{watch, {}});
  EXPECT_THAT(engine.take<OpenWatch>().request.target, HasSubstr("resourceVersion=11&")) << "something came: at once";
}

TEST_F(InformerTest, AnEndThatIsReportedTwiceOpensOneWatch) {
  const CallId watch = begin();
  engine.advance(seconds(30));
  engine.deliver(WatchEnded{watch, {}});
  engine.deliver(WatchEnded{watch, {}});
  engine.take<OpenWatch>();
  EXPECT_THAT(engine.commands, IsEmpty());
}

TEST_F(InformerTest, AListThatIsAnsweredLateIsNotTakenAfterTheOneThatReplacedIt) {
  engine.start();
  const CallId late = engine.take<SendCall>().id;
  engine.advance(seconds(13));  // timed out, and sent again
  const CallId second = engine.take<SendCall>().id;
  engine.answer(second, 200, list_document("20", node_document("n1", "15")));
  engine.answer(late, 200, list_document("10", node_document("n1", "7") + "," + node_document("n2", "8")));
  EXPECT_THAT(changes, ElementsAre("n1 ->15"));
  EXPECT_THAT(engine.take<OpenWatch>().request.target, HasSubstr("resourceVersion=20&"));
}

TEST_F(InformerTest, AnObjectThatIsReplacedUnderItsNameIsTwoChangesOrOneThatShowsBoth) {
  const CallId watch = begin();
  engine.frame(watch, "DELETED", node_document("n1", "11"));
  engine.frame(watch, "ADDED", node_document("n1", "12"));
  EXPECT_THAT(changes, ElementsAre("n1 7>-", "n1 ->12"));
}

TEST_F(InformerTest, AnInformerAddedLateListsInTheNextStep) {
  begin();
  Informer<api::Node> late(engine.client, "/late");
  EXPECT_FALSE(engine.client.synced());
  engine.advance(Duration::zero());
  EXPECT_THAT(engine.take<SendCall>().request.target, StartsWith("/late?limit="));
}

TEST(WatchSession, ShortWatchesWithoutEventsBackOff) {
  WatchSession session;
  Rng rng(1);
  session.on_listed("5");
  EXPECT_EQ(session.on_end({}, rng).wait, Duration::zero());
  const auto second = session.on_end({}, rng);
  EXPECT_FALSE(second.relist);
  EXPECT_GT(second.wait, Duration::zero());
  session.on_progress("6");
  EXPECT_EQ(session.on_end({}, rng).wait, Duration::zero());
}

TEST(WatchSession, ExpiryTwiceInARowBacksOff) {
  WatchSession session;
  Rng rng(1);
  session.on_listed("5");
  const auto first = session.on_end(make_error(ErrorCode::kExpired, "old"), rng);
  EXPECT_TRUE(first.relist);
  EXPECT_EQ(first.wait, Duration::zero());
  session.on_listed("6");
  const auto second = session.on_end(make_error(ErrorCode::kExpired, "old"), rng);
  EXPECT_TRUE(second.relist);
  EXPECT_GT(second.wait, Duration::zero());
}

}  // namespace
}  // namespace spillway::client
