// Watches: diffs of selectors, history, bookmarks, streaming lists, slow receivers.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using Names = std::vector<std::string>;

std::string version_now(TestServer& server) {
  return server.get(kMaps).string_at({"metadata", "resourceVersion"});
}

void relabel(TestServer& server, const std::string& value) {
  const Answer answer = server.merge(std::string(kMaps) + "/a", R"({"metadata":{"labels":{"w":")" + value + "\"}}}");
  ASSERT_EQ(answer.code, 200) << answer.text;
}

/// The worked exchange 24.2 of the contract.
void live_through_labels(TestServer& server) {
  server.post(kMaps, R"({"metadata":{"name":"a","labels":{"w":"1"}}})");
  relabel(server, "2");
  relabel(server, "2");  // no write
  relabel(server, "1");
  server.remove(std::string(kMaps) + "/a");
}

TEST(Watch, ALabelSelectorIsADiffLiveAndFromHistory) {
  TestServer server;
  const std::string version = version_now(server);
  const std::string target = std::string(kMaps) + "?watch=1&labelSelector=w%3D1&resourceVersion=" + version;
  const auto live = server.watch(target);
  EXPECT_TRUE(live->streaming) << "headers come before the first event";
  live_through_labels(server);
  const auto replayed = server.watch(target);
  EXPECT_EQ(live->names(), (Names{"ADDED:a", "DELETED:a", "ADDED:a", "DELETED:a"}));
  EXPECT_EQ(live->text, replayed->text);
  const std::vector<api::Json> events = live->events();
  const std::uint64_t start = std::stoull(version);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].string_at({"object", "metadata", "labels", "w"}), "1") << i;
    EXPECT_EQ(events[i].string_at({"object", "metadata", "resourceVersion"}), std::to_string(start + i + 1)) << i;
  }
}

TEST(Watch, WithoutAVersionTheStateIsSentFirst) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"b"}})");
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  for (const char* version : {"", "&resourceVersion=0"}) {
    EXPECT_EQ(server.watch(std::string(kMaps) + "?watch=true" + version)->names(), (Names{"ADDED:a", "ADDED:b"}));
  }
}

TEST(Watch, AStreamingListEndsWithTheMarker) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const auto sink =
      server.watch(std::string(kMaps) +
                   "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
  ASSERT_EQ(sink->names(), (Names{"ADDED:a", "BOOKMARK:"}));
  EXPECT_EQ(sink->events()[1].string_at({"object", "metadata", "annotations", "k8s.io/initial-events-end"}), "true");
}

TEST(Watch, BookmarksAreSentOnRequestAndNeverMoveBack) {
  TestServer server;
  const std::string version = version_now(server);
  const std::string common =
      std::string(kMaps) + "?watch=1&labelSelector=none%3Dnone&timeoutSeconds=300&resourceVersion=";
  const auto with = server.watch(common + version + "&allowWatchBookmarks=true");
  const auto without = server.watch(common + version);
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  server.advance(seconds(301));
  EXPECT_TRUE(with->ended);
  EXPECT_TRUE(without->ended);
  EXPECT_EQ(without->text, "");
  const std::vector<api::Json> events = with->events();
  ASSERT_EQ(events.size(), 5U);
  for (const api::Json& event : events) {
    EXPECT_EQ(event.string_at({"type"}), "BOOKMARK");
    EXPECT_GT(std::stoull(std::string(event.string_at({"object", "metadata", "resourceVersion"}))),
              std::stoull(version));
  }
  EXPECT_EQ(server.server().in_flight(), 0U);
}

