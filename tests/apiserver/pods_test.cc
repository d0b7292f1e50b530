// Pods: binding, grace periods, eviction and budgets, logs.
#include "api/json/json_values.h"
#include "api/text/time_text.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kBudgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

std::string pod_path(const std::string& name, const std::string& rest = {}) {
  return std::string(kPods) + "/" + name + rest;
}

void make_node(TestServer& server, const std::string& name) {
  ASSERT_EQ(server.post("/api/v1/nodes", "{\"metadata\":{\"name\":\"" + name + "\"}}").code, 201);
}

Answer make_pod(TestServer& server, const std::string& name, const std::string& node, const std::string& more = {}) {
  return server.post(kPods, R"({"metadata":{"name":")" + name + R"(","labels":{"app":"a"}},"spec":{)" +
                                (node.empty() ? "" : "\"nodeName\":\"" + node + "\",") + more +
                                R"("containers":[{"name":"c","image":"x:1"}]}})");
}

void make_ready(TestServer& server, const std::string& name) {
  const Answer answer = server.strategic(
      pod_path(name, "/status"), R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  ASSERT_EQ(answer.code, 200) << answer.text;
}

Answer evict(TestServer& server, const std::string& name, const std::string& options = "{}") {
  return server.post(pod_path(name, "/eviction"),
                     R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":")" + name +
                         R"("},"deleteOptions":)" + options + "}");
}

TEST(Pods, SecretsToPullImagesAreTheAccountsUnlessThePodNamesSome) {
  TestServer server;
  ASSERT_EQ(
      server.merge("/api/v1/namespaces/default/serviceaccounts/default", R"({"imagePullSecrets":[{"name":"s"}]})").code,
      200);
  const auto first_secret = [](const Answer& pod) {
    const api::Json* list = pod.body.at({"spec", "imagePullSecrets"});
    return list != nullptr ? std::string(list->if_array()->front().string_at({"name"})) : std::string();
  };
  EXPECT_EQ(first_secret(make_pod(server, "p", "")), "s");
  EXPECT_EQ(first_secret(make_pod(server, "q", "", R"("imagePullSecrets":[{"name":"own"}],)")), "own");
}

TEST(HostUsers, AreKept) {
  TestServer server;
  const Answer own = make_pod(server, "own", "", R"("hostUsers":false,)");
  ASSERT_EQ(own.code, 201) << own.text;
  ASSERT_NE(own.body.at({"spec", "hostUsers"}), nullptr);
  EXPECT_EQ(*own.body.at({"spec", "hostUsers"}), api::Json(false));
  EXPECT_EQ(make_pod(server, "shared", "", R"("hostUsers":false,"hostNetwork":true,)").code, 422);
}

TEST(Generation, CountsChangesOfTheSpecAndTheBeginningOfTheDeletion) {
  TestServer server;
  const auto generation = [&server] {
    return api::integer_at(server.get(pod_path("p")).body, {"metadata", "generation"}, 0);
  };
  ASSERT_EQ(make_pod(server, "p", "").code, 201);
  EXPECT_EQ(generation(), 1);
  server.merge(pod_path("p"), R"({"metadata":{"labels":{"a":"b"},"generation":9}})");
  server.merge(pod_path("p") + "/status", R"({"status":{"phase":"Pending","message":"m"}})");
  ASSERT_EQ(server.post(pod_path("p") + "/binding", R"({"target":{"name":"n"}})").code, 201);
  EXPECT_EQ(generation(), 1) << "labels, statuses and bindings do not count";
  ASSERT_EQ(server.strategic(pod_path("p"), R"({"spec":{"containers":[{"name":"c","image":"i:2"}]}})").code, 200);
  EXPECT_EQ(generation(), 2);
  ASSERT_EQ(server
                .strategic(pod_path("p") + "/ephemeralcontainers",
                           R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}})")
                .code,
            200);
  EXPECT_EQ(generation(), 3);
  server.remove(pod_path("p"), R"({"gracePeriodSeconds":600})");
  EXPECT_EQ(generation(), 4);
  server.remove(pod_path("p"), R"({"gracePeriodSeconds":30})");
  EXPECT_EQ(generation(), 4) << "the deletion had begun";
}

