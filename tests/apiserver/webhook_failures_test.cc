// Webhooks that cannot be asked, answer wrongly, take their time or are too many, and what requests meet meanwhile.
#include "apiserver/webhooks_fixture.h"

namespace spillway::apiserver::webhook_tests {
namespace {

TEST(Webhooks, AWebhookThatCannotBeAsked) {
  World world;
  world.mutating("a");
  world.script["a"] = [](const auto&) -> Result<api::Response> {
    return make_error(ErrorCode::kServiceUnavailable, "connection refused");
  };
  const Answer answer = world.create("m");
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(answer.string_at({"reason"}), "InternalError");
  EXPECT_EQ(answer.string_at({"message"}),
            R"(Internal error occurred: failed calling webhook "a.hooks.dev": failed to call webhook: )"
            R"(Post "https://a?timeout=10s": connection refused)");
  EXPECT_NE(world.metrics().find(R"(error_type="calling_webhook_error")"), std::string::npos);
}

TEST(Webhooks, WhatIgnoreMeans) {
  World world;
  world.mutating("a", R"("failurePolicy":"Ignore")");
  world.validating("b", R"("failurePolicy":"Ignore")");
  const auto wrong = [](const TestWebhooks::Asked& asked) { return review(asked, Json::object({{"allowed", "yes"}})); };
  world.script = {{"a", wrong}, {"b", wrong}};
  EXPECT_EQ(world.create("m").code, 201);
  EXPECT_NE(world.metrics().find(R"(apiserver_admission_webhook_fail_open_count{name="a.hooks.dev",type="admit"} 1)"),
            std::string::npos);
  EXPECT_NE(world.metrics().find(R"(fail_open_count{name="b.hooks.dev",type="validating"} 1)"), std::string::npos);
  // A refusal is no failure.
  world.script["b"] = [](const auto& asked) { return denied(asked, "no"); };
  EXPECT_EQ(world.create("n").code, 403);
  // A patch that cannot be applied is not ignored either.
  world.script = {{"a", [](const auto& asked) { return patch(asked, R"([{"op":"remove","path":"/none"}])"); }}};
  EXPECT_EQ(world.create("n").code, 500);
}

TEST(Webhooks, WrongAnswers) {
  World world;
  world.validating("a");
  const auto message = [&](const TestWebhooks::Answers& answer) {
    world.script["a"] = answer;
    const Answer got = world.create("m");
    EXPECT_EQ(got.code, 500) << got.text;
    return got.string_at({"message"});
  };
  const std::string failed = R"(Internal error occurred: failed calling webhook "a.hooks.dev": )";
  EXPECT_EQ(
      message([](const auto&) { return api::Response{.status = 404, .headers = {}, .body = "", .document = {}}; }),
      failed + "failed to call webhook: the server could not find the requested resource");
  EXPECT_EQ(
      message([](const auto&) { return api::Response{.status = 502, .headers = {}, .body = "bad", .document = {}}; }),
      failed + R"(failed to call webhook: an error on the server ("bad") has prevented the request from succeeding)");
  EXPECT_EQ(
      message([](const auto&) {
        return api::Response{.status = 302, .headers = {{"Location", "https://b"}}, .body = "", .document = {}};
      }),
      failed +
          "failed to call webhook: the server responded with the status code 302 but did not return more information");
  const std::string wrong_uid = message([](TestWebhooks::Asked asked) {
    asked.review.make({"request", "uid"}) = "other";
    return allowed(asked);
  });
  EXPECT_TRUE(wrong_uid.starts_with(failed + "received invalid webhook response: expected response.uid=")) << wrong_uid;
  EXPECT_EQ(message([](const TestWebhooks::Asked& asked) { return patch(asked, "[]"); }),
            failed + "received invalid webhook response: validating webhook may not return response.patch");
}

TEST(Webhooks, ASilentWebhookIsNotWaitedForLongerThanItsTime) {
  World world;
  world.mutating("a", R"("timeoutSeconds":3)");
  world.script["a"] = [](const auto&) { return std::nullopt; };
  const auto sink = world.server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"m"}})");
  world.server.advance(milliseconds(2900));
  EXPECT_FALSE(sink->answered());
  world.server.advance(milliseconds(200));
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 500);
  EXPECT_NE(sink->response->body.find("context deadline exceeded"), std::string::npos);
  EXPECT_TRUE(world.server.webhooks.open.empty());  // the webhook call was cancelled
}

