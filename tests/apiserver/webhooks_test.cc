// Requests past admission webhooks, which a test plays: who is asked, in which order, and what comes of the answers.
#include "api/text/base64.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Json;
using Texts = std::vector<std::string>;

const std::string kGroup = "/apis/admissionregistration.k8s.io/v1";

/// One webhook of a configuration of its own, for configmaps unless `members` say otherwise.
std::string one(std::string_view configuration, std::string_view members = "") {
  Json webhook = *api::parse_json(
      fmt::format(R"({{"name":"{0}.hooks.dev","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":)"
                  R"({{"url":"https://{0}"}},"rules":[{{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],)"
                  R"("resources":["configmaps"]}}]}})",
                  configuration));
  const auto more = api::parse_json(fmt::format("{{{}}}", members));
  EXPECT_TRUE(more) << members;
  for (const auto& [key, value] : *std::as_const(*more).if_object()) webhook[key] = value;
  return api::to_text(Json::object(
      {{"metadata", Json::object({{"name", configuration}})}, {"webhooks", Json::array({std::move(webhook)})}}));
}

std::string rules(std::string_view operations, std::string_view resources, std::string_view groups = "\"\"") {
  return fmt::format(R"("rules":[{{"operations":[{}],"apiGroups":[{}],"apiVersions":["*"],"resources":[{}]}}])",
                     operations, groups, resources);
}

api::Response review(const TestWebhooks::Asked& asked, Json response) {
  response["uid"] = asked.uid();
  return {.status = 200,
          .headers = {},
          .body = api::to_text(Json::object(
              {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}})),
          .document = nullptr};
}

api::Response allowed(const TestWebhooks::Asked& asked) {
  return review(asked, Json::object({{"allowed", true}}));
}

api::Response denied(const TestWebhooks::Asked& asked, std::string_view why, int code = 403) {
  return review(asked,
                Json::object({{"allowed", false},
                              {"status", Json::object({{"code", code}, {"message", why}, {"reason", "Forbidden"}})}}));
}

api::Response patch(const TestWebhooks::Asked& asked, std::string_view operations) {
  return review(
      asked, Json::object({{"allowed", true}, {"patchType", "JSONPatch"}, {"patch", api::encode_base64(operations)}}));
}

/// Which webhook it is: the host of its URL.
std::string host(const TestWebhooks::Asked& asked) {
  return asked.call.origin.substr(8);
}

struct World {
  explicit World(AdmissionRules rules = {}) : server(ApiServer::Controllers::kUnknown, std::move(rules)) {
    server.webhooks.answers = [this](const TestWebhooks::Asked& asked) -> std::optional<Result<api::Response>> {
      told.push_back(host(asked));
      const auto found = script.find(host(asked));
      return found == script.end() ? allowed(asked) : found->second(asked);
    };
  }

  void mutating(std::string_view name, std::string_view members = "") { make("mutating", name, members); }

  void validating(std::string_view name, std::string_view members = "") { make("validating", name, members); }

  void make(std::string_view phase, std::string_view name, std::string_view members) {
    const Answer made = server.post(fmt::format("{}/{}webhookconfigurations", kGroup, phase), one(name, members));
    EXPECT_EQ(made.code, 201) << made.text;
  }

  Answer create(std::string_view name, std::string_view data = R"("a":"1")", std::string_view query = "") {
    return server.post(kMaps + std::string(query),
                       fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{{}}}}})", name, data));
  }

  std::string metrics() { return server.get("/metrics").text; }

  TestServer server;
  std::map<std::string, TestWebhooks::Answers> script;
  Texts told;
};

/// Adds a member of data.
TestWebhooks::Answers adds(std::string_view key) {
  return [key = std::string(key)](const TestWebhooks::Asked& asked) {
    return patch(asked, fmt::format(R"([{{"op":"add","path":"/data/{}","value":"set"}}])", key));
  };
}

TEST(Webhooks, NobodyIsAskedWithoutARule) {
  World world;
  world.mutating("pods", rules(R"("*")", R"("pods")"));
  EXPECT_EQ(world.create("m").code, 201);
  EXPECT_TRUE(world.told.empty());
}

