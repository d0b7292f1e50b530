// Answers of the whole engine: which error wins, subresources, patches, apply, views, logs, tokens, discovery.
#include "api/schema/protobuf.h"
#include "apiserver/server_fixture.h"
#include "base/sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";
constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";

std::string deployment(const std::string& name) {
  return R"({"metadata":{"name":")" + name +
         R"("},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
}

TEST(SlowPages, AnAnswerAfterTheServersEndGoesNowhere) {
  std::deque<std::move_only_function<void()>> tasks;
  store::MemoryStore store([&](std::move_only_function<void()> task) { tasks.push_back(std::move(task)); });
  telemetry::Registry metrics;
  std::function<void(api::Response)> later;
  ApiServer::Options options;
  options.slow_pages = [&](std::string_view, std::function<void(api::Response)> answer) {
    later = std::move(answer);
    return true;
  };
  auto server = std::make_unique<ApiServer>(store, metrics, telemetry::Log(), std::move(options));
  const Now now{Instant(seconds(1000)), WallTime(seconds(1'700'000'000))};
  const auto run_until_idle = [&] {
    for (;;) {
      for (; !tasks.empty(); tasks.pop_front()) std::exchange(tasks.front(), nullptr)();
      const std::optional<Instant> due = server->next_wakeup();
      if (!due || *due > now.mono) return;
      server->on_wakeup(now);
    }
  };
  server->start(now, [](const Outcome& outcome) { EXPECT_TRUE(outcome); });
  run_until_idle();
  const auto sink = std::make_shared<TestSink>();
  server->handle({api::Method::kGet, "/debug/slow", {}, {}}, {"admin", {}, {"system:masters"}}, sink, now);
  run_until_idle();
  ASSERT_TRUE(later);
  server.reset();
  later({.status = 200, .headers = {}, .body = "late"});
  EXPECT_TRUE(!sink->answered() || sink->response->body != "late");
}

TEST(Answers, ABodyThatIsNoJsonIsShown) {
  TestServer server;
  const std::string message = server.post("/api/v1/namespaces", "xyz").string_at({"message"});
  EXPECT_TRUE(
      message.starts_with("the object provided is unrecognized (must be of type Namespace): couldn't get "
                          "version/kind; json parse error: "))
      << message;
  const auto ends = [](const Answer& answer, std::string_view end) {
    EXPECT_EQ(answer.code, 400);
    EXPECT_TRUE(answer.string_at({"message"}).ends_with(end)) << answer.text;
  };
  ends(server.post("/api/v1/namespaces", "xyz"), " (78797a)");
  ends(server.post("/api/v1/namespaces", ""), " (<empty>)");
  ends(server.post("/api/v1/namespaces", R"({"metadata":{"name":"abcdefghijklmnop)"),
       R"( ({"metadata":{"name":"abcdefghi ...))");
  ends(server.post("/api/v1/namespaces", std::string(31, '\xff')), std::string(60, 'f') + " ...)");
  const Answer empty = server.call(api::Method::kPost, "/api/v1/namespaces", std::string("k8s\0", 4),
                                   {{"content-type", "application/vnd.kubernetes.protobuf"}});
  ends(empty, "(must be of type Namespace): empty body (6b387300)");
}

/// Ages are nanoseconds, and those span 292 years.
TEST(Answers, ATimeOfAnyYearHasAnAge) {
  TestServer server;
  const auto event = [&](const std::string& name, const std::string& year) {
    const std::string time = year + "-01-01T00:00:01Z";
    EXPECT_EQ(server
                  .post("/api/v1/namespaces/default/events",
                        R"({"metadata":{"name":")" + name + R"("},"involvedObject":{"namespace":"default"},)" +
                            R"("firstTimestamp":")" + time + R"(","lastTimestamp":")" + time + "\"}")
                  .code,
              201);
  };
  event("a", "0001");
  event("b", "9999");
  const Answer table = server.get("/api/v1/namespaces/default/events", kTable);
  const auto seen = [&](std::size_t row) {
    return (*table.body.find("rows")->if_array())[row].find("cells")->if_array()->front().string_at({});
  };
  EXPECT_EQ(seen(0), "292y");
  EXPECT_EQ(seen(1), "<invalid>");
}

/// Kubernetes' own tests of kubectl check for this text.
TEST(Answers, DiscoveryIsInTheOrderOfKubernetes) {
  TestServer server;
  const std::string core = server.get("/api/v1").text;
  EXPECT_TRUE(core.starts_with(R"({"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"bindings",)"
                               R"("singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]},)"
                               R"({"name":"componentstatuses","singularName":"componentstatus","namespaced":false,)"
                               R"("kind":"ComponentStatus","verbs":["get","list"],"shortNames":["cs"]},)"
                               R"({"name":"configmaps",)"
                               R"("singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create",)"
                               R"("delete","deletecollection","get","list","patch","update","watch"],)"
                               R"("shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="},)"))
      << core.substr(0, 700);
  const std::string apps = server.get("/apis/apps/v1").text;
  EXPECT_TRUE(apps.starts_with(R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1",)"));
  EXPECT_NE(apps.find(R"({"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling",)"
                      R"("version":"v1","kind":"Scale","verbs":["get","patch","update"]})"),
            std::string::npos);
  EXPECT_TRUE(
      server.get("/apis/apps")
          .text.starts_with(
              R"({"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],)"));
  EXPECT_TRUE(server.get("/apis").text.starts_with(R"({"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":)"));
  const std::string all =
      server.get("/apis", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io").text;
  EXPECT_NE(all.find(R"({"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":)"
                     R"([{"resource":"controllerrevisions","responseKind":{"group":"apps","version":"v1",)"
                     R"("kind":"ControllerRevision"},"scope":"Namespaced",)"),
            std::string::npos)
      << all.substr(0, 600);
}

