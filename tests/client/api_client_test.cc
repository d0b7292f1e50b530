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

/// A heartbeat that may be malformed goes with its text, so that the server sees every byte.
TEST(ApiClient, AHeartbeatGoesWithoutItsText) {
  ScriptedEngine engine;
  engine.start();
  const auto sent = [&engine](std::string_view kind, std::string_view holder) {
    api::Json lease = api::Json::object({{"kind", kind}});
    lease.make({"spec", "holders"}) = api::Json::array({1, holder});
    engine.client.update("/leases/n1", lease, {});
    engine.collect();
    const api::Request request = engine.take<SendCall>().request;
    if (request.document) EXPECT_EQ(*request.document, lease);
    return std::pair(request.body.empty(), request.document != nullptr);
  };
  EXPECT_EQ(sent("Lease", "n1"), std::pair(true, true));
  EXPECT_EQ(sent("Lease", "n\xff"), std::pair(false, false));
  EXPECT_EQ(sent("Node", "n1"), std::pair(false, true));
  engine.client.create("/leases", api::Json::object({{"kind", "Lease"}}), {});
  engine.collect();
  EXPECT_EQ(engine.take<SendCall>().request.body, R"({"kind":"Lease"})");
}

/// Metadata that a server has answered with is not checked again; metadata that goes to it for the first time is.
TEST(ApiClient, TheMetadataOfAHeartbeatIsVouchedForByItsUid) {
  ScriptedEngine engine;
  engine.start();
  const auto goes_alone = [&engine](std::string_view uid, std::string_view holder) {
    api::Json lease = api::Json::object({{"kind", "Lease"}});
    lease.make({"metadata", "labels", "a"}) = "n\xc3\xbc";
    if (!uid.empty()) lease.make({"metadata", "uid"}) = uid;
    lease.make({"spec", "holderIdentity"}) = holder;
    engine.client.update("/leases/n1", lease, {});
    engine.collect();
    return engine.take<SendCall>().request.body.empty();
  };
  EXPECT_TRUE(goes_alone("u-1", "n1"));
  EXPECT_FALSE(goes_alone("", "n1"));
  EXPECT_FALSE(goes_alone("u-1", "n\xff"));
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

TEST(ApiClient, WritesWaitForTheirTurnAndReadsDoNot) {
  ScriptedEngine engine({.write_rate = ApiClient::Rate{.per_second = 10, .burst = 2}});
  engine.start();
  for (const char* path : {"/a", "/b", "/c", "/d"}) engine.client.remove(path, {}, {});
  engine.client.get("/read", {});
  engine.collect();
  std::vector<std::string> sent;
  for (const ApiCommand& command : engine.commands) sent.push_back(std::get<SendCall>(command).request.target);
  EXPECT_THAT(sent, ElementsAre("/a", "/b", "/read"));
  EXPECT_EQ(engine.take<SendCall>().rate_limited_for, Duration::zero());
  engine.take<SendCall>();
  EXPECT_EQ(engine.take<SendCall>().rate_limited_for, std::nullopt);
  engine.advance(milliseconds(99));
  EXPECT_TRUE(engine.commands.empty());
  engine.advance(milliseconds(1));
  const auto third = engine.take<SendCall>();
  EXPECT_EQ(third.request.target, "/c");
  EXPECT_EQ(third.rate_limited_for, milliseconds(100));
  engine.advance(milliseconds(100));
  EXPECT_EQ(engine.take<SendCall>().request.target, "/d");
  EXPECT_EQ(engine.client.waiting(), 0U);
}

TEST(ApiClient, ARateFillsTheQueueOfWritesAndLeavesReadsRoom) {
  ScriptedEngine engine({.waiting_max = 3, .write_rate = ApiClient::Rate{.per_second = 1, .burst = 1}});
  engine.start();
  Outcomes got;
  for (int i = 0; i < 5; ++i) engine.client.remove("/x", {}, got.catcher());
  engine.client.get("/read", got.catcher());
  engine.collect();
  EXPECT_EQ(engine.commands.size(), 2U);
  EXPECT_EQ(engine.client.waiting(), 3U);
  engine.advance(Duration::zero());
  ASSERT_EQ(got.all.size(), 1U);  // reported, not dropped
  EXPECT_EQ(got.all[0].error().code, ErrorCode::kTooManyRequests);
  engine.commands.clear();
  engine.advance(seconds(3));
  EXPECT_EQ(engine.commands.size(), 3U);
}

TEST(ApiClient, ACallDoesNotTimeOutWhileItWaitsForItsTurn) {
  ScriptedEngine engine({.call_timeout = seconds(1), .write_rate = ApiClient::Rate{.per_second = 0.1F, .burst = 1}});
  engine.start();
  Outcomes got;
  engine.client.remove("/a", {}, {});
  engine.client.remove("/b", {}, got.catcher());
  engine.advance(seconds(10));
  EXPECT_TRUE(got.all.empty());
  engine.advance(seconds(2));
  ASSERT_EQ(got.all.size(), 1U);
  EXPECT_EQ(got.all[0].error().code, ErrorCode::kTimeout);
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