TEST(Webhooks, AnObjectIsChangedThenJudged) {
  World world;
  world.validating("a-judge");
  world.mutating("b-second");
  world.mutating("a-first");
  world.script["a-first"] = adds("first");
  world.script["b-second"] = [](const TestWebhooks::Asked& asked) {
    EXPECT_EQ(asked.review.string_at({"request", "object", "data", "first"}), "set");
    return patch(asked, R"([{"op":"add","path":"/data/second","value":"set"}])");
  };
  world.script["a-judge"] = [](const TestWebhooks::Asked& asked) {
    EXPECT_EQ(asked.review.string_at({"request", "object", "data", "second"}), "set");
    EXPECT_FALSE(asked.review.string_at({"request", "object", "metadata", "uid"}).empty());
    return allowed(asked);
  };
  const Answer made = world.create("m");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(api::to_text(*made.body.find("data")), R"({"a":"1","first":"set","second":"set"})");
  EXPECT_EQ(world.told, (Texts{"a-first", "b-second", "a-judge"}));
  EXPECT_EQ(api::to_text(*world.server.get(kMaps + "/m").body.find("data")),
            R"({"a":"1","first":"set","second":"set"})");
}

TEST(Webhooks, TheQuestion) {
  World world;
  world.mutating("a");
  ASSERT_EQ(world.create("m", R"("a":"1")", "?fieldManager=me&dryRun=All").code, 201);
  const TestWebhooks::Asked& asked = world.server.webhooks.asked.front();
  EXPECT_EQ(asked.call.origin, "https://a");
  EXPECT_EQ(asked.call.target, "/?timeout=10s");
  EXPECT_EQ(asked.call.timeout, seconds(10));
  Json request = *asked.review.find("request");
  request.erase({"uid"});
  EXPECT_EQ(
      api::to_text(request),
      R"({"dryRun":true,"kind":{"group":"","kind":"ConfigMap","version":"v1"},"name":"m","namespace":"default",)"
      R"("object":{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"creationTimestamp":null,)"
      R"("name":"m","namespace":"default"}},"oldObject":null,"operation":"CREATE","options":{"apiVersion":)"
      R"("meta.k8s.io/v1","dryRun":["All"],"fieldManager":"me","kind":"CreateOptions"},"requestKind":{"group":"",)"
      R"("kind":"ConfigMap","version":"v1"},"requestResource":{"group":"","resource":"configmaps","version":"v1"},)"
      R"("resource":{"group":"","resource":"configmaps","version":"v1"},"userInfo":{"groups":["system:masters",)"
      R"("system:authenticated"],"username":"admin"}})");
}

TEST(Webhooks, ARefusalIsTold) {
  World world;
  world.validating("a");
  world.script["a"] = [](const auto& asked) { return denied(asked, "not this one"); };
  const Answer answer = world.create("m");
  EXPECT_EQ(answer.code, 403);
  EXPECT_EQ(answer.string_at({"message"}), R"(admission webhook "a.hooks.dev" denied the request: not this one)");
  EXPECT_EQ(answer.string_at({"reason"}), "Forbidden");
  EXPECT_EQ(world.server.get(kMaps + "/m").code, 404);
  EXPECT_NE(
      world.metrics().find(
          R"(apiserver_admission_webhook_rejection_count{error_type="no_error",name="a.hooks.dev",operation="CREATE",rejection_code="403",type="validating"} 1)"),
      std::string::npos)
      << world.metrics();
}