std::string hex_of(const Sha256& digest) {
  std::string text;
  for (const auto octet : digest) text += fmt::format("{:02x}", octet);
  return text;
}

TEST(Sha256Digest, IsThatOfTheStandard) {
  EXPECT_EQ(hex_of(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_of(sha256(std::string(64, 'a'))), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

std::string storage_hash(TestServer& server, const std::string& list, std::string_view name) {
  const Answer answer = server.get(list);
  for (const api::Json& row : *answer.body.find("resources")->if_array()) {
    if (row.string_at({"name"}) == name) return std::string(row.string_at({"storageVersionHash"}));
  }
  return "no such resource";
}

TEST(Answers, DiscoveryHasTheStorageVersionHash) {
  TestServer server;
  EXPECT_EQ(storage_hash(server, "/api/v1", "pods"), "xPOwRZ+Yhw8=");
  EXPECT_EQ(storage_hash(server, "/apis/apps/v1", "deployments"), "8aSe+NMegvE=");
  EXPECT_EQ(storage_hash(server, "/api/v1", "pods/status"), "");
  EXPECT_EQ(storage_hash(server, "/apis/metrics.k8s.io/v1beta1", "pods"), "") << "nothing is stored";
  EXPECT_EQ(storage_hash(server, "/apis/autoscaling/v1", "horizontalpodautoscalers"),
            storage_hash(server, "/apis/autoscaling/v2", "horizontalpodautoscalers"))
      << "stored in one form";
  EXPECT_EQ(storage_hash(server, "/apis/events.k8s.io/v1", "events"), storage_hash(server, "/api/v1", "events"));
}

TEST(Answers, AreIndentedForWhoReadsThem) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const auto asked_by = [&](const std::string& agent, const std::string& query = {}) {
    return server.call(api::Method::kGet, std::string(kMaps) + "/a" + query, {}, {{"user-agent", agent}}).text;
  };
  for (const std::string agent : {"curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (X11; Linux x86_64)"}) {
    EXPECT_TRUE(asked_by(agent).starts_with("{\n  \"apiVersion\"")) << agent;
    EXPECT_TRUE(asked_by(agent, "?pretty=false").starts_with(R"({"apiVersion")")) << agent;
  }
  EXPECT_TRUE(asked_by("kubectl/v1.32.4 (linux/amd64)").starts_with(R"({"apiVersion")"));
  EXPECT_TRUE(asked_by("kubectl/v1.32.4 (linux/amd64)", "?pretty=1").starts_with("{\n"));
  const Answer absent = server.call(api::Method::kGet, std::string(kMaps) + "/none", {}, {{"user-agent", "curl/8"}});
  EXPECT_EQ(absent.code, 404);
  EXPECT_TRUE(absent.text.starts_with("{\n"));
}

TEST(Answers, OfAStrategicPatchOfTheWrongTypeAreKubernetes) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const auto refused = [&](const std::string& patch) {
    const Answer answer = server.strategic(std::string(kMaps) + "/a", patch);
    EXPECT_EQ(answer.code, 422) << answer.text;
    const std::string message = answer.string_at({"message"});
    return message.substr(std::min(message.find("}: ") + 3, message.size()));
  };
  EXPECT_EQ(refused(R"({"metadata":{"labels":"invalid"}})"), "metadata.labels: cannot restore map from string");
  EXPECT_EQ(refused(R"({"metadata":{"finalizers":true}})"), "metadata.finalizers: cannot restore slice from bool");
  EXPECT_EQ(server.merge(std::string(kMaps) + "/a", R"({"metadata":{"labels":"invalid"}})").code, 422);
}

/// Members that admission adds to a pod have no manager: a later apply without them does not remove them.
TEST(Answers, WhoMakesAPodOwnsWhatHeSaidAndNoMore) {
  TestServer server;
  const std::string pods = "/api/v1/namespaces/default/pods";
  const std::string spec = R"("spec":{"containers":[{"name":"c","image":"i"}]})";
  const Answer made = server.call(api::Method::kPost, pods + "?fieldManager=kubectl-client-side-apply",
                                  R"({"metadata":{"name":"p"},)" + spec + "}");
  ASSERT_EQ(made.code, 201);
  ASSERT_NE(made.body.at({"spec", "tolerations"}), nullptr);
  const api::Json& owned = *(*made.body.at({"metadata", "managedFields"})->if_array())[0].find("fieldsV1");
  EXPECT_NE(owned.at({"f:spec", "f:containers"}), nullptr);
  EXPECT_NE(owned.at({"f:spec", "f:restartPolicy"}), nullptr) << "defaults are the creator's";
  for (const std::string_view member : {"f:tolerations", "f:priority", "f:preemptionPolicy", "f:serviceAccount"}) {
    EXPECT_EQ(owned.at({"f:spec", member}), nullptr) << member;
  }
  // kubectl hands the fields of its client-side apply over to its server-side apply.
  api::Json handed = made.body;
  api::Json& entry = handed["metadata"]["managedFields"].if_array()->front();
  entry["manager"] = "kubectl";
  entry["operation"] = "Apply";
  ASSERT_EQ(server.put(pods + "/p", api::to_text(handed)).code, 200);
  const Answer applied = server.call(api::Method::kPatch, pods + "/p?fieldManager=kubectl",
                                     R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},)" + spec + "}",
                                     {{"content-type", "application/apply-patch+yaml"}});
  EXPECT_EQ(applied.code, 200) << applied.text;
  EXPECT_NE(applied.body.at({"spec", "tolerations"}), nullptr);
}

