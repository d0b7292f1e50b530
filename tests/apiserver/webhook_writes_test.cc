// The kinds of writes that webhooks are shown: changes, deletions, applies, dry runs, views and subresources.
#include "apiserver/webhooks_fixture.h"

namespace spillway::apiserver::webhook_tests {
namespace {

const std::string kPod = "/api/v1/namespaces/default/pods/p";

void make_pod(World& world) {
  const std::string space = "/api/v1/namespaces/default";
  world.server.post(space + "/serviceaccounts", R"({"metadata":{"name":"default"}})");
  const Answer made = world.server.post(
      space + "/pods", R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  ASSERT_EQ(made.code, 201) << made.text;
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
  EXPECT_EQ(world.server.remove(kMaps).code, 409);  // the collection is deleted except for one object
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
  EXPECT_EQ(world.called.size(), 1U);
}

TEST(Webhooks, BindingsTokensAndConnections) {
  World world;
  make_pod(world);
  world.validating("a",
                   rules(R"("CREATE","CONNECT")",
                         R"("pods/binding","pods/eviction","pods/exec","pods/portforward","serviceaccounts/token")"));
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    return denied(asked, fmt::format("{} {} {}", asked.review.string_at({"request", "operation"}),
                                     asked.review.string_at({"request", "kind", "kind"}),
                                     api::to_text(*asked.review.at({"request", "object"})).size() > 10));
  };
  const auto said = [](const Answer& answer) { return answer.string_at({"message"}).substr(52); };
  EXPECT_EQ(said(world.server.post(kPod + "/binding", R"({"target":{"kind":"Node","name":"n1"}})")),
            "CREATE Binding true");
  EXPECT_EQ(said(world.server.post(kPod + "/eviction", R"({"metadata":{"name":"p"}})")), "CREATE Eviction true");
  EXPECT_EQ(said(world.server.post("/api/v1/namespaces/default/serviceaccounts/default/token", "{}")),
            "CREATE TokenRequest true");
  EXPECT_EQ(said(world.server.get(kPod + "/exec?command=ls&command=-l&stdout=true")), "CONNECT PodExecOptions true");
  EXPECT_EQ(api::to_text(*world.server.webhooks.asked.back().review.at({"request", "object"})),
            R"({"apiVersion":"v1","command":["ls","-l"],"kind":"PodExecOptions","stdout":true})");
  EXPECT_EQ(said(world.server.get(kPod + "/portforward?ports=80")), "CONNECT PodPortForwardOptions true");
  EXPECT_EQ(world.server.get(kPod).string_at({"spec", "nodeName"}), "");
}

/// The door to the same that names the pod in the body.
TEST(Webhooks, BindingsAreAskedAboutWhereTheBodyNamesThePod) {
  World world;
  make_pod(world);
  world.validating("a", rules(R"("CREATE")", R"("bindings")"));
  world.script["a"] = [](const TestWebhooks::Asked& asked) {
    return denied(asked, fmt::format("{} {}", asked.review.string_at({"request", "kind", "kind"}),
                                     asked.review.string_at({"request", "name"})));
  };
  const Answer answer = world.server.post("/api/v1/namespaces/default/bindings",
                                          R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})");
  EXPECT_EQ(answer.string_at({"message"}).substr(52), "Binding p");
  EXPECT_EQ(world.server.get(kPod).string_at({"spec", "nodeName"}), "");
  world.mutating("b", rules(R"("CREATE")", R"("bindings")"));
  world.script["a"] = [](const TestWebhooks::Asked& asked) { return allowed(asked); };
  world.script["b"] = [](const auto& asked) {
    return patch(asked, R"([{"op":"replace","path":"/target/name","value":"n2"}])");
  };
  ASSERT_EQ(world.server
                .post("/api/v1/namespaces/default/bindings",
                      R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})")
                .code,
            201);
  EXPECT_EQ(world.server.get(kPod).string_at({"spec", "nodeName"}), "n2");
}

TEST(Webhooks, ABindingCanBeChanged) {
  World world;
  make_pod(world);
  world.mutating("a", rules(R"("CREATE")", R"("pods/binding")"));
  world.script["a"] = [](const auto& asked) {
    return patch(asked, R"([{"op":"replace","path":"/target/name","value":"n2"}])");
  };
  ASSERT_EQ(world.server.post(kPod + "/binding", R"({"target":{"kind":"Node","name":"n1"}})").code, 201);
  EXPECT_EQ(world.server.get(kPod).string_at({"spec", "nodeName"}), "n2");
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
}  // namespace spillway::apiserver::webhook_tests