TEST(Generation, IsKeptInAStatusThatDoesNotNameIt) {
  TestServer server;
  ASSERT_EQ(make_pod(server, "p", "").code, 201);
  const std::string status = pod_path("p") + "/status";
  ASSERT_EQ(server
                .merge(status, R"({"status":{"observedGeneration":3,"conditions":[)"
                               R"({"type":"Ready","status":"True","observedGeneration":2}]}})")
                .code,
            200);
  const Answer later = server.merge(
      status, R"({"status":{"observedGeneration":null,"conditions":[{"type":"Ready","status":"False"}]}})");
  ASSERT_EQ(later.code, 200) << later.text;
  EXPECT_EQ(api::integer_at(later.body, {"status", "observedGeneration"}, 0), 3);
  const api::Json& conditions = *later.body.at({"status", "conditions"});
  EXPECT_EQ(api::integer_at((*conditions.if_array())[0], {"observedGeneration"}, 0), 2);
}

TEST(Deletion, AShorterPeriodThatHasPassedEndsNow) {
  TestServer server;
  ASSERT_EQ(make_pod(server, "p", "").code, 201);
  ASSERT_EQ(server.post(pod_path("p") + "/binding", R"({"target":{"name":"n"}})").code, 201);
  server.remove(pod_path("p"), R"({"gracePeriodSeconds":600})");
  server.advance(seconds(60));
  server.remove(pod_path("p"), R"({"gracePeriodSeconds":5})");
  const Answer pod = server.get(pod_path("p"));
  EXPECT_EQ(pod.string_at({"metadata", "deletionTimestamp"}), api::format_time(server.now().wall));
  EXPECT_EQ(api::integer_at(pod.body, {"metadata", "deletionGracePeriodSeconds"}, 0), 1);
}

std::string text_at(const Answer& pod, std::initializer_list<std::string_view> path) {
  const api::Json* found = pod.body.at(path);
  return found != nullptr ? api::to_text(*found) : "none";
}

TEST(TokenVolume, IsMountedIntoEveryContainerThatHasNothingThere) {
  TestServer server(ApiServer::Controllers::kUnknown, {}, "the authority");
  const Answer pod =
      server.post(kPods,
                  R"({"metadata":{"name":"p"},"spec":{"initContainers":[{"name":"i","image":"x:1"}],"containers":[
          {"name":"a","image":"x:1","volumeMounts":[{"name":"own","mountPath":"/data"}]},
          {"name":"b","image":"x:1","volumeMounts":[{"name":"own","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],
          "volumes":[{"name":"own","emptyDir":{}}]}})");
  ASSERT_EQ(pod.code, 201) << pod.text;
  const api::Json::Array& volumes = *pod.body.at({"spec", "volumes"})->if_array();
  ASSERT_EQ(volumes.size(), 2U);
  const std::string name(volumes[1].string_at({"name"}));
  EXPECT_TRUE(name.starts_with("kube-api-access-") && name.size() == 21) << name;
  EXPECT_EQ(
      api::to_text(*volumes[1].find("projected")),
      R"({"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},)"
      R"({"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},)"
      R"({"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]})");
  const std::string mount =
      R"({"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":")" + name + R"(","readOnly":true})";
  const auto mounts = [&pod](const char* list, std::size_t at) {
    return api::to_text(*(*pod.body.at({"spec", list})->if_array())[at].find("volumeMounts"));
  };
  EXPECT_EQ(mounts("initContainers", 0), "[" + mount + "]");
  EXPECT_EQ(mounts("containers", 0), R"([{"mountPath":"/data","name":"own"},)" + mount + "]");
  EXPECT_EQ(mounts("containers", 1), R"([{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"own"}])");
}

TEST(TokenVolume, IsLeftOutWhereItIsNotWanted) {
  TestServer server(ApiServer::Controllers::kUnknown, {}, "the authority");
  EXPECT_EQ(text_at(make_pod(server, "p", "", R"("automountServiceAccountToken":false,)"), {"spec", "volumes"}),
            "none");
  ASSERT_EQ(
      server.merge("/api/v1/namespaces/default/serviceaccounts/default", R"({"automountServiceAccountToken":false})")
          .code,
      200);
  EXPECT_EQ(text_at(make_pod(server, "q", ""), {"spec", "volumes"}), "none");
  EXPECT_NE(text_at(make_pod(server, "r", "", R"("automountServiceAccountToken":true,)"), {"spec", "volumes"}), "none");
}