TEST(Answers, VersionZeroIsAnyVersion) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const std::string a = std::string(kMaps) + "/a";
  const Answer put = server.put(a, R"({"metadata":{"name":"a","resourceVersion":"0"},"data":{"k":"1"}})");
  EXPECT_EQ(put.code, 200) << put.text;
  EXPECT_EQ(put.string_at({"data", "k"}), "1");
  EXPECT_EQ(server.merge(a, R"({"metadata":{"resourceVersion":"0"},"data":{"k":"2"}})").code, 200);
  EXPECT_EQ(server.put(a, R"({"metadata":{"name":"a","resourceVersion":"1"}})").code, 409);
  EXPECT_EQ(server.put(a, R"({"metadata":{"name":"a","resourceVersion":"00"}})").code, 409);
}

TEST(Answers, WhichErrorWins) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const std::string a = std::string(kMaps) + "/a";
  const std::string none = std::string(kMaps) + "/none";
  EXPECT_EQ(server.post(kMaps, R"({"metadata":{"name":"a","labels":{"x y":"z"}}})").code, 422);
  EXPECT_EQ(server.put(a, R"({"metadata":{"name":"a","resourceVersion":"1","labels":{"x y":"z"}}})").code, 409);
  EXPECT_EQ(server.put(a, R"({"metadata":{"name":"other","resourceVersion":"1"}})").code, 400);
  EXPECT_EQ(server.post("/api/v1/namespaces/none/configmaps", R"({"metadata":{"name":"A_B"}})").code, 404);
  EXPECT_EQ(
      server.post("/api/v1/namespaces/none/configmaps?fieldValidation=Strict", R"({"metadata":{"name":"a"},"bogus":1})")
          .code,
      400);
  EXPECT_EQ(server.remove(none + "?propagationPolicy=Sideways").code, 422);
  EXPECT_EQ(server.remove(none, R"({"preconditions":{"uid":"x"}})").code, 404);
  EXPECT_EQ(server.put(none, R"({"metadata":{"name":"none","labels":{"x y":"z"}}})").code, 404);
  EXPECT_EQ(server.merge(none, "{bad").code, 404);
  EXPECT_EQ(server.merge(a, "{bad").code, 400);
  EXPECT_EQ(server.call(api::Method::kPatch, none, "{}", {{"content-type", "text/plain"}}).code, 415);
  EXPECT_EQ(server.get(a, "text/html").code, 406);
  EXPECT_EQ(server.post(kMaps, std::string(3 * 1024 * 1024 + 1, ' ')).code, 413);
  EXPECT_EQ(server.get("/api/v1/namespaces//configmaps").code, 404);
  EXPECT_EQ(server.get("/nowhere").text, "404 page not found\n");
}

