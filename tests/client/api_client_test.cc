#include "client/api_client.h"

#include "client/scripted_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace spillway::client {
namespace {

using ::testing::ElementsAre;

struct Outcomes {
  ApiClient::Done catcher() {
    return [this](Result<api::Json> outcome, Now) { all.push_back(std::move(outcome)); };
  }

  std::vector<Result<api::Json>> all;
};

TEST(ObjectPath, CoversGroupsNamespacesAndSubresources) {
  EXPECT_EQ(object_path("v1", "nodes", {}), "/api/v1/nodes");
  EXPECT_EQ(object_path("v1", "pods", "shop", "cart-7", "status"), "/api/v1/namespaces/shop/pods/cart-7/status");
  EXPECT_EQ(object_path("apps/v1", "replicasets", "shop"), "/apis/apps/v1/namespaces/shop/replicasets");
}

TEST(ErrorOfAnswer, ReadsTheStatusOrFallsBackToTheCode) {
  const Error conflict = error_of_answer(
      409,
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"changed","code":409})");
  EXPECT_EQ(conflict.code, ErrorCode::kConflict);
  EXPECT_EQ(conflict.message, "changed");
  EXPECT_EQ(error_of_answer(503, "<html>").code, ErrorCode::kServiceUnavailable);
  EXPECT_EQ(error_of_answer(418, "").code, ErrorCode::kBadRequest);
}

TEST(ApiClient, SendsWhatWasAsked) {
  ScriptedEngine engine;
  engine.start();
  engine.client.patch("/api/v1/nodes/n1", PatchType::kStrategicMerge, api::Json::object({{"a", 1}}), {});
  engine.collect();
  const auto call = engine.take<SendCall>();
  EXPECT_EQ(call.request.method, api::Method::kPatch);
  EXPECT_EQ(call.request.target, "/api/v1/nodes/n1");
  EXPECT_EQ(call.request.header("content-type"), "application/strategic-merge-patch+json");
  EXPECT_EQ(call.request.header("user-agent"), "test/1");
  EXPECT_EQ(call.request.body, R"({"a":1})");
}

TEST(ApiClient, AnswersReachTheContinuation) {
  ScriptedEngine engine;
  engine.start();
  Outcomes got;
  engine.client.get("/a", got.catcher());
  engine.client.get("/b", got.catcher());
  engine.client.get("/c", got.catcher());
  engine.collect();
  const auto a = engine.take<SendCall>();
  const auto b = engine.take<SendCall>();
  const auto c = engine.take<SendCall>();
  engine.answer(b.id, 200, R"({"x":2})");
  engine.answer(a.id, 404, "no");
  engine.deliver(CallDone{c.id, make_error(ErrorCode::kServiceUnavailable, "refused")});
  engine.answer(b.id, 200, "{}");  // late and unasked for
  ASSERT_EQ(got.all.size(), 3U);
  EXPECT_EQ(got.all[0].value(), api::Json::object({{"x", 2}}));
  EXPECT_EQ(got.all[1].error().code, ErrorCode::kNotFound);
  EXPECT_EQ(got.all[2].error().code, ErrorCode::kServiceUnavailable);
}

TEST(ApiClient, ACallThatIsNotAnsweredTimesOut) {
  ScriptedEngine engine;
  engine.start();
  Outcomes got;
  engine.client.get("/a", got.catcher());
  engine.collect();
  const auto call = engine.take<SendCall>();
  engine.advance(milliseconds(9'999));
  EXPECT_TRUE(got.all.empty());
  engine.advance(milliseconds(1));
  ASSERT_EQ(got.all.size(), 1U);
  EXPECT_EQ(got.all[0].error().code, ErrorCode::kTimeout);
  engine.answer(call.id, 200, "{}");
  EXPECT_EQ(got.all.size(), 1U);
  EXPECT_EQ(engine.client.in_flight(), 0U);
}

TEST(ApiClient, TheTimeOutCountsFromTheSendingNotFromTheLastEvent) {
  ScriptedEngine engine;
  engine.start();
  engine.now.mono += hours(1);  // the owner was busy with other events
  Outcomes got;
  engine.client.get("/a", got.catcher());
  engine.collect();
  engine.advance(seconds(9));
  EXPECT_TRUE(got.all.empty());
  engine.advance(seconds(2));
  EXPECT_EQ(got.all.size(), 1U);
}

TEST(ApiClient, MoreCallsThanAllowedWaitInOrderThenAreRefused) {
  ApiClient::Limits limits;
  limits.in_flight_max = 2;
  limits.waiting_max = 1;
  ScriptedEngine engine(limits);
  engine.start();
  Outcomes got;
  for (const char* path : {"/a", "/b", "/c", "/d"}) engine.client.get(path, got.catcher());
  engine.collect();
  ASSERT_EQ(engine.commands.size(), 2U);
  EXPECT_EQ(engine.client.waiting(), 1U);
  engine.advance(Duration::zero());
  ASSERT_EQ(got.all.size(), 1U);
  EXPECT_EQ(got.all[0].error().code, ErrorCode::kTooManyRequests);
  engine.answer(engine.take<SendCall>().id, 200, "{}");
  engine.take<SendCall>();
  EXPECT_EQ(engine.take<SendCall>().request.target, "/c");
}

TEST(ApiClient, TimersRunInOrderAndCanBeCancelled) {
  ScriptedEngine engine;
  engine.start();
  std::vector<int> ran;
  const Instant t = engine.now.mono;
  engine.client.at(t + seconds(2), [&](Now) { ran.push_back(3); });
  engine.client.at(t + seconds(1), [&](Now) { ran.push_back(1); });
  const auto doomed = engine.client.at(t + seconds(1), [&](Now) { ran.push_back(9); });
  engine.client.at(t + seconds(1), [&](Now) {
    ran.push_back(2);
    engine.client.at(t + seconds(1), [&](Now) { ran.push_back(4); });  // due already: next wake-up
  });
  engine.client.cancel(doomed);
  engine.advance(milliseconds(1500));
  EXPECT_THAT(ran, ElementsAre(1, 2, 4));
  engine.advance(seconds(1));
  EXPECT_THAT(ran, ElementsAre(1, 2, 4, 3));
  EXPECT_FALSE(engine.client.next_wakeup());
}

}  // namespace
}  // namespace spillway::client