/// A client that repeats a pod it was shown, volume and all, gets no second one.
TEST(TokenVolume, IsNotAddedTwice) {
  TestServer server(ApiServer::Controllers::kUnknown, {}, "the authority");
  api::Json pod = make_pod(server, "p", "").body;
  pod["metadata"] = api::Json::object({{"name", "again"}});
  const Answer again = server.post(kPods, api::to_text(pod));
  ASSERT_EQ(again.code, 201) << again.text;
  EXPECT_EQ(again.body.at({"spec", "volumes"})->if_array()->size(), 1U);
}

/// A server that publishes no certificate gives no pod a volume to wait for.
TEST(TokenVolume, IsLeftOutWithoutACertificate) {
  TestServer server;
  EXPECT_EQ(text_at(make_pod(server, "p", ""), {"spec", "volumes"}), "none");
}

/// A pod of a class gets the node selector of the class, and may not contradict it.
TEST(Pods, ARuntimeClassSaysWhereItsPodsRun) {
  TestServer server;
  ASSERT_EQ(server
                .post("/apis/node.k8s.io/v1/runtimeclasses",
                      R"({"metadata":{"name":"r"},"handler":"h","scheduling":{"nodeSelector":{"sealed":"yes"},
                          "tolerations":[{"key":"sealed","operator":"Exists"}]}})")
                .code,
            201);
  const Answer pod = make_pod(server, "p", "", R"("runtimeClassName":"r","nodeSelector":{"zone":"a"},)");
  ASSERT_EQ(pod.code, 201) << pod.text;
  EXPECT_EQ(text_at(pod, {"spec", "nodeSelector"}), R"({"sealed":"yes","zone":"a"})");
  EXPECT_EQ(api::to_text(pod.body.at({"spec", "tolerations"})->if_array()->front()),
            R"({"key":"sealed","operator":"Exists"})");
  const std::size_t count = pod.body.at({"spec", "tolerations"})->if_array()->size();
  const Answer same = make_pod(server, "same", "", R"("runtimeClassName":"r","nodeSelector":{"sealed":"yes"},
                                                      "tolerations":[{"key":"sealed","operator":"Exists"}],)");
  ASSERT_EQ(same.code, 201) << same.text;
  EXPECT_EQ(same.body.at({"spec", "tolerations"})->if_array()->size(), count);
  const Answer other = make_pod(server, "other", "", R"("runtimeClassName":"r","nodeSelector":{"sealed":"no"},)");
  EXPECT_EQ(other.code, 403);
  EXPECT_TRUE(
      other.text.contains("conflict: runtimeClass.scheduling.nodeSelector[sealed] = yes; "
                          "pod.spec.nodeSelector[sealed] = no"))
      << other.text;
}

/// The class says what a pod costs beyond its containers; a pod may repeat it, and say nothing else.
TEST(Pods, OverheadIsThatOfTheRuntimeClass) {
  TestServer server;
  ASSERT_EQ(server
                .post("/apis/node.k8s.io/v1/runtimeclasses",
                      R"({"metadata":{"name":"r"},"handler":"h","overhead":{"podFixed":{"cpu":"1"}}})")
                .code,
            201);
  const Answer pod = make_pod(server, "p", "", R"("runtimeClassName":"r",)");
  EXPECT_EQ(pod.string_at({"spec", "overhead", "cpu"}), "1");
  EXPECT_EQ(make_pod(server, "same", "", R"("runtimeClassName":"r","overhead":{"cpu":"1"},)").code, 201);
  EXPECT_EQ(make_pod(server, "other", "", R"("runtimeClassName":"r","overhead":{"cpu":"2"},)").code, 403);
  EXPECT_EQ(make_pod(server, "none", "", R"("overhead":{"cpu":"1"},)").code, 403);
  // An empty one is a request too; an update with it changes nothing, and a template does not keep it.
  EXPECT_EQ(make_pod(server, "empty", "", R"("overhead":{},)").code, 403);
  ASSERT_EQ(make_pod(server, "q", "").code, 201);
  EXPECT_EQ(server.merge(pod_path("q"), R"({"spec":{"overhead":{}}})").code, 200);
  const Answer workload =
      server.post("/apis/apps/v1/namespaces/default/replicasets", R"({"metadata":{"name":"w"},"spec":{
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"}],"overhead":{}}}}})");
  EXPECT_EQ(workload.code, 201);
  EXPECT_EQ(workload.body.at({"spec", "template", "spec", "overhead"}), nullptr);
  // Malformed values are reported before that.
  EXPECT_EQ(make_pod(server, "bad", "", R"("overhead":{"cpu":"-1"},)").code, 422);
}