TEST(Answers, StatusAndSpecAreChangedThroughTheirOwnEndpoints) {
  TestServer server;
  Answer made = server.post(kDeployments, deployment("d"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.body.at({"metadata", "generation"})->if_int64(), 1);
  const std::string path = std::string(kDeployments) + "/d";
  const Answer status =
      server.merge(path + "/status",
                   R"({"status":{"collisionCount":3},"spec":{"minReadySeconds":9},"metadata":{"labels":{"x":"z"}}})");
  EXPECT_EQ(status.body.at({"status", "collisionCount"})->if_int64(), 3);
  EXPECT_EQ(status.body.at({"spec", "minReadySeconds"}), nullptr);
  EXPECT_EQ(status.body.at({"metadata", "generation"})->if_int64(), 1);
  const Answer spec = server.merge(path, R"({"status":{"collisionCount":5},"spec":{"minReadySeconds":9}})");
  EXPECT_EQ(spec.body.at({"status", "collisionCount"})->if_int64(), 3);
  EXPECT_EQ(spec.body.at({"metadata", "generation"})->if_int64(), 2);
}

TEST(Answers, ScaleIsAViewOfReplicas) {
  TestServer server;
  server.post(kDeployments, deployment("d"));
  const std::string path = std::string(kDeployments) + "/d/scale";
  Answer scale = server.get(path);
  EXPECT_EQ(scale.string_at({"kind"}), "Scale");
  EXPECT_EQ(scale.string_at({"status", "selector"}), "app=x");
  scale.body["spec"]["replicas"] = 5;
  EXPECT_EQ(server.put(path, api::to_text(scale.body)).code, 200);
  EXPECT_EQ(server.get(std::string(kDeployments) + "/d").body.at({"spec", "replicas"})->if_int64(), 5);
  EXPECT_EQ(server.put(path, api::to_text(scale.body)).code, 409) << "the version is a precondition";
  EXPECT_EQ(server.merge(path, R"({"spec":{"replicas":1}})").body.at({"spec", "replicas"})->if_int64(), 1);
  EXPECT_EQ(server.merge(path, R"({"spec":{"replicas":-1}})").code, 422);
}

/// The worked exchange 24.3 of the contract.
TEST(Answers, StrategicPatchesPutNewElementsInFront) {
  TestServer server;
  server.post(kDeployments, deployment("d"));
  const std::string path = std::string(kDeployments) + "/d";
  const auto patch_env = [&](const std::string& env) {
    const Answer answer =
        server.strategic(path, R"({"spec":{"template":{"spec":{"containers":[{"name":"c","env":)" + env + "}]}}}}");
    EXPECT_EQ(answer.code, 200) << answer.text;
    const api::Json* containers = answer.body.at({"spec", "template", "spec", "containers"});
    std::string names;
    for (const api::Json& one : *containers->if_array()->front().find("env")->if_array()) {
      names += std::string(one.string_at({"name"})) + "=" + std::string(one.string_at({"value"})) + " ";
    }
    return names;
  };
  EXPECT_EQ(patch_env(R"([{"name":"X","value":"1"},{"name":"Y","value":"2"}])"), "X=1 Y=2 ");
  EXPECT_EQ(patch_env(R"([{"name":"X","value":"9"},{"name":"Z","value":"3"}])"), "X=9 Z=3 Y=2 ");
  EXPECT_EQ(patch_env(R"([{"name":"X","$patch":"delete"}])"), "Z=3 Y=2 ");
}

/// The worked exchange 24.1 of the contract.
TEST(Answers, AHeartbeatMovesTwoTimes) {
  TestServer server;
  server.post(
      "/api/v1/nodes",
      R"({"metadata":{"name":"n1"},"status":{"conditions":[{"type":"MemoryPressure","status":"False","reason":"r"},{"type":"Ready","status":"True","message":"m"}]}})");
  const Answer answer = server.strategic(
      "/api/v1/nodes/n1/status",
      R"({"status":{"$setElementOrder/conditions":[{"type":"MemoryPressure"},{"type":"Ready"}],"conditions":[{"lastHeartbeatTime":"2026-01-01T00:00:10Z","type":"MemoryPressure"},{"lastHeartbeatTime":"2026-01-01T00:00:10Z","type":"Ready"}]}})");
  const api::Json::Array& conditions = *answer.body.at({"status", "conditions"})->if_array();
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(conditions[0].string_at({"reason"}), "r");
  EXPECT_EQ(conditions[1].string_at({"message"}), "m");
  for (const api::Json& condition : conditions) {
    EXPECT_EQ(condition.string_at({"lastHeartbeatTime"}), "2026-01-01T00:00:10Z");
  }
}

TEST(Answers, ApplyOwnsConflictsAndForces) {
  TestServer server;
  const auto apply = [&](const std::string& query, const std::string& data) {
    return server.call(api::Method::kPatch, std::string(kMaps) + "/a?" + query,
                       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":)" + data + "}",
                       {{"content-type", "application/apply-patch+yaml"}});
  };
  const Answer made = apply("fieldManager=m1", R"({"a":"1","b":"2"})");
  EXPECT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(apply("fieldManager=m1", R"({"a":"1","b":"2"})").string_at({"metadata", "resourceVersion"}),
            made.string_at({"metadata", "resourceVersion"}));
  const Answer conflict = apply("fieldManager=m2", R"({"a":"9"})");
  EXPECT_EQ(conflict.code, 409);
  EXPECT_NE(conflict.text.find(R"("field":".data.a")"), std::string::npos) << conflict.text;
  EXPECT_EQ(apply("fieldManager=m2&force=true", R"({"a":"9"})").code, 200);
  const Answer last = apply("fieldManager=m1", "{}");
  EXPECT_EQ(api::to_text(*last.body.find("data")), R"({"a":"9"})");
  EXPECT_EQ(apply("", "{}").code, 422);
}

TEST(Answers, EventsHaveTwoFaces) {
  TestServer server;
  const std::string newer = "/apis/events.k8s.io/v1/namespaces/default/events";
  const Answer made = server.post(
      newer,
      R"({"metadata":{"name":"e"},"eventTime":"2026-01-01T00:00:00.000000Z","action":"a","reason":"R","reportingController":"x.io/y","reportingInstance":"i","type":"Normal","note":"nn","regarding":{"kind":"Pod","namespace":"default","name":"p"}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"apiVersion"}), "events.k8s.io/v1");
  const Answer old = server.get("/api/v1/namespaces/default/events/e");
  EXPECT_EQ(old.string_at({"message"}), "nn");
  EXPECT_EQ(old.string_at({"involvedObject", "name"}), "p");
  const auto watch = server.watch(newer + "?watch=1&fieldSelector=regarding.name%3Dp");
  ASSERT_EQ(watch->events().size(), 1U);
  EXPECT_EQ(watch->events()[0].string_at({"object", "note"}), "nn");
}

TEST(Answers, TablesAndMetadata) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"},"data":{"k":"v"}})");
  const Answer table = server.get(std::string(kMaps) + "/a", kTable);
  EXPECT_EQ(table.string_at({"kind"}), "Table");
  const api::Json& row = table.body.find("rows")->if_array()->front();
  EXPECT_EQ(row.find("cells")->if_array()->front().if_string()[0], "a");
  EXPECT_EQ(row.string_at({"object", "kind"}), "PartialObjectMetadata");
  EXPECT_EQ(server.get(std::string(kMaps) + "/a?includeObject=Sometimes", kTable).code, 400);
  EXPECT_EQ(server.get(std::string(kMaps) + "/none", kTable).string_at({"kind"}), "Status");
  const Answer partial = server.get(kMaps, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
  EXPECT_EQ(partial.string_at({"kind"}), "PartialObjectMetadataList");
  EXPECT_EQ(partial.text.find("\"data\""), std::string::npos);
}

TEST(Answers, WhatIsAnsweredAndNotKeptHasNoTable) {
  TestServer server;
  const auto post = [&](const std::string& path, const std::string& body, const std::string& accept) {
    return server.call(api::Method::kPost, path, body, {{"content-type", "application/json"}, {"accept", accept}});
  };
  const std::pair<std::string, std::string> reviews[] = {
      {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
       R"({"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}})"},
      {"/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{"token":"none"}})"}};
  for (const auto& [path, body] : reviews) {
    const Answer refused = post(path, body, kTable);
    EXPECT_EQ(refused.code, 406) << path;
    EXPECT_EQ(refused.string_at({"reason"}), "NotAcceptable") << path;
    EXPECT_EQ(post(path, body, std::string(kTable) + ", application/json").code, 201) << path;
  }
  for (const std::string part : {"pods/web/eviction", "pods/web/binding", "serviceaccounts/default/token"}) {
    EXPECT_EQ(post("/api/v1/namespaces/default/" + part, "{}", kTable).code, 406) << part;
  }
}