TEST(Webhooks, UpdatesAndDeletions) {
  World world;
  ASSERT_EQ(world.create("m").code, 201);
  world.validating("a");
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    const Json& request = *asked.review.find("request");
    const bool keeps = request.string_at({"oldObject", "data", "a"}) == "1" &&
                       (request.find("object")->is_null() || request.string_at({"object", "data", "a"}) == "2");
    return keeps ? denied(asked, request.string_at({"operation"}), 409) : allowed(asked);
  };
  EXPECT_EQ(world.server.merge(kMaps + "/m", R"({"data":{"a":"2"}})").string_at({"message"}),
            R"(admission webhook "a.hooks.dev" denied the request: UPDATE)");
  EXPECT_EQ(world.server.remove(kMaps + "/m", R"({"gracePeriodSeconds":7})").string_at({"message"}),
            R"(admission webhook "a.hooks.dev" denied the request: DELETE)");
  const Json& options = *world.server.webhooks.asked.back().review.at({"request", "options"});
  EXPECT_EQ(api::to_text(options), R"({"apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":7,"kind":"DeleteOptions"})");
  EXPECT_EQ(world.server.remove(kMaps).code, 409);  // the collection: one of it is kept
  EXPECT_EQ(world.server.merge(kMaps + "/m", R"({"data":{"a":"3"}})").code, 200);
  EXPECT_EQ(world.server.remove(kMaps + "/m").code, 200);
}

TEST(Webhooks, ADeletionHasNothingToChange) {
  World world;
  ASSERT_EQ(world.create("m").code, 201);
  world.mutating("a");
  world.script["a"] = adds("x");
  const Answer answer = world.server.remove(kMaps + "/m");
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(answer.string_at({"message"}),
            R"(Internal error occurred: admission webhook "a.hooks.dev" attempted to modify the object, which is not )"
            "supported for this operation");
}

TEST(Webhooks, WhatIsMutatedIsDefaultedAndValidated) {
  World world;
  world.mutating("a", rules(R"("CREATE")", R"("services")"));
  const std::string services = "/api/v1/namespaces/default/services";
  world.script["a"] = [](const auto& asked) {
    return patch(asked, R"([{"op":"add","path":"/spec/ports/-","value":{"name":"b","port":81}}])");
  };
  const std::string body = R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"a","port":80}]}})";
  const Answer made = world.server.post(services, body);
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ((*made.body.at({"spec", "ports"})->if_array())[1].string_at({"protocol"}), "TCP");
  world.script["a"] = [](const auto& asked) {
    return patch(asked, R"([{"op":"replace","path":"/spec/ports/0/port","value":70000}])");
  };
  std::string other = body;
  other.replace(other.find("\"s\""), 3, "\"t\"");
  EXPECT_EQ(world.server.post(services, other).code, 422);
  world.script["a"] = [](const auto& asked) {
    return patch(asked, R"([{"op":"replace","path":"/spec/ports","value":"none"}])");
  };
  EXPECT_EQ(world.server.post(services, other).code, 500);
}

TEST(Webhooks, APatchMakesNoOtherObject) {
  World world;
  world.mutating("a");
  const auto with = [&](std::string_view path, std::string_view value) {
    world.script["a"] = [path = std::string(path), value = std::string(value)](const auto& asked) {
      return patch(asked, fmt::format(R"([{{"op":"add","path":"{}","value":"{}"}}])", path, value));
    };
  };
  with("/metadata/name", "other");
  EXPECT_EQ(world.create("m").code, 400);
  with("/metadata/namespace", "kube-system");
  EXPECT_EQ(world.create("m").code, 400);
  with("/metadata/uid", "mine");
  const Answer made = world.create("m");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_NE(made.string_at({"metadata", "uid"}), "mine");
  EXPECT_EQ(world.server.merge(kMaps + "/m", R"({"data":{"b":"2"}})").code, 422);
  with("/metadata/resourceVersion", "1");
  EXPECT_EQ(world.server.merge(kMaps + "/m", R"({"data":{"b":"2"}})").code, 409);
  with("/metadata/name", "other");
  EXPECT_EQ(world.server.merge(kMaps + "/m", R"({"data":{"b":"2"}})").code, 400);
  EXPECT_EQ(world.server.get(kMaps + "/m").body.at({"data", "b"}), nullptr);
  EXPECT_EQ(world.server.get(kMaps + "/other").code, 404);
}

