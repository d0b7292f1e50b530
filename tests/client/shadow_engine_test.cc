// A write of a shadowed engine is answered with 404, not sent; a write that it still wants is reported as a difference.
#include "client/shadow_engine.h"

#include "client/recording_engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ShadowEngineTest : public ::testing::Test {
 protected:
  ShadowEngineTest()
      : shadow(
            std::make_unique<RecordingEngine>(inner),
            {.patience = seconds(15),
             .on_write = [this](const std::string& write, const std::string&) { wanted.push_back(write); },
             .on_difference =
                 [this](const ShadowEngine::Difference& difference) {
                   differences.push_back(fmt::format("{} for {} s", difference.write,
                                                     std::chrono::duration_cast<seconds>(difference.wanted).count()));
                 }}) {}

  /// Lets the inner engine send a call; returns the commands of the shadow.
  std::vector<ApiCommand> send(CallId id, api::Method method, std::string target) {
    inner.commands.emplace_back(SendCall{id, {method, std::move(target), {}, "{}"}});
    return shadow.take_api_commands();
  }

  void advance(Duration by) {
    now.mono += by;
    shadow.on_wakeup(now);
  }

  Now now{Instant(seconds(1000)), WallTime(seconds(1'767'225'600))};
  RecordingEngine::Record inner;
  std::vector<std::string> wanted;
  std::vector<std::string> differences;
  ShadowEngine shadow;
};

TEST_F(ShadowEngineTest, ReadsAndWatchesAreSent) {
  shadow.start(now);
  EXPECT_THAT(send(1, api::Method::kGet, "/api/v1/pods"), SizeIs(1));
  inner.commands.emplace_back(OpenWatch{2, {api::Method::kGet, "/api/v1/pods?watch=true", {}, {}}});
  EXPECT_THAT(shadow.take_api_commands(), SizeIs(1));
  EXPECT_EQ(shadow.next_wakeup(), std::nullopt);
}

TEST_F(ShadowEngineTest, NoWriteIsSentAndEachIsAnsweredOnce) {
  shadow.start(now);
  for (const api::Method method : {api::Method::kPost, api::Method::kPut, api::Method::kPatch, api::Method::kDelete}) {
    EXPECT_THAT(send(static_cast<CallId>(method), method, "/api/v1/nodes/n1"), IsEmpty());
  }
  EXPECT_EQ(shadow.next_wakeup(), now.mono) << "at once";
  inner.received.clear();
  advance({});
  EXPECT_THAT(inner.received, SizeIs(5));  // four answers and the wake-up
  EXPECT_EQ(inner.received.front().substr(inner.received.front().size() - 3), "404");
  inner.received.clear();
  advance({});
  EXPECT_THAT(inner.received, ElementsAre("wakeup"));
}

TEST_F(ShadowEngineTest, AWriteThatIsWantedForLongIsReportedOnce) {
  shadow.start(now);
  for (int i = 0; i < 6; ++i) {
    send(10 + static_cast<CallId>(i), api::Method::kPatch, "/api/v1/nodes/n1");
    advance(seconds(5));
  }
  EXPECT_THAT(wanted, ElementsAre("PATCH /api/v1/nodes/n1"));
  EXPECT_THAT(differences, ElementsAre("PATCH /api/v1/nodes/n1 for 15 s"));
}

TEST_F(ShadowEngineTest, WantedOnceIsNoDifference) {
  shadow.start(now);
  send(1, api::Method::kPatch, "/api/v1/nodes/n1");
  advance(minutes(1));
  EXPECT_THAT(differences, IsEmpty());
}

TEST_F(ShadowEngineTest, WhatWasWantedLongAgoIsForgotten) {
  shadow.start(now);
  send(1, api::Method::kPatch, "/api/v1/nodes/n1");
  advance(seconds(1));
  now.mono += seconds(151);
  send(2, api::Method::kPatch, "/api/v1/nodes/n1");
  advance(seconds(1));
  EXPECT_THAT(wanted, SizeIs(2)) << "wanted anew";
  EXPECT_THAT(differences, IsEmpty()) << "two wishes far apart are not one that lasts";
}

TEST_F(ShadowEngineTest, EventsAreDropped) {
  shadow.start(now);
  EXPECT_THAT(send(1, api::Method::kPost, "/api/v1/namespaces/default/events"), IsEmpty());
  EXPECT_THAT(send(2, api::Method::kPatch, "/api/v1/namespaces/default/events/n1.1"), IsEmpty());
  advance({});
  EXPECT_THAT(wanted, IsEmpty());
  EXPECT_THAT(inner.received, ElementsAre("start", "done 1 404", "done 2 404", "wakeup"));
}

}  // namespace
}  // namespace spillway::client
