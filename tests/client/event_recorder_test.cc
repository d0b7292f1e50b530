#include "client/event_recorder.h"

#include "client/scripted_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;

class EventRecorderTest : public ::testing::Test {
 protected:
  EventRecorderTest() : recorder(engine.client, Rng(2), "node-controller") { engine.start(); }

  void record(std::string_view name, std::string_view reason, std::string_view ns = {}) {
    recorder.record({.kind = "Node", .api_version = "v1", .ns = std::string(ns), .name = std::string(name)},
                    EventType::kNormal, reason, "words", engine.now);
    engine.collect();
  }

  api::Json take_body() { return api::parse_json(engine.take<SendCall>().request.body).value(); }

  ScriptedEngine engine;
  EventRecorder recorder;
};

TEST_F(EventRecorderTest, PostsTheFirstAndPatchesRepeats) {
  record("n1", "Failed");
  const auto post = engine.take<SendCall>();
  EXPECT_EQ(post.request.target, "/api/v1/namespaces/default/events");
  const api::Json event = api::parse_json(post.request.body).value();
  EXPECT_THAT(std::string(event.string_at({"metadata", "name"})), MatchesRegex("n1\\.[0-9a-f]{16}"));
  EXPECT_EQ(event.string_at({"involvedObject", "name"}), "n1");
  EXPECT_EQ(event.string_at({"source", "component"}), "node-controller");
  EXPECT_EQ(event.string_at({"type"}), "Normal");
  EXPECT_EQ(event.find("count")->if_int64(), 1);
  engine.answer(post.id, 201, "{}");

  engine.advance(seconds(10));
  record("n1", "Failed");
  const auto patch = engine.take<SendCall>();
  EXPECT_EQ(patch.request.method, api::Method::kPatch);
  EXPECT_THAT(patch.request.target, HasSubstr("/events/n1."));
  EXPECT_EQ(api::parse_json(patch.request.body)->find("count")->if_int64(), 2);
}

TEST_F(EventRecorderTest, AMessageMovesNoTerminal) {
  recorder.record({.kind = "Node", .api_version = "v1", .name = "n1"}, EventType::kNormal, "Said",
                  "a\x1b[2J\x7f\xc2\x9b\xe2\x80\xae\xff\nb", engine.now);
  engine.collect();
  EXPECT_EQ(take_body().string_at({"message"}), "a?[2J???????\nb");
}

TEST_F(EventRecorderTest, CountsRepeatsInWhileTheFirstIsOnItsWay) {
  record("n1", "Failed");
  record("n1", "Failed");
  record("n1", "Failed");
  ASSERT_THAT(engine.commands, SizeIs(1));
  engine.answer(engine.take<SendCall>().id, 201, "{}");
  EXPECT_EQ(take_body().find("count")->if_int64(), 3);
}