TEST(Webhooks, NamesAreGeneratedAfterwards) {
  World world;
  world.mutating("a");
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    EXPECT_EQ(asked.review.at({"request", "object", "metadata", "name"}), nullptr);
    EXPECT_EQ(asked.review.at({"request", "name"}), nullptr);
    return patch(asked, R"([{"op":"add","path":"/data","value":{"x":"y"}}])");
  };
  const Answer made = world.server.post(kMaps, R"({"metadata":{"generateName":"gen-"}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_TRUE(made.string_at({"metadata", "name"}).starts_with("gen-"));
  EXPECT_EQ(made.string_at({"metadata", "name"}).size(), 9U);
}

TEST(Webhooks, IfNeededIsAskedOnceMore) {
  World world;
  constexpr std::string_view kAgain = R"("reinvocationPolicy":"IfNeeded")";
  world.mutating("a-again", kAgain);
  world.mutating("b-never");
  world.mutating("c-changes");
  world.mutating("d-again", kAgain);
  world.script["c-changes"] = adds("c");
  ASSERT_EQ(world.create("m").code, 201);
  EXPECT_EQ(world.told, (Texts{"a-again", "b-never", "c-changes", "d-again", "a-again"}));
  // Nothing is changed after it: once is enough.
  world.told.clear();
  world.script.clear();
  world.script["a-again"] = adds("a");
  ASSERT_EQ(world.create("n").code, 201);
  EXPECT_EQ(world.told, (Texts{"a-again", "b-never", "c-changes", "d-again"}));
  // Each changes what the other sees: not without end.
  world.told.clear();
  int count = 0;
  const auto counts = [&count](const auto& asked) {
    return patch(asked, fmt::format(R"([{{"op":"add","path":"/data/n","value":"{}"}}])", ++count));
  };
  world.script = {{"a-again", counts}, {"d-again", counts}};
  ASSERT_EQ(world.create("o").code, 201);
  EXPECT_EQ(world.told, (Texts{"a-again", "b-never", "c-changes", "d-again", "a-again", "d-again"}));
}

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
  // And a patch that does not fit is not ignored either.
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
  EXPECT_TRUE(world.server.webhooks.open.empty());  // it was told that nobody waits
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
  EXPECT_EQ(world.told, (Texts{"a", "b"}));
  EXPECT_EQ(world.server.get(kMaps + "/m").code, 404);
}

TEST(Webhooks, TheTimeOfAnAnswerIsTheTimeOfTheWrite) {
  World world;
  world.validating("a");
  world.script["a"] = [](const auto&) { return std::nullopt; };
  const auto sink = world.server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"m"}})");
  world.server.advance(seconds(5));
  world.server.webhooks.answer_next(allowed(world.server.webhooks.asked.front()));
  world.server.settle();
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
  // Others are not held up by a webhook that takes its time.
  world.script["a"] = [](const auto& asked) { return allowed(asked); };
  ASSERT_EQ(world.server.merge(kMaps + "/m", R"({"data":{"c":"3"}})").code, 200);
  world.server.webhooks.answer_next(
      patch(world.server.webhooks.asked.front(), R"([{"op":"add","path":"/data/w","value":"1"}])"));
  world.server.settle();
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 200);
  EXPECT_EQ(world.told.size(), 3U);
  EXPECT_EQ(world.server.webhooks.asked.back().review.string_at({"request", "oldObject", "data", "c"}), "3");
  EXPECT_EQ(api::to_text(*world.server.get(kMaps + "/m").body.find("data")), R"({"a":"1","b":"2","c":"3"})");
}

TEST(Webhooks, DryRuns) {
  World world;
  world.mutating("a");
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    EXPECT_EQ(asked.review.at({"request", "dryRun"})->if_bool(), true);
    return patch(asked, R"([{"op":"add","path":"/data/x","value":"1"}])");
  };
  const Answer made = world.create("m", R"("a":"1")", "?dryRun=All");
  ASSERT_EQ(made.code, 201);
  EXPECT_EQ(made.string_at({"data", "x"}), "1");
  EXPECT_EQ(world.server.get(kMaps + "/m").code, 404);
}