TEST(Pods, BindingHappensOnce) {
  TestServer server;
  make_node(server, "n1");
  ASSERT_EQ(make_pod(server, "p", "").code, 201);
  const std::string binding = R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})";
  EXPECT_EQ(server.post(pod_path("p", "/binding"), binding).code, 201);
  const Answer pod = server.get(pod_path("p"));
  EXPECT_EQ(pod.string_at({"spec", "nodeName"}), "n1");
  EXPECT_NE(pod.text.find(R"("type":"PodScheduled")"), std::string::npos);
  EXPECT_EQ(server.post(pod_path("p", "/binding"), binding).code, 409);
}

TEST(Pods, AreBoundByABindingOfTheirNamespace) {
  TestServer server;
  make_node(server, "n1");
  ASSERT_EQ(make_pod(server, "p", "").code, 201);
  const std::string bindings = "/api/v1/namespaces/default/bindings";
  EXPECT_EQ(server.post(bindings, R"({"target":{"kind":"Node","name":"n1"}})").code, 400) << "of no pod";
  EXPECT_EQ(server.post(bindings, R"({"metadata":{"name":"other"},"target":{"name":"n1"}})").code, 404);
  EXPECT_EQ(server
                .post("/api/v1/namespaces/elsewhere/bindings",
                      R"({"metadata":{"name":"p","namespace":"default"},"target":{"name":"n1"}})")
                .code,
            400);
  EXPECT_EQ(server.post(bindings, R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})").code, 201);
  EXPECT_EQ(server.get(pod_path("p")).string_at({"spec", "nodeName"}), "n1");
  EXPECT_EQ(server.get(bindings).code, 405);
}

/// The worked exchange 24.4 of the contract.
TEST(Pods, GraceOnlyShrinks) {
  TestServer server;
  make_node(server, "n1");
  make_pod(server, "p", "n1", R"("terminationGracePeriodSeconds":30,)");
  const std::string version = server.get("/api/v1/pods").string_at({"metadata", "resourceVersion"});
  const auto watch = server.watch("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1&resourceVersion=" + version);
  const Answer first = server.remove(pod_path("p"));
  EXPECT_EQ(first.body.at({"metadata", "deletionGracePeriodSeconds"})->if_int64(), 30);
  EXPECT_EQ(first.string_at({"metadata", "deletionTimestamp"}), "2026-01-01T00:00:30Z");
  const Answer longer = server.remove(pod_path("p", "?gracePeriodSeconds=100"));
  EXPECT_EQ(longer.string_at({"metadata", "resourceVersion"}), first.string_at({"metadata", "resourceVersion"}));
  const Answer shorter = server.remove(pod_path("p"), R"({"gracePeriodSeconds":5})");
  EXPECT_EQ(shorter.string_at({"metadata", "deletionTimestamp"}), "2026-01-01T00:00:05Z");
  const Answer last = server.remove(pod_path("p"), R"({"gracePeriodSeconds":0})");
  EXPECT_EQ(last.body.at({"metadata", "deletionGracePeriodSeconds"})->if_int64(), 0);
  EXPECT_EQ(server.get(pod_path("p")).code, 404);
  EXPECT_EQ(watch->names(), (std::vector<std::string>{"MODIFIED:p", "MODIFIED:p", "DELETED:p"}));
  EXPECT_EQ(watch->events()[2].at({"object", "metadata", "deletionGracePeriodSeconds"})->if_int64(), 0);
}