TEST_F(EventRecorderTest, WhatIsHeldBackIsCountedByTheNextThatGoesOut) {
  for (int i = 0; i < 30; ++i) {
    record("n1", "Failed");
    if (!engine.commands.empty()) engine.answer(engine.take<SendCall>().id, i == 0 ? 201 : 200, "{}");
  }
  EXPECT_THAT(engine.commands, IsEmpty());
  record("n2", "Failed");
  engine.answer(engine.take<SendCall>().id, 201, "{}");
  engine.advance(minutes(6));
  record("n1", "Failed");
  EXPECT_EQ(take_body().find("count")->if_int64(), 31);
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST_F(EventRecorderTest, WhatIsHeldBackDoesNotGoOutWithAnAnswer) {
  for (int i = 0; i < 30; ++i) record("n1", "Failed");
  engine.answer(engine.take<SendCall>().id, 201, "{}");  // one event had been counted
  EXPECT_EQ(take_body().find("count")->if_int64(), 30);
  record("n1", "Failed");
  EXPECT_THAT(engine.commands, IsEmpty());
}

TEST_F(EventRecorderTest, SimilarEventsBecomeOneWhoseTextIsTheLatest) {
  const auto say = [this](int number) {
    recorder.record({.kind = "Node", .api_version = "v1", .name = "n1"}, EventType::kNormal, "R",
                    fmt::format("text {}", number), engine.now);
    engine.collect();
    const auto call = engine.take<SendCall>();
    engine.answer(call.id, call.request.method == api::Method::kPost ? 201 : 200, "{}");
    return call.request;
  };
  for (int i = 1; i < 10; ++i) EXPECT_EQ(say(i).method, api::Method::kPost);
  const auto combined = say(10);
  EXPECT_EQ(combined.method, api::Method::kPost);
  EXPECT_EQ(api::parse_json(combined.body)->string_at({"message"}), "(combined from similar events): text 10");
  const auto further = say(11);
  EXPECT_EQ(further.method, api::Method::kPatch);
  EXPECT_EQ(api::parse_json(further.body)->string_at({"message"}), "(combined from similar events): text 11");
  EXPECT_EQ(api::parse_json(further.body)->find("count")->if_int64(), 2);
}

TEST_F(EventRecorderTest, AnExpiredEventIsPostedAnew) {
  record("n1", "Failed");
  const auto first = engine.take<SendCall>();
  engine.answer(first.id, 201, "{}");
  record("n1", "Failed");
  engine.answer(engine.take<SendCall>().id, 404, "gone");
  const auto again = engine.take<SendCall>();
  EXPECT_EQ(again.request.method, api::Method::kPost);
  EXPECT_NE(api::parse_json(again.request.body)->at({"metadata", "name"}),
            api::parse_json(first.request.body)->at({"metadata", "name"}));
}

TEST_F(EventRecorderTest, RetriesWhatMayPassAndGivesUpInTheEnd) {
  record("n1", "Failed");
  for (int i = 0; i < 4; ++i) {
    ASSERT_THAT(engine.commands, SizeIs(1)) << i;
    engine.answer(engine.take<SendCall>().id, 503, "away");
    engine.advance(seconds(9));
  }
  EXPECT_THAT(engine.commands, IsEmpty());
  EXPECT_EQ(recorder.dropped(), 1U);
  record("n2", "Failed");
  engine.answer(engine.take<SendCall>().id, 403, "no");
  EXPECT_EQ(recorder.dropped(), 2U);
}

TEST_F(EventRecorderTest, ALostAnswerDoesNotMakeTwoEvents) {
  record("n1", "Failed");
  const api::Json first = take_body();
  engine.advance(seconds(13));  // timed out, tried again
  const auto again = engine.take<SendCall>();
  EXPECT_EQ(*api::parse_json(again.request.body)->at({"metadata", "name"}), *first.at({"metadata", "name"}));
  engine.answer(again.id, 409, R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists"})");
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST(EventRecorder, AFullQueueDropsTheOldest) {
  ScriptedEngine engine;
  engine.start();
  EventRecorder recorder(engine.client, Rng(2), "c", "", {.queue_max = 2, .in_flight_max = 1});
  for (const char* name : {"n1", "n2", "n3", "n4"}) {
    recorder.record({.kind = "Pod", .ns = "shop", .name = name}, EventType::kWarning, "R", "m", engine.now);
  }
  engine.collect();
  EXPECT_EQ(recorder.dropped(), 1U);
  EXPECT_EQ(recorder.waiting(), 2U);
  const auto first = engine.take<SendCall>();
  EXPECT_THAT(first.request.body, HasSubstr("n1"));
  engine.answer(first.id, 201, "{}");
  EXPECT_THAT(engine.take<SendCall>().request.body, HasSubstr("n3"));
}

TEST(EventRecorder, NamesFollowTheSeed) {
  const auto first_name = [](std::uint64_t seed) {
    ScriptedEngine engine;
    engine.start();
    EventRecorder recorder(engine.client, Rng(seed), "c");
    recorder.record({.kind = "Pod", .ns = "shop", .name = "p"}, EventType::kNormal, "R", "m", engine.now);
    engine.collect();
    return std::string(api::parse_json(engine.take<SendCall>().request.body)->string_at({"metadata", "name"}));
  };
  EXPECT_EQ(first_name(1), first_name(1));
  EXPECT_NE(first_name(1), first_name(2));
}

TEST(EventRecorder, MemoryIsBounded) {
  ScriptedEngine engine;
  engine.start();
  EventRecorder recorder(engine.client, Rng(2), "c", "", {.known_max = 3, .in_flight_max = 1});
  for (int i = 0; i < 10; ++i) {
    recorder.record({.kind = "Pod", .ns = "shop", .name = fmt::format("p{}", i)}, EventType::kNormal, "R", "m",
                    engine.now);
    engine.collect();
    engine.answer(engine.take<SendCall>().id, 201, "{}");
  }
  recorder.record({.kind = "Pod", .ns = "shop", .name = "p9"}, EventType::kNormal, "R", "m", engine.now);
  engine.collect();
  const auto repeat = engine.take<SendCall>();
  EXPECT_EQ(repeat.request.method, api::Method::kPatch);
  recorder.record({.kind = "Pod", .ns = "shop", .name = "p0"}, EventType::kNormal, "R", "m", engine.now);
  engine.collect();
  EXPECT_THAT(engine.commands, IsEmpty());  // one write at a time
  engine.answer(repeat.id, 200, "{}");
  EXPECT_EQ(engine.take<SendCall>().request.method, api::Method::kPost) << "it was forgotten";
}

TEST(EventRecorder, ForgetsTheKeyWithTheOldestEvent) {
  ScriptedEngine engine;
  engine.start();
  EventRecorder recorder(engine.client, Rng(2), "c", "", {.known_max = 2});
  const auto method_of = [&](const char* name) {
    engine.advance(seconds(1));
    recorder.record({.kind = "Pod", .ns = "shop", .name = name}, EventType::kNormal, "R", "m", engine.now);
    engine.collect();
    const auto call = engine.take<SendCall>();
    engine.answer(call.id, 201, "{}");
    return call.request.method;
  };
  method_of("a");
  method_of("b");
  EXPECT_EQ(method_of("a"), api::Method::kPatch);
  method_of("c");
  EXPECT_EQ(method_of("a"), api::Method::kPatch) << "b was forgotten, though a came first";
  EXPECT_EQ(method_of("b"), api::Method::kPost);
  EXPECT_EQ(method_of("a"), api::Method::kPatch) << "c was forgotten";
}

TEST(EventRecorder, WhatIsOnItsWayIsNotForgotten) {
  ScriptedEngine engine;
  engine.start();
  EventRecorder recorder(engine.client, Rng(2), "c", "", {.known_max = 1, .in_flight_max = 1});
  const auto record = [&](const char* name) {
    recorder.record({.kind = "Pod", .ns = "shop", .name = name}, EventType::kNormal, "R", "m", engine.now);
    engine.collect();
  };
  record("p");
  const auto post = engine.take<SendCall>();
  record("q");
  record("p");
  engine.answer(post.id, 201, "{}");
  const auto next = engine.take<SendCall>();
  EXPECT_EQ(next.request.method, api::Method::kPost);
  EXPECT_THAT(next.request.body, HasSubstr("q."));
  engine.answer(next.id, 201, "{}");
  const auto again = engine.take<SendCall>();
  EXPECT_EQ(again.request.method, api::Method::kPatch);
  const api::Json posted = api::parse_json(post.request.body).value();
  EXPECT_TRUE(again.request.target.ends_with(fmt::format("/events/{}", posted.string_at({"metadata", "name"}))))
      << again.request.target;
  EXPECT_EQ(api::parse_json(again.request.body)->find("count")->if_int64(), 2);
}

}  // namespace
}  // namespace spillway::client