TEST(Webhooks, NamespacesAndObjectsAreSelected) {
  World world;
  world.validating("a",
                   R"("namespaceSelector":{"matchLabels":{"hooks":"on"}},"objectSelector":{"matchLabels":{"h":"1"}})");
  world.script["a"] = [](const auto& asked) { return denied(asked, "no"); };
  EXPECT_EQ(world.server.post(kMaps, R"({"metadata":{"name":"m","labels":{"h":"1"}}})").code, 201);
  ASSERT_EQ(world.server.merge("/api/v1/namespaces/default", R"({"metadata":{"labels":{"hooks":"on"}}})").code, 200);
  EXPECT_EQ(world.server.post(kMaps, R"({"metadata":{"name":"n"}})").code, 201);
  EXPECT_EQ(world.server.post(kMaps, R"({"metadata":{"name":"o","labels":{"h":"1"}}})").code, 403);
  // Taking the label away does not get round it.
  EXPECT_EQ(world.server.merge(kMaps + "/m", R"({"metadata":{"labels":{"h":null}}})").code, 403);
}

TEST(Webhooks, ANamespaceIsSelectedByItsOwnLabels) {
  World world;
  world.validating("a", rules(R"("*")", R"("namespaces")") + R"(,"namespaceSelector":{"matchLabels":{"hooks":"on"}})");
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    EXPECT_EQ(asked.review.string_at({"request", "namespace"}), "ns");
    return denied(asked, "no");
  };
  EXPECT_EQ(world.server.post("/api/v1/namespaces", R"({"metadata":{"name":"ns","labels":{"hooks":"on"}}})").code, 403);
  EXPECT_EQ(world.server.post("/api/v1/namespaces", R"({"metadata":{"name":"ns"}})").code, 201);
  EXPECT_EQ(world.server.merge("/api/v1/namespaces/ns", R"({"metadata":{"labels":{"hooks":"on"}}})").code, 403);
}

TEST(Webhooks, WarningsAndAnnotations) {
  World world;
  world.validating("a");
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    return review(asked, *api::parse_json(R"({"allowed":false,"warnings":["mind \"this\"","and that"]})"));
  };
  const Answer answer = world.create("m");
  EXPECT_EQ(answer.code, 400);
  Texts warnings;
  for (const auto& [name, value] : answer.headers) {
    if (name == "Warning") warnings.push_back(value);
  }
  EXPECT_EQ(warnings, (Texts{R"(299 - "mind \"this\"")", R"(299 - "and that")"}));
}

TEST(Webhooks, EquivalentEventsAreShownAsTheRuleNamesThem) {
  World world;
  world.mutating(
      "a",
      R"("rules":[{"operations":["CREATE"],"apiGroups":["events.k8s.io"],"apiVersions":["v1"],"resources":["events"]}])");
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    EXPECT_EQ(asked.review.string_at({"request", "kind", "group"}), "events.k8s.io");
    EXPECT_EQ(asked.review.string_at({"request", "requestKind", "group"}), "");
    EXPECT_EQ(asked.review.string_at({"request", "object", "apiVersion"}), "events.k8s.io/v1");
    EXPECT_EQ(asked.review.string_at({"request", "object", "note"}), "hello");
    return patch(asked, R"([{"op":"replace","path":"/note","value":"changed"}])");
  };
  const Answer made = world.server.post(
      "/api/v1/namespaces/default/events",
      R"({"metadata":{"name":"e"},"message":"hello","involvedObject":{"kind":"Pod","namespace":"default","name":"p"}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"message"}), "changed");
}

TEST(Webhooks, ScalesAreScales) {
  World world;
  const std::string sets = "/apis/apps/v1/namespaces/default/replicasets";
  ASSERT_EQ(
      world.server
          .post(sets,
                R"({"metadata":{"name":"w"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},)"
                R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})")
          .code,
      201);
  world.mutating("a", rules(R"("UPDATE")", R"("replicasets/scale")", R"("apps")"));
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    EXPECT_EQ(asked.review.string_at({"request", "kind", "kind"}), "Scale");
    EXPECT_EQ(asked.review.at({"request", "oldObject", "spec", "replicas"})->if_int64(), 1);
    return patch(asked, R"([{"op":"replace","path":"/spec/replicas","value":3}])");
  };
  const Answer scaled = world.server.merge(sets + "/w/scale", R"({"spec":{"replicas":9}})");
  ASSERT_EQ(scaled.code, 200) << scaled.text;
  EXPECT_EQ(scaled.body.at({"spec", "replicas"})->if_int64(), 3);
  EXPECT_EQ(world.server.merge(sets + "/w", R"({"spec":{"replicas":5}})").code, 200);
  EXPECT_EQ(world.told.size(), 1U);
}