TEST(Pods, GraceIsBounded) {
  TestServer server;
  make_node(server, "n1");
  make_pod(server, "p", "n1", R"("terminationGracePeriodSeconds":30,)");
  for (const std::string seconds : {"9223372036854775807", "9223372036855", "2147483648"}) {
    const std::string text = "Invalid value: " + seconds + ": must be less than or equal to 2147483647";
    for (const Answer& answer :
         {server.remove(pod_path("p", "?gracePeriodSeconds=" + seconds)),
          server.remove(pod_path("p"), "{\"gracePeriodSeconds\":" + seconds + "}"),
          server.post(pod_path("p/eviction"),
                      R"({"metadata":{"name":"p"},"deleteOptions":{"gracePeriodSeconds":)" + seconds + "}}")}) {
      EXPECT_EQ(answer.code, 422) << answer.text;
      EXPECT_NE(answer.string_at({"message"}).find(text), std::string::npos) << answer.text;
    }
  }
  EXPECT_EQ(server.remove(pod_path("p", "?gracePeriodSeconds=9223372036854775808")).code, 400);
  EXPECT_EQ(server.get(pod_path("p")).body.at({"metadata", "deletionTimestamp"}), nullptr);
  // The longest grace that may be requested; a negative one counts as a second.
  const Answer longest = server.remove(pod_path("p", "?gracePeriodSeconds=2147483647"));
  EXPECT_EQ(longest.string_at({"metadata", "deletionTimestamp"}), "2094-01-19T03:14:07Z");
  const Answer least = server.remove(pod_path("p", "?gracePeriodSeconds=-9223372036854775808"));
  EXPECT_EQ(least.string_at({"metadata", "deletionTimestamp"}), "2026-01-01T00:00:01Z");
}

/// Upstream accepts any number here, and so does this server.
TEST(Pods, GraceOfTheSpecIsCutToTheLongest) {
  TestServer server;
  make_node(server, "n1");
  make_pod(server, "p", "n1", R"("terminationGracePeriodSeconds":9223372036854775807,)");
  make_pod(server, "q", "n1", R"("terminationGracePeriodSeconds":-9223372036854775808,)");
  const Answer p = server.remove(pod_path("p"));
  EXPECT_EQ(p.string_at({"metadata", "deletionTimestamp"}), "2094-01-19T03:14:07Z");
  EXPECT_EQ(p.body.at({"metadata", "deletionGracePeriodSeconds"})->if_int64(), 2147483647);
  EXPECT_EQ(server.remove(pod_path("q")).string_at({"metadata", "deletionTimestamp"}), "2026-01-01T00:00:01Z");
}

TEST(Pods, ABudgetOfOneLetsOneGo) {
  TestServer server;
  make_node(server, "n1");
  for (const char* name : {"a", "b"}) {
    make_pod(server, name, "n1");
    make_ready(server, name);
  }
  ASSERT_EQ(server.post(kBudgets, R"({"metadata":{"name":"pdb"},"spec":{"minAvailable":1,"selector":{}}})").code, 201);
  const Answer budget = server.get(std::string(kBudgets) + "/pdb");
  EXPECT_EQ(budget.body.at({"status", "disruptionsAllowed"})->if_int64(), 1) << budget.text;
  EXPECT_EQ(evict(server, "a", R"({"dryRun":["All"]})").code, 201);
  EXPECT_EQ(evict(server, "a", R"({"preconditions":{"uid":"other"}})").code, 409);
  EXPECT_EQ(evict(server, "a").code, 201);
  const Answer refused = evict(server, "b");
  EXPECT_EQ(refused.code, 429);
  EXPECT_NE(refused.text.find("The disruption budget pdb needs 1 healthy pods and has 1 currently"), std::string::npos);
  EXPECT_NE(server.get(pod_path("a")).text.find("DisruptionTarget"), std::string::npos);
  EXPECT_EQ(server.get(pod_path("b")).string_at({"metadata", "deletionTimestamp"}), "");
}

TEST(Pods, ALogIsReadFromTheNode) {
  TestServer server;
  server.post(
      "/api/v1/nodes",
      R"({"metadata":{"name":"n1"},"status":{"addresses":[{"type":"Hostname","address":"h"},{"type":"InternalIP","address":"10.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10251}}}})");
  make_pod(server, "p", "n1");
  const auto sink = server.send(api::Method::kGet, pod_path("p", "/log?follow=true&tailLines=5&unknown=1"));
  EXPECT_EQ(sink->text, "n1 10.0.0.1:10251/containerLogs/default/p/c?follow=true&tailLines=5\n");
  EXPECT_EQ(sink->response->header("content-type"), "text/plain");
  EXPECT_TRUE(sink->ended);
  EXPECT_EQ(server.server().in_flight(), 0U);
}