TEST(Webhooks, IgnoredSilenceGoesOn) {
  World world;
  world.mutating("a", R"("timeoutSeconds":3,"failurePolicy":"Ignore")");
  world.mutating("b", R"("timeoutSeconds":3,"failurePolicy":"Ignore")");
  world.script["a"] = world.script["b"] = [](const auto&) { return std::nullopt; };
  const auto sink = world.server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"m"}})");
  world.server.advance(seconds(5));
  EXPECT_FALSE(sink->answered());
  world.server.advance(seconds(2));
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 201);
}

TEST(Webhooks, ARequestDoesNotWaitLongerThanAMinute) {
  World world;
  for (const std::string_view name : {"a", "b", "c"}) {
    world.mutating(name, R"("timeoutSeconds":30,"failurePolicy":"Ignore")");
    world.script[std::string(name)] = [](const auto&) { return std::nullopt; };
  }
  const auto sink = world.server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"m"}})");
  world.server.advance(seconds(60));
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 504);
  world.server.advance(seconds(60));
  EXPECT_EQ(world.called, (Texts{"a", "b"}));
  EXPECT_EQ(world.server.get(kMaps + "/m").code, 404);
}

TEST(Webhooks, TheTimeOfAnAnswerIsTheTimeOfTheWrite) {
  World world;
  world.validating("a");
  world.script["a"] = [](const auto&) { return std::nullopt; };
  const auto sink = world.server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"m"}})");
  world.server.advance(seconds(5));
  world.server.webhooks.answer_next(allowed(world.server.webhooks.asked.front()));
  world.server.run_until_idle();
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 201);
}

TEST(Webhooks, ValidatingWebhooksAreAskedTogether) {
  World world;
  for (const std::string_view name : {"a", "b", "c"}) {
    world.validating(name);
    world.script[std::string(name)] = [](const auto&) { return std::nullopt; };
  }
  const auto sink = world.server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"m"}})");
  ASSERT_EQ(world.server.webhooks.asked.size(), 3U);
  EXPECT_EQ(world.server.webhooks.open.size(), 3U);
  world.server.webhooks.answer_next(allowed(world.server.webhooks.asked[0]));
  world.server.webhooks.answer_next(denied(world.server.webhooks.asked[1], "second"));
  EXPECT_FALSE(sink->answered());
  world.server.webhooks.answer_next(denied(world.server.webhooks.asked[2], "third"));
  ASSERT_TRUE(sink->answered());
  EXPECT_NE(sink->response->body.find("second"), std::string::npos);
}

TEST(Webhooks, AnObjectThatChangesMeanwhileIsShownAgain) {
  World world;
  ASSERT_EQ(world.create("m").code, 201);
  world.mutating("a");
  world.script["a"] = [](const auto&) { return std::nullopt; };
  const auto sink = world.server.send(api::Method::kPatch, kMaps + "/m", R"({"data":{"b":"2"}})",
                                      {{"content-type", "application/merge-patch+json"}});
  ASSERT_EQ(world.server.webhooks.open.size(), 1U);
  // A slow webhook does not delay other requests.
  world.script["a"] = [](const auto& asked) { return allowed(asked); };
  ASSERT_EQ(world.server.merge(kMaps + "/m", R"({"data":{"c":"3"}})").code, 200);
  world.server.webhooks.answer_next(
      patch(world.server.webhooks.asked.front(), R"([{"op":"add","path":"/data/w","value":"1"}])"));
  world.server.run_until_idle();
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 200);
  EXPECT_EQ(world.called.size(), 3U);
  EXPECT_EQ(world.server.webhooks.asked.back().review.string_at({"request", "oldObject", "data", "c"}), "3");
  EXPECT_EQ(api::to_text(*world.server.get(kMaps + "/m").body.find("data")), R"({"a":"1","b":"2","c":"3"})");
}

TEST(Webhooks, QuestionsUnderWayAreBounded) {
  World world;
  world.validating("a");
  world.script["a"] = [](const auto&) { return std::nullopt; };
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 300; ++i) {
    sinks.push_back(world.server.send(api::Method::kPost, kMaps, fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", i)));
  }
  EXPECT_EQ(world.server.webhooks.open.size(), 256U);
  EXPECT_FALSE(sinks.front()->answered());
  ASSERT_TRUE(sinks.back()->answered());
  EXPECT_EQ(sinks.back()->response->status, 500);
  EXPECT_NE(sinks.back()->response->body.find("too many calls"), std::string::npos);
}

}  // namespace
}  // namespace spillway::apiserver::webhook_tests