std::string type_of(const Answer& answer) {
  for (const auto& [name, value] : answer.headers) {
    if (name == "Content-Type") return value;
  }
  return {};
}

TEST(Answers, DiscoveryInProtobufSaysWhatJsonSays) {
  TestServer server;
  for (const std::string path : {"/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1"}) {
    const Answer plain = server.get(path);
    const Answer answer = server.get(path, "application/vnd.kubernetes.protobuf,application/json");
    ASSERT_EQ(answer.code, 200) << path;
    EXPECT_EQ(type_of(answer), "application/vnd.kubernetes.protobuf");
    auto read = api::read_protobuf_answer(answer.text);
    ASSERT_TRUE(read) << path << ": " << read.error().text();
    EXPECT_EQ(read->string_at({"apiVersion"}), "v1");
    api::Json want = api::parse_json(plain.text).value();
    want["apiVersion"] = "v1";
    if (path == "/api") want["serverAddressByClientCIDRs"] = {};  // an empty list and none are one in protobuf
    EXPECT_EQ(api::to_text(*read), api::to_text(want)) << path;
  }
  // The verbs of a resource are a message of their own: field 4 is {1: "create"}, not a list of strings.
  const std::string answer = server.get("/api/v1", "application/vnd.kubernetes.protobuf").text;
  EXPECT_NE(answer.find(std::string("\x22\x08\x0a\x06") + "create"), std::string::npos);
  // The aggregated form does not exist in protobuf here: the client gets its second choice.
  const Answer aggregated =
      server.get("/apis",
                 "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
                 "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_EQ(aggregated.string_at({"kind"}), "APIGroupDiscoveryList");
}

TEST(Answers, AggregatedDiscoveryHasOneVersion) {
  TestServer server;
  const std::string v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const std::string beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
  EXPECT_EQ(server.get("/apis", beta).code, 406) << "Kubernetes 1.33 removed it";
  EXPECT_EQ(server.get("/apis", beta + "," + v2).string_at({"apiVersion"}), "apidiscovery.k8s.io/v2");
  EXPECT_EQ(server.get("/apis", beta + ",application/json").string_at({"kind"}), "APIGroupList");
  EXPECT_EQ(server.get("/apis", v2 + ";profile=nopeer").string_at({"kind"}), "APIGroupDiscoveryList");
}

TEST(Answers, TheVersionIsTheOneThatIsFollowed) {
  TestServer server;
  const Answer version = server.get("/version");
  EXPECT_EQ(version.string_at({"minor"}), "36");
  EXPECT_TRUE(version.string_at({"gitVersion"}).starts_with("v1.36.0-spillway."));
  EXPECT_EQ(version.string_at({"emulationMinor"}), "36");
  EXPECT_EQ(version.string_at({"minCompatibilityMinor"}), "35");
}

TEST(Answers, DiscoveryIsCached) {
  TestServer server;
  const Answer first =
      server.call(api::Method::kGet, "/apis", {},
                  {{"accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}});
  ASSERT_EQ(first.code, 200);
  std::string tag;
  for (const auto& [name, value] : first.headers) {
    if (name == "ETag") tag = value;
  }
  ASSERT_FALSE(tag.empty());
  const Answer again = server.call(
      api::Method::kGet, "/apis", {},
      {{"accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}, {"if-none-match", tag}});
  EXPECT_EQ(again.code, 304);
  EXPECT_TRUE(again.text.empty());
}

TEST(Answers, WarningsNameUnknownFields) {
  TestServer server;
  const auto warning = [&](const std::string& query) {
    const Answer answer =
        server.post(std::string(kMaps) + "?dryRun=All" + query, R"({"metadata":{"name":"a"},"bogus":1})");
    for (const auto& [name, value] : answer.headers) {
      if (name == "Warning") return value;
    }
    return std::to_string(answer.code);
  };
  EXPECT_EQ(warning(""), R"(299 - "unknown field \"bogus\"")");
  EXPECT_EQ(warning("&fieldValidation=Ignore"), "201");
  EXPECT_EQ(warning("&fieldValidation=Strict"), "400");
}

TEST(Answers, GeneratedNamesAndPutThatCreates) {
  TestServer server;
  const Answer a = server.post(kMaps, R"({"metadata":{"generateName":"gen-"}})");
  const Answer b = server.post(kMaps, R"({"metadata":{"generateName":"gen-"}})");
  EXPECT_EQ(a.string_at({"metadata", "name"}).size(), 9U);
  EXPECT_NE(a.string_at({"metadata", "name"}), b.string_at({"metadata", "name"}));
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
  EXPECT_EQ(server.put(lease, R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"x"}})").code, 201);
  EXPECT_EQ(server.put(std::string(kMaps) + "/none", R"({"metadata":{"name":"none"}})").code, 404);
}

TEST(Answers, DeleteCollectionTakesWhatTheSelectorNames) {
  TestServer server;
  for (int i = 0; i < 200; ++i) {
    server.post(kMaps, "{\"metadata\":{\"name\":\"m" + std::to_string(i) + R"(","labels":{"odd":")" +
                           std::to_string(i % 2) + "\"}}}");
  }
  const Answer gone = server.remove(std::string(kMaps) + "?labelSelector=odd%3D1");
  EXPECT_EQ(gone.body.find("items")->if_array()->size(), 100U);
  EXPECT_EQ(server.get(kMaps).body.find("items")->if_array()->size(), 100U);
}

}  // namespace

}  // namespace spillway::apiserver