TEST(Webhooks, BindingsTokensAndConnections) {
  World world;
  world.server.post("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"default"}})");
  const std::string pods = "/api/v1/namespaces/default/pods";
  ASSERT_EQ(
      world.server.post(pods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})").code,
      201);
  world.validating("a",
                   rules(R"("CREATE","CONNECT")",
                         R"("pods/binding","pods/eviction","pods/exec","pods/portforward","serviceaccounts/token")"));
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    return denied(asked, fmt::format("{} {} {}", asked.review.string_at({"request", "operation"}),
                                     asked.review.string_at({"request", "kind", "kind"}),
                                     api::to_text(*asked.review.at({"request", "object"})).size() > 10));
  };
  const auto said = [](const Answer& answer) { return answer.string_at({"message"}).substr(52); };
  EXPECT_EQ(said(world.server.post(pods + "/p/binding", R"({"target":{"kind":"Node","name":"n1"}})")),
            "CREATE Binding true");
  EXPECT_EQ(said(world.server.post(pods + "/p/eviction", R"({"metadata":{"name":"p"}})")), "CREATE Eviction true");
  EXPECT_EQ(said(world.server.post("/api/v1/namespaces/default/serviceaccounts/default/token", "{}")),
            "CREATE TokenRequest true");
  EXPECT_EQ(said(world.server.get(pods + "/p/exec?command=ls&command=-l&stdout=true")), "CONNECT PodExecOptions true");
  EXPECT_EQ(api::to_text(*world.server.webhooks.asked.back().review.at({"request", "object"})),
            R"({"apiVersion":"v1","command":["ls","-l"],"kind":"PodExecOptions","stdout":true})");
  EXPECT_EQ(said(world.server.get(pods + "/p/portforward?ports=80")), "CONNECT PodPortForwardOptions true");
  EXPECT_EQ(world.server.get(pods + "/p").string_at({"spec", "nodeName"}), "");
}

TEST(Webhooks, ABindingCanBeChanged) {
  World world;
  world.server.post("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"default"}})");
  const std::string pods = "/api/v1/namespaces/default/pods";
  ASSERT_EQ(
      world.server.post(pods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})").code,
      201);
  world.mutating("a", rules(R"("CREATE")", R"("pods/binding")"));
  world.script["a"] = [](const auto& asked) {
    return patch(asked, R"([{"op":"replace","path":"/target/name","value":"n2"}])");
  };
  ASSERT_EQ(world.server.post(pods + "/p/binding", R"({"target":{"kind":"Node","name":"n1"}})").code, 201);
  EXPECT_EQ(world.server.get(pods + "/p").string_at({"spec", "nodeName"}), "n2");
}