/// A watch that still reads the events it missed gets no bookmark that would skip the rest of them.
TEST(Watch, NoBookmarkPrecedesEventsUpToItsRevision) {
  constexpr std::size_t kObjects = 40;
  TestServer server;
  const std::string version = version_now(server);
  const std::string data(100'000, 'x');
  for (std::size_t i = 0; i < kObjects; ++i) {
    ASSERT_EQ(
        server.post(kMaps, R"({"metadata":{"name":"m)" + std::to_string(i) + R"("},"data":{"v":")" + data + "\"}}")
            .code,
        201);
  }
  const auto sink = server.begin(
      api::Method::kGet,
      std::string(kMaps) + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=" + version);
  const Now later{server.now().mono + seconds(60), server.now().wall + seconds(60)};
  server.server().on_wakeup(later);  // one more slice; a bookmark is due
  const std::size_t sent = sink->events().size();
  ASSERT_GT(sent, 0U);
  ASSERT_LT(sent, kObjects) << "it has to be behind still";
  EXPECT_FALSE(sink->text.contains("BOOKMARK"));
  server.advance(seconds(60));
  EXPECT_EQ(sink->events().size(), kObjects);
  EXPECT_FALSE(sink->text.contains("BOOKMARK"));
  server.advance(seconds(60));
  const std::vector<api::Json> events = sink->events();
  ASSERT_EQ(events.size(), kObjects + 1);
  EXPECT_EQ(events.back().string_at({"type"}), "BOOKMARK");
  EXPECT_EQ(events.back().string_at({"object", "metadata", "resourceVersion"}), version_now(server));
}

TEST(Watch, AnObjectLeavesTheWatchOfTheFieldItHad) {
  TestServer server;
  ASSERT_EQ(server.post("/api/v1/nodes", R"({"metadata":{"name":"n1"}})").code, 201);
  const std::string target =
      "/api/v1/nodes?watch=1&resourceVersion=" + version_now(server) + "&fieldSelector=spec.unschedulable%3D";
  const auto open = server.watch(target + "false");
  const auto cordoned = server.watch(target + "true");
  ASSERT_EQ(server.merge("/api/v1/nodes/n1", R"({"spec":{"unschedulable":true}})").code, 200);
  EXPECT_EQ(open->names(), (Names{"DELETED:n1"}));
  EXPECT_EQ(cordoned->names(), (Names{"ADDED:n1"}));
  ASSERT_EQ(server.merge("/api/v1/nodes/n1", R"({"spec":{"unschedulable":null}})").code, 200);
  EXPECT_EQ(open->names(), (Names{"DELETED:n1", "ADDED:n1"}));
  EXPECT_EQ(cordoned->names(), (Names{"ADDED:n1", "DELETED:n1"}));
}

/// The client has seen a version that this server reaches later.
TEST(Watch, FromAFutureVersionBeginsBehindIt) {
  TestServer server;
  const std::uint64_t present = std::stoull(version_now(server));
  const auto sink = server.watch(std::string(kMaps) + "?watch=1&resourceVersion=" + std::to_string(present + 1));
  const Answer had = server.post(kMaps, R"({"metadata":{"name":"a"}})");
  ASSERT_EQ(had.string_at({"metadata", "resourceVersion"}), std::to_string(present + 1));
  EXPECT_EQ(sink->text, "");
  server.post(kMaps, R"({"metadata":{"name":"b"}})");
  EXPECT_EQ(sink->names(), (Names{"ADDED:b"}));
}

TEST(Watch, AFullReceiverLosesItsWatchAndNoOtherDoes) {
  TestServer server;
  const auto slow = server.watch(std::string(kMaps) + "?watch=1");
  slow->capacity = 0;
  const auto other = server.watch(std::string(kMaps) + "?watch=1");
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  EXPECT_TRUE(slow->ended);
  EXPECT_EQ(other->names(), (Names{"ADDED:a"}));
  EXPECT_FALSE(other->ended);
}

TEST(Watch, ResumesAfterARestart) {
  TestServer server;
  const std::string version = version_now(server);
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  server.restart();
  EXPECT_EQ(server.watch(std::string(kMaps) + "?watch=1&resourceVersion=" + version)->names(), (Names{"ADDED:a"}));
}

TEST(Watch, AbandonedWatchesLeaveNothingBehind) {
  TestServer server;
  server.watch(std::string(kMaps) + "?watch=1&fieldSelector=metadata.name%3Da");
  server.server().abandon(server.last_id);
  EXPECT_EQ(server.server().in_flight(), 0U);
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
}

TEST(Watch, StopEndsAllWatches) {
  TestServer server;
  const auto sink = server.watch(std::string(kMaps) + "?watch=1");
  server.server().stop();
  EXPECT_TRUE(sink->ended);
  EXPECT_EQ(server.server().in_flight(), 0U);
  EXPECT_EQ(server.get(kMaps).code, 503);
}

}  // namespace

}  // namespace spillway::apiserver