TEST(Pods, ARefusalOfTheNodeKeepsItsStatusAndWords) {
  TestServer server;
  server.post("/api/v1/nodes",
              R"({"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}})");
  make_pod(server, "p", "n1");
  const std::string waiting = R"(container "c" in pod "p" is waiting to start: ContainerCreating)";
  server.gateway().refusal = api::Response{400, {}, waiting + "\n"};
  const Answer refused = server.get(pod_path("p", "/log"));
  EXPECT_EQ(refused.code, 400);
  EXPECT_EQ(refused.string_at({"reason"}), "BadRequest");
  EXPECT_EQ(refused.string_at({"message"}), waiting);
  for (const int status : {403, 404, 500, 503}) {
    server.gateway().refusal = api::Response{status, {}, "no"};
    EXPECT_EQ(server.get(pod_path("p", "/log")).code, status);
  }
  // A node that does not answer: the gateway refuses with a Status, whose message is the client's too.
  server.gateway().refusal =
      api::Response{503,
                    {},
                    R"({"apiVersion":"v1","code":503,"kind":"Status","message":"cannot reach node \"n1\": no route",)"
                    R"("reason":"ServiceUnavailable","status":"Failure"})"};
  const Answer unreachable = server.get(pod_path("p", "/log"));
  EXPECT_EQ(unreachable.code, 503);
  EXPECT_EQ(unreachable.string_at({"reason"}), "ServiceUnavailable");
  EXPECT_EQ(unreachable.string_at({"message"}), R"(cannot reach node "n1": no route)");
  server.gateway().refusal = api::Response{500, {}, std::string(100'000, 'x')};
  EXPECT_LT(server.get(pod_path("p", "/log")).text.size(), 5000U);
}

/// The claims of a token of the fixture, between a word and a mark.
api::Json claims_of(const Answer& token) {
  const std::string text = token.string_at({"status", "token"});
  Result<api::Json> claims = api::parse_json(text.substr(5, text.size() - 10));
  EXPECT_TRUE(claims) << token.text;
  return claims.value_or(api::Json::object());
}

TEST(Pods, TokensAreBoundToWhatTheyName) {
  TestServer server;
  make_node(server, "n1");
  const std::string uid = make_pod(server, "p", "n1").string_at({"metadata", "uid"});
  const std::string path = "/api/v1/namespaces/default/serviceaccounts/default/token";
  const Answer token = server.post(
      path, R"({"spec":{"expirationSeconds":600,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":")" +
                uid + "\"}}}");
  ASSERT_EQ(token.code, 201) << token.text;
  const api::Json claims = claims_of(token);
  EXPECT_EQ(claims.string_at({"sub"}), "system:serviceaccount:default:default");
  EXPECT_EQ(claims.string_at({"kubernetes.io", "pod", "uid"}), uid);
  EXPECT_EQ(claims.string_at({"kubernetes.io", "node", "name"}), "n1");
  EXPECT_EQ(*claims.find("exp")->if_int64() - *claims.find("iat")->if_int64(), 600);
  EXPECT_EQ(token.string_at({"status", "expirationTimestamp"}), "2026-01-01T00:10:00Z");
  EXPECT_EQ(server.post(path, R"({"spec":{"expirationSeconds":60}})").code, 422);
  EXPECT_EQ(server.post(path, R"({"spec":{"boundObjectRef":{"kind":"Pod","name":"p","uid":"other"}}})").code, 409);
  EXPECT_EQ(server.post(path, R"({"spec":{"boundObjectRef":{"kind":"Pod","name":"none"}}})").code, 404);
  const Answer custom =
      server.post(path, R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"example.com/v1","name":"p"}}})");
  EXPECT_EQ(custom.code, 400) << "a kind of that name in another group: " << custom.text;
}

TEST(Pods, StatusesKeepTheResourcesOfTheWholePod) {
  TestServer server;
  make_pod(server, "p", "");
  const Answer kept =
      server.merge("/api/v1/namespaces/default/pods/p/status",
                   R"({"status":{"allocatedResources":{"cpu":"1"},"resources":{"requests":{"cpu":"1"}}}})");
  ASSERT_EQ(kept.code, 200) << kept.text;
  EXPECT_EQ(kept.string_at({"status", "allocatedResources", "cpu"}), "1");
  EXPECT_EQ(kept.string_at({"status", "resources", "requests", "cpu"}), "1");
}

