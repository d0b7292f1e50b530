// Requests past admission webhooks, which a test plays: who is asked, in which order, and what comes of the answers.
#include "apiserver/webhooks_fixture.h"

namespace spillway::apiserver::webhook_tests {
namespace {

TEST(Webhooks, NoWebhookIsCalledWithoutARule) {
  World world;
  world.mutating("pods", rules(R"("*")", R"("pods")"));
  EXPECT_EQ(world.create("m").code, 201);
  EXPECT_TRUE(world.called.empty());
}

TEST(Webhooks, AnObjectIsChangedThenValidated) {
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
  EXPECT_EQ(world.called, (Texts{"a-first", "b-second", "a-judge"}));
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
      R"("object":{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{)"
      R"("managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{}}},)"
      R"("manager":"me","operation":"Update","time":"2026-01-01T00:00:00Z"}],)"
      R"("name":"m","namespace":"default"}},"oldObject":null,"operation":"CREATE","options":{"apiVersion":)"
      R"("meta.k8s.io/v1","dryRun":["All"],"fieldManager":"me","kind":"CreateOptions"},"requestKind":{"group":"",)"
      R"("kind":"ConfigMap","version":"v1"},"requestResource":{"group":"","resource":"configmaps","version":"v1"},)"
      R"("resource":{"group":"","resource":"configmaps","version":"v1"},"userInfo":{"groups":["system:masters",)"
      R"("system:authenticated"],"username":"admin"}})");
}

TEST(Webhooks, ARefusalIsReported) {
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
  EXPECT_EQ(world.called, (Texts{"a-again", "b-never", "c-changes", "d-again", "a-again"}));
  // The webhook is not called again if no later one changes the object.
  world.called.clear();
  world.script.clear();
  world.script["a-again"] = adds("a");
  ASSERT_EQ(world.create("n").code, 201);
  EXPECT_EQ(world.called, (Texts{"a-again", "b-never", "c-changes", "d-again"}));
  // Two webhooks that undo each other's changes are not called without end.
  world.called.clear();
  int count = 0;
  const auto counts = [&count](const auto& asked) {
    return patch(asked, fmt::format(R"([{{"op":"add","path":"/data/n","value":"{}"}}])", ++count));
  };
  world.script = {{"a-again", counts}, {"d-again", counts}};
  ASSERT_EQ(world.create("o").code, 201);
  EXPECT_EQ(world.called, (Texts{"a-again", "b-never", "c-changes", "d-again", "a-again", "d-again"}));
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
  // Removing the label does not avoid the webhook.
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

TEST(Webhooks, AreKnownAfterARestart) {
  World world;
  world.validating("a");
  world.script["a"] = [](const auto& asked) { return denied(asked, "no"); };
  world.server.restart();
  EXPECT_EQ(world.create("m").code, 403);
}

TEST(Webhooks, ADisabledPlugInCallsNoWebhook) {
  for (const bool mutating : {false, true}) {
    AdmissionRules off;
    off.mutating_webhooks = mutating;
    off.validating_webhooks = !mutating;
    World world(off);
    world.mutating("a");
    world.validating("b");
    EXPECT_EQ(world.create("m").code, 201);
    EXPECT_EQ(world.called, Texts{mutating ? "a" : "b"});
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
  EXPECT_EQ(world.called.size(), 0U);
  ask_about("configmaps");
  EXPECT_EQ(world.create("b").code, 201);
  EXPECT_EQ(world.called.size(), 1U);
  ask_about("pods");
  EXPECT_EQ(world.create("c").code, 201);
  EXPECT_EQ(world.called.size(), 1U);
}

}  // namespace
}  // namespace spillway::apiserver::webhook_tests