TEST(Webhooks, TheirOwnConfigurationsAreNotShown) {
  World world;
  world.validating("a", rules(R"("*")", R"("*/*")", R"("*")"));
  world.script["a"] = [](const auto& asked) { return denied(asked, "nothing at all"); };
  EXPECT_EQ(world.create("m").code, 403);
  world.mutating("b");
  EXPECT_EQ(world.server.remove(kGroup + "/validatingwebhookconfigurations/a").code, 200);
  EXPECT_EQ(world.create("m").code, 201);
}

TEST(Webhooks, AServiceIsReachedThroughItsPods) {
  World world;
  world.validating("a",
                   R"("clientConfig":{"service":{"namespace":"default","name":"hook","path":"/v"},"caBundle":"Y2E="})");
  EXPECT_NE(world.create("m")
                .string_at({"message"})
                .find(R"(Post "https://hook.default.svc:443/v?timeout=10s": service "hook" not found)"),
            std::string::npos);
  const std::string space = "/api/v1/namespaces/default";
  ASSERT_EQ(world.server
                .post(space + "/services",
                      R"({"metadata":{"name":"hook"},"spec":{"clusterIP":"10.96.0.77","selector":{"app":"hook"},)"
                      R"("ports":[{"port":443,"targetPort":"tls"}]}})")
                .code,
            201);
  EXPECT_EQ(world.create("m").code, 201);
  EXPECT_EQ(world.server.webhooks.asked.back().call.origin, "https://10.96.0.77:443");
  world.server.post(space + "/serviceaccounts", R"({"metadata":{"name":"default"}})");
  ASSERT_EQ(world.server
                .post(space + "/pods",
                      R"({"metadata":{"name":"h","labels":{"app":"hook"}},"spec":{"containers":[{"name":"c",)"
                      R"("image":"i","ports":[{"name":"tls","containerPort":8443}]}]}})")
                .code,
            201);
  ASSERT_EQ(world.server
                .merge(space + "/pods/h/status",
                       R"({"status":{"podIP":"10.1.2.3","conditions":[{"type":"Ready","status":"True"}]}})")
                .code,
            200);
  EXPECT_EQ(world.create("n").code, 201);
  const WebhookCall& call = world.server.webhooks.asked.back().call;
  EXPECT_EQ(call.origin, "https://10.1.2.3:8443");
  EXPECT_EQ(call.target, "/v?timeout=10s");
  EXPECT_EQ(call.tls_name, "hook.default.svc");
  EXPECT_EQ(call.authority_pem, "ca");
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
  EXPECT_NE(sinks.back()->response->body.find("too many questions"), std::string::npos);
}

TEST(Webhooks, AreKnownAfterARestart) {
  World world;
  world.validating("a");
  world.script["a"] = [](const auto& asked) { return denied(asked, "no"); };
  world.server.restart();
  EXPECT_EQ(world.create("m").code, 403);
}

TEST(Webhooks, APlugInThatIsOffAsksNobody) {
  for (const bool mutating : {false, true}) {
    AdmissionRules off;
    off.mutating_webhooks = mutating;
    off.validating_webhooks = !mutating;
    World world(off);
    world.mutating("a");
    world.validating("b");
    EXPECT_EQ(world.create("m").code, 201);
    EXPECT_EQ(world.told, Texts{mutating ? "a" : "b"});
  }
}

TEST(Webhooks, WhatIsAskedOfWhomFollowsTheConfigurations) {
  World world;
  const auto ask_about = [&](std::string_view resource) {
    const Answer changed = world.server.json_patch(
        kGroup + "/mutatingwebhookconfigurations/w",
        fmt::format(R"([{{"op":"replace","path":"/webhooks/0/rules/0/resources","value":["{}"]}}])", resource));
    EXPECT_EQ(changed.code, 200) << changed.text;
  };
  world.mutating("w", rules(R"("*")", R"("pods")"));
  EXPECT_EQ(world.create("a").code, 201);
  EXPECT_EQ(world.told.size(), 0U);
  ask_about("configmaps");
  EXPECT_EQ(world.create("b").code, 201);
  EXPECT_EQ(world.told.size(), 1U);
  ask_about("pods");
  EXPECT_EQ(world.create("c").code, 201);
  EXPECT_EQ(world.told.size(), 1U);
}

TEST(Webhooks, PutsThatCreateAndAppliesAreAsked) {
  World world;
  world.mutating("a");
  world.script["a"] = adds("x");
  const Answer applied =
      world.server.call(api::Method::kPatch, kMaps + "/m?fieldManager=me",
                        R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"}})",
                        {{"content-type", "application/apply-patch+yaml"}});
  ASSERT_EQ(applied.code, 201) << applied.text;
  EXPECT_EQ(applied.string_at({"data", "x"}), "set");
  EXPECT_EQ(world.server.webhooks.asked.back().review.string_at({"request", "operation"}), "CREATE");
  EXPECT_EQ(api::to_text(*applied.body.at({"metadata", "managedFields"})).find("f:x"), std::string::npos);
}

}  // namespace

}  // namespace spillway::apiserver