TEST(Pods, TokensAreForTheAccountOfTheUidThatTheRequestNames) {
  TestServer server;
  const std::string account = "/api/v1/namespaces/default/serviceaccounts/default";
  const std::string uid(server.get(account).string_at({"metadata", "uid"}));
  const Answer token = server.post(account + "/token", R"({"metadata":{"uid":")" + uid + R"("},"spec":{}})");
  ASSERT_EQ(token.code, 201) << token.text;
  EXPECT_EQ(token.string_at({"metadata", "uid"}), uid);
  EXPECT_EQ(server.post(account + "/token", R"({"spec":{}})").string_at({"metadata", "uid"}), uid);
  const Answer other = server.post(account + "/token", R"({"metadata":{"uid":"other"},"spec":{}})");
  EXPECT_EQ(other.code, 409);
  EXPECT_EQ(other.string_at({"message"}),
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"default\": the UID in the token "
            "request (other) does not match the UID of the service account (" +
                uid + ")");
}

TEST(Pods, TokensAreBoundToPodsOfTheirAccountToSecretsAndToNodesOnly) {
  TestServer server;
  make_node(server, "n1");
  make_pod(server, "p", "n1");
  const std::string accounts = "/api/v1/namespaces/default/serviceaccounts";
  ASSERT_EQ(server.post(accounts, R"({"metadata":{"name":"other"}})").code, 201);
  const Answer secret = server.post("/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"}})");
  ASSERT_EQ(secret.code, 201) << secret.text;
  const auto bound = [&](const std::string& account, const std::string& kind, const std::string& name) {
    return server.post(fmt::format("{}/{}/token", accounts, account),
                       fmt::format(R"({{"spec":{{"boundObjectRef":{{"kind":"{}","name":"{}"}}}}}})", kind, name));
  };
  EXPECT_EQ(claims_of(bound("default", "Secret", "s")).string_at({"kubernetes.io", "secret", "uid"}),
            secret.string_at({"metadata", "uid"}));
  EXPECT_EQ(claims_of(bound("default", "Node", "n1")).string_at({"kubernetes.io", "node", "name"}), "n1");
  EXPECT_EQ(bound("default", "Secret", "none").code, 404);
  EXPECT_EQ(bound("default", "Node", "none").code, 404);
  EXPECT_EQ(bound("other", "Pod", "p").code, 400) << "a pod of the account default";
  for (const char* kind : {"ServiceAccount", "Namespace", "NoSuchKind", ""}) {
    const Answer refused = bound("default", kind, "default");
    EXPECT_EQ(refused.code, 400) << kind;
    EXPECT_EQ(refused.string_at({"message"}),
              fmt::format(R"(cannot bind token for serviceaccount "default" to object of kind "{}")", kind));
  }
}

TEST(Pods, TokensLiveNoLongerThanTheServerLets) {
  TestServer server;
  server.token_life_max = minutes(15);
  server.restart();
  const std::string path = "/api/v1/namespaces/default/serviceaccounts/default/token";
  const Answer longer = server.post(path, R"({"spec":{"expirationSeconds":901}})");
  ASSERT_EQ(longer.code, 201) << longer.text;
  EXPECT_EQ(longer.body.at({"spec", "expirationSeconds"})->if_int64(), 900);
  EXPECT_EQ(longer.string_at({"status", "expirationTimestamp"}), "2026-01-01T00:15:00Z");
  const auto warned = std::ranges::find(longer.headers, "Warning", &api::HeaderList::value_type::first);
  ASSERT_NE(warned, longer.headers.end());
  EXPECT_EQ(warned->second, R"(299 - "requested expiration of 901 seconds shortened to 900 seconds")");
  const Answer shorter = server.post(path, R"({"spec":{"expirationSeconds":600}})");
  EXPECT_EQ(shorter.body.at({"spec", "expirationSeconds"})->if_int64(), 600);
  EXPECT_EQ(server.post(path, R"({"spec":{"expirationSeconds":60}})").code, 422);
}

constexpr const char* kTokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews";

Answer review(TestServer& server, const std::string& token) {
  return server.post(kTokenReviews, api::to_text(api::Json::object({{"spec", api::Json::object({{"token", token}})}})));
}

/// A token of the account default, bound to a pod on n1.
std::string bound_token(TestServer& server, const std::string& pod_uid) {
  return server
      .post("/api/v1/namespaces/default/serviceaccounts/default/token",
            R"({"spec":{"boundObjectRef":{"kind":"Pod","name":"p","uid":")" + pod_uid + "\"}}}")
      .string_at({"status", "token"});
}

TEST(Pods, ATokenReviewNamesTheBearer) {
  TestServer server;
  make_node(server, "n1");
  const std::string uid = make_pod(server, "p", "n1").string_at({"metadata", "uid"});
  const Answer good = review(server, bound_token(server, uid));
  ASSERT_EQ(good.code, 201) << good.text;
  EXPECT_TRUE(good.body.at({"status", "authenticated"})->if_bool().value_or(false));
  EXPECT_EQ(good.string_at({"status", "user", "username"}), "system:serviceaccount:default:default");
  const api::Json* extra = good.body.at({"status", "user", "extra"});
  ASSERT_NE(extra, nullptr) << good.text;
  EXPECT_EQ(*extra->find("authentication.kubernetes.io/pod-uid"), api::Json::array({uid}));
  EXPECT_EQ(*good.body.at({"status", "audiences"}), api::Json::array({"https://issuer"}));

  const Answer unknown = review(server, "nobody's");
  EXPECT_EQ(unknown.code, 201);
  EXPECT_EQ(unknown.body.at({"status", "authenticated"}), nullptr);
  EXPECT_EQ(unknown.body.at({"status", "error"}), nullptr) << "this may be remembered";
  EXPECT_EQ(review(server, "").code, 400);
}

TEST(Pods, ATokenEndsWithItsPod) {
  TestServer server;
  make_node(server, "n1");
  const std::string uid = make_pod(server, "p", "n1").string_at({"metadata", "uid"});
  const std::string token = bound_token(server, uid);
  const api::UserInfo admin = server.user;
  const api::UserInfo bearer = (*TestSigner().identify_token(token, {}, server.now().wall))->user;
  const auto enter = [&] {
    server.user = bearer;
    const Answer answer = server.get("/apis");
    server.user = admin;
    return answer;
  };
  EXPECT_EQ(enter().code, 200);
  server.remove(std::string(kPods) + "/p", R"({"gracePeriodSeconds":30})");
  EXPECT_EQ(enter().code, 200) << "it is still ending";
  server.remove(std::string(kPods) + "/p", R"({"gracePeriodSeconds":0})");
  const Answer gone = enter();
  EXPECT_EQ(gone.code, 401);
  EXPECT_EQ(gone.string_at({"message"}), "Unauthorized: Pod \"p\", which the token is bound to, is gone");
  EXPECT_EQ(review(server, token).string_at({"status", "error"}), "Pod \"p\", which the token is bound to, is gone");
  make_pod(server, "p", "n1");
  EXPECT_EQ(enter().code, 401) << "another pod of the same name";
}

TEST(Pods, ATokenEndsAMinuteAfterTheEndOfAPodThatStays) {
  TestServer server;
  make_node(server, "n1");
  const std::string uid = make_pod(server, "p", "n1").string_at({"metadata", "uid"});
  const std::string token = bound_token(server, uid);
  server.remove(std::string(kPods) + "/p", R"({"gracePeriodSeconds":30})");
  server.advance(seconds(90));
  EXPECT_EQ(review(server, token).string_at({"status", "error"}), "");
  server.advance(seconds(1));
  EXPECT_EQ(review(server, token).string_at({"status", "error"}), "Pod \"p\", which the token is bound to, is deleted");
}

TEST(Pods, ATokenEndsWithItsAccount) {
  TestServer server;
  const std::string accounts = "/api/v1/namespaces/default/serviceaccounts";
  server.post(accounts, R"({"metadata":{"name":"a"}})");
  const std::string token = server.post(accounts + "/a/token", "{}").string_at({"status", "token"});
  EXPECT_EQ(review(server, token).string_at({"status", "user", "username"}), "system:serviceaccount:default:a");
  server.remove(accounts + "/a");
  server.post(accounts, R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(review(server, token).string_at({"status", "error"}),
            "the token is bound to an earlier ServiceAccount \"a\"");
}

TEST(Pods, ALogNeedsAContainerAndANode) {
  TestServer server;
  server.post(kPods,
              R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}})");
  EXPECT_EQ(server.get(pod_path("p", "/log")).string_at({"message"}),
            "a container name must be specified for pod p, choose one of: [a b]");
  EXPECT_EQ(server.get(pod_path("p", "/log?container=z")).string_at({"message"}), "container z is not valid for pod p");
  EXPECT_EQ(server.get(pod_path("p", "/log?container=a")).code, 400);
}

}  // namespace

}  // namespace spillway::apiserver
