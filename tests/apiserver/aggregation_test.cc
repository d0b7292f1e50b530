// Aggregated APIs: APIServices, their availability, requests that are forwarded to their servers, discovery and
// OpenAPI.
#include "apiserver/aggregation/due_names.h"
#include "apiserver/aggregation/identity_headers.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver::aggregation_tests {
namespace {

using api::Json;
using Asked = TestApis::Asked;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

const std::string kApis = "/apis/apiregistration.k8s.io/v1/apiservices";
const std::string kWares = "/apis/wares.example.com/v1";
const std::string kList = R"({"kind":"APIResourceList","groupVersion":"wares.example.com/v1","resources":[
  {"name":"wares","singularName":"ware","namespaced":true,"kind":"Ware","verbs":["get","list"],"shortNames":["wa"]},
  {"name":"wares/status","singularName":"","namespaced":true,"kind":"Ware","verbs":["get"]}]})";
const std::string kIndex = R"({"paths":{"apis/wares.example.com/v1":{"serverRelativeURL":
  "/openapi/v3/apis/wares.example.com/v1?hash=AB"},"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=no"}}})";

api::Response reply(int status, std::string body, std::string_view type = "application/json") {
  return {.status = status, .headers = {{"Content-Type", std::string(type)}}, .body = std::move(body), .document = {}};
}

/// A server over which wares.example.com is aggregated from the Service shop/wares, behind 10.0.0.7:8443.
struct ApiWorld {
  ApiWorld() {
    server.aggregated = &server.apis;
    server.proxy_ca_pem = "-----BEGIN CERTIFICATE-----\nown\n-----END CERTIFICATE-----\n";
    server.apis.answers = [this](const Asked& asked) -> std::optional<api::Response> {
      const auto found = script.find(asked.request.target);
      return found == script.end() ? std::nullopt : std::optional(found->second);
    };
    script = {{kWares, reply(200, kList)}, {"/openapi/v3", reply(200, kIndex)}};
    server.restart();
    EXPECT_EQ(server.post("/api/v1/namespaces", R"({"metadata":{"name":"shop"}})").code, 201);
  }

  static std::string api_service(std::string_view members = "", std::string_view version = "v1") {
    return fmt::format(R"({{"metadata":{{"name":"{0}.wares.example.com"}},"spec":{{"group":"wares.example.com",)"
                       R"("version":"{0}","groupPriorityMinimum":2000,"versionPriority":10,)"
                       R"("service":{{"namespace":"shop","name":"wares"}},"caBundle":"Q0E="{1}}}}})",
                       version, members);
  }

  void make_service(std::string_view port = "443") {
    const Answer made = server.post("/api/v1/namespaces/shop/services",
                                    fmt::format(R"({{"metadata":{{"name":"wares"}},"spec":{{"ports":[)"
                                                R"({{"name":"https","port":{}}}]}}}})",
                                                port));
    EXPECT_EQ(made.code, 201) << made.text;
  }

  void make_endpoints(std::string_view address = "10.0.0.7") {
    const Answer made = server.post("/api/v1/namespaces/shop/endpoints",
                                    fmt::format(R"({{"metadata":{{"name":"wares"}},"subsets":[{{"addresses":[)"
                                                R"({{"ip":"{}"}}],"ports":[{{"name":"https","port":8443}}]}}]}})",
                                                address));
    EXPECT_EQ(made.code, 201) << made.text;
  }

  void make_api(std::string_view members = "") {
    const Answer made = server.post(kApis, api_service(members));
    EXPECT_EQ(made.code, 201) << made.text;
    server.run_until_idle();
  }

  void make_all() {
    make_service();
    make_endpoints();
    make_api();
    run_until_idle();
  }

  /// Runs the loop until no probe is under way.
  void run_until_idle() {
    for (int i = 0; i < 4; ++i) server.advance(milliseconds(1));
  }

  /// "STATUS/REASON: MESSAGE" of the condition Available.
  std::string available(std::string_view version = "v1") {
    run_until_idle();
    const Answer got = server.get(fmt::format("{}/{}.wares.example.com", kApis, version));
    const Json* list = got.body.at({"status", "conditions"});
    if (list == nullptr || list->if_array() == nullptr || list->if_array()->empty()) return got.text;
    const Json& one = list->if_array()->front();
    return fmt::format("{}/{}: {}", one.string_at({"status"}), one.string_at({"reason"}), one.string_at({"message"}));
  }

  TestServer server;
  std::map<std::string, api::Response> script;
};

Texts causes(const Answer& answer) {
  Texts texts;
  EXPECT_EQ(answer.code, 422) << answer.text;
  const Json* list = answer.body.at({"details", "causes"});
  if (list == nullptr) return texts;
  for (const Json& cause : *list->if_array()) {
    texts.push_back(fmt::format("{}: {}", cause.string_at({"field"}), cause.string_at({"message"})));
  }
  return texts;
}

TEST(ApiServices, DefaultsAndTable) {
  TestServer server;
  const Answer made = server.post(kApis, ApiWorld::api_service());
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(*made.body.at({"spec", "service", "port"}), Json(443));
  EXPECT_EQ(api::to_text(*made.body.find("status")), "{}");
  const Answer local = server.post(
      kApis, R"({"metadata":{"name":"v2.x.io"},"spec":{"group":"x.io","version":"v2","groupPriorityMinimum":1,
                 "versionPriority":1}})");
  ASSERT_EQ(local.code, 201) << local.text;
  EXPECT_THAT(local.text, HasSubstr(R"("reason":"Local")"));
  const Answer table = server.get(kApis, "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_THAT(table.text, HasSubstr(R"("cells":["v1.wares.example.com","shop/wares","Unknown",)"));
  EXPECT_THAT(table.text, HasSubstr(R"("cells":["v2.x.io","Local","True",)"));
}

TEST(ApiServices, AreValidated) {
  TestServer server;
  const auto wrong = [&](std::string_view name, std::string_view spec) {
    return causes(server.post(kApis, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}}}}})", name, spec)));
  };
  EXPECT_THAT(wrong("v1.y.io", R"("group":"x.io","version":"v1","groupPriorityMinimum":1,"versionPriority":1)"),
              ElementsAre("metadata.name: Invalid value: \"v1.y.io\": must be `spec.version+\".\"+spec.group`: "
                          "\"v1.x.io\""));
  EXPECT_THAT(wrong("v2.", R"("version":"v2","groupPriorityMinimum":0,"versionPriority":1001)"),
              ElementsAre("spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
                          "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                          "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000"));
  EXPECT_THAT(wrong("v1.x.io", R"("group":"x.io","version":"v1","groupPriorityMinimum":1,"versionPriority":1,
                                  "service":{"port":70000},"insecureSkipTLSVerify":true,"caBundle":"Q0E=")"),
              ElementsAre("spec.service.namespace: Required value", "spec.service.name: Required value",
                          "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, "
                          "inclusive",
                          "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"));
}

TEST(ApiAvailability, FollowsServiceEndpointsAndAnswer) {
  ApiWorld world;
  world.make_api();
  EXPECT_EQ(world.available(), "False/ServiceNotFound: service/wares in \"shop\" is not present");
  world.make_service("444");
  EXPECT_EQ(world.available(), "False/ServicePortError: service/wares in \"shop\" is not listening on port 443");
  ASSERT_EQ(world.server.remove("/api/v1/namespaces/shop/services/wares").code, 200);
  world.make_service();
  EXPECT_EQ(world.available(), "False/EndpointsNotFound: cannot find endpoints for service/wares in \"shop\"");
  ASSERT_EQ(world.server.post("/api/v1/namespaces/shop/endpoints", R"({"metadata":{"name":"wares"}})").code, 201);
  EXPECT_EQ(world.available(),
            "False/MissingEndpoints: endpoints for service/wares in \"shop\" have no addresses with port name "
            "\"https\"");
  ASSERT_EQ(world.server.remove("/api/v1/namespaces/shop/endpoints/wares").code, 200);
  world.script[kWares] = reply(404, "no");
  world.make_endpoints();
  EXPECT_EQ(world.available(), "False/FailedDiscoveryCheck: failing or missing response from https://10.0.0.7:8443" +
                                   kWares + ": bad status from https://10.0.0.7:8443" + kWares + ": 404");
  world.script[kWares] = reply(200, kList);
  world.server.advance(seconds(31));
  EXPECT_EQ(world.available(), "True/Passed: all checks passed");
  const Asked& asked = world.server.apis.asked.back();
  EXPECT_EQ(asked.to, (AggregatedServer{"10.0.0.7", 8443, "wares.shop.svc", "CA", true}));
}

TEST(ApiAvailability, ASilentServerIsGivenUpAndRecovers) {
  ApiWorld world;
  world.make_all();
  EXPECT_EQ(world.available(), "True/Passed: all checks passed");
  world.script.erase(kWares);
  world.server.advance(seconds(31));
  for (int i = 0; i < 20; ++i) world.server.advance(seconds(1));
  EXPECT_THAT(world.available(), HasSubstr("False/FailedDiscoveryCheck: failing or missing response from "));
  EXPECT_THAT(world.available(), HasSubstr("context deadline exceeded"));
  const auto sink = world.server.send(api::Method::kGet, kWares + "/namespaces/shop/wares");
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 503);
  EXPECT_EQ(sink->response->body, "service unavailable\n");
  world.script[kWares] = reply(200, kList);
  for (int i = 0; i < 70; ++i) world.server.advance(seconds(1));
  EXPECT_EQ(world.available(), "True/Passed: all checks passed");
}

TEST(ApiAvailability, AnAddressOfThisMachineIsNotAsked) {
  ApiWorld world;
  ASSERT_EQ(world.server
                .post("/api/v1/namespaces/shop/services",
                      R"({"metadata":{"name":"wares"},"spec":{"type":"ExternalName","externalName":"localhost"}})")
                .code,
            201);
  world.make_api();
  EXPECT_EQ(world.available(), "False/FailedDiscoveryCheck: address not allowed");
  EXPECT_TRUE(world.server.apis.asked.empty());
}

TEST(Aggregation, ARequestGoesOnWithItsUser) {
  ApiWorld world;
  world.make_all();
  const std::string target = kWares + "/namespaces/shop/wares/a%2Fb?x=1&labelSelector=a%3Db";
  world.server.user.extra = {{"example.com/Team", {"red", "blue"}}};
  const auto sink = world.server.send(api::Method::kPut, target, "body",
                                      {{"host", "api:6443"},
                                       {"authorization", "Bearer t"},
                                       {"x-remote-user", "root"},
                                       {"x-remote-group", "system:masters"},
                                       {"x-remote-extra-scopes", "all"},
                                       {"impersonate-user", "root"},
                                       {"accept", "application/json"}});
  Asked& asked = world.server.apis.asked.back();
  EXPECT_EQ(asked.request.method, api::Method::kPut);
  EXPECT_EQ(asked.request.target, target);
  EXPECT_EQ(asked.request.body, "body");
  EXPECT_THAT(asked.headers("x-remote-user"), ElementsAre("admin"));
  EXPECT_THAT(asked.headers("x-remote-group"), ElementsAre("system:masters", "system:authenticated"));
  EXPECT_THAT(asked.headers("x-remote-extra-example.com%2Fteam"), ElementsAre("red", "blue"));
  EXPECT_TRUE(asked.headers("x-remote-extra-scopes").empty());
  EXPECT_TRUE(asked.headers("authorization").empty());
  EXPECT_TRUE(asked.headers("impersonate-user").empty());
  EXPECT_THAT(asked.headers("host"), ElementsAre("api:6443"));
  const auto to = std::exchange(asked.sink, nullptr);
  to->on_stream({.status = 409, .headers = {{"Content-Type", "application/json"}, {"Set-Cookie", "a=b"}}, .body = {}});
  EXPECT_TRUE(to->write(std::make_shared<const std::string>("{}")));
  to->on_end();
  EXPECT_TRUE(sink->streaming);
  EXPECT_EQ(sink->text, "{}");
  EXPECT_TRUE(sink->ended);
}

TEST(Aggregation, OnlyAnAuthorizedRequestGoesOn) {
  ApiWorld world;
  world.make_all();
  const std::size_t before = world.server.apis.asked.size();
  world.server.user = {"jane", {}, {"system:authenticated"}};
  const Answer refused = world.server.get(kWares + "/namespaces/shop/wares");
  EXPECT_EQ(refused.code, 403) << refused.text;
  EXPECT_THAT(refused.string_at({"message"}),
              HasSubstr("cannot list resource \"wares\" in API group \"wares.example.com\""));
  EXPECT_EQ(world.server.apis.asked.size(), before);
}

TEST(Aggregation, ARedirectIsRefused) {
  ApiWorld world;
  world.make_all();
  world.script[kWares + "/wares"] = {
      .status = 302, .headers = {{"Location", "https://169.254.169.254/"}}, .body = "", .document = {}};
  const auto sink = world.server.send(api::Method::kGet, kWares + "/wares");
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 502);
  EXPECT_EQ(sink->response->body, "the backend attempted to redirect this request, which is not permitted");
}

TEST(Aggregation, AnAnswerHasAMinuteAWatchHasNot) {
  ApiWorld world;
  world.make_all();
  const auto silent = world.server.send(api::Method::kGet, kWares + "/wares");
  const auto endless = world.server.send(api::Method::kGet, kWares + "/wares/endless");
  const auto watch = world.server.send(api::Method::kGet, kWares + "/wares?watch=1");
  auto& asked = world.server.apis.asked;
  const std::size_t first = asked.size() - 3;
  const auto flood = asked[first + 1].sink;
  const auto events = asked[first + 2].sink;
  flood->on_stream(reply(200, ""));
  events->on_stream(reply(200, ""));
  EXPECT_EQ(world.server.get(kMaps).code, 200) << "other requests are answered meanwhile";
  for (int i = 0; i < 70; ++i) world.server.advance(seconds(1));
  ASSERT_TRUE(silent->answered());
  EXPECT_EQ(silent->response->status, 504);
  EXPECT_FALSE(flood->write(std::make_shared<const std::string>("more")));
  EXPECT_TRUE(events->write(std::make_shared<const std::string>("{}\n")));
  EXPECT_EQ(watch->text, "{}\n");
  EXPECT_EQ(asked[first].sink, nullptr) << "the call is cancelled";
}

TEST(Aggregation, OneApiHoldsNoMoreThanItsConnections) {
  ApiWorld world;
  world.make_all();
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 64; ++i) sinks.push_back(world.server.send(api::Method::kGet, kWares + "/wares"));
  const Answer refused = world.server.get(kWares + "/wares");
  EXPECT_EQ(refused.code, 429) << refused.text;
  for (auto& asked : world.server.apis.asked) {
    if (const auto to = std::exchange(asked.sink, nullptr)) to->on_response(reply(200, "{}"));
  }
  world.script[kWares + "/wares"] = reply(200, "{}");
  EXPECT_EQ(world.server.send(api::Method::kGet, kWares + "/wares")->text, "{}");
}

TEST(Aggregation, AGroupOfThisServerStaysWithIt) {
  ApiWorld world;
  world.make_service();
  world.make_endpoints();
  const Answer merged = world.server.merge(
      kApis + "/v1.apps", R"({"spec":{"service":{"namespace":"shop","name":"wares"},"insecureSkipTLSVerify":true}})");
  ASSERT_EQ(merged.code, 200) << merged.text;
  world.run_until_idle();
  EXPECT_EQ(world.server.get("/apis/apps/v1/deployments").code, 200);
}

Texts group_names(const Answer& answer) {
  Texts names;
  for (const Json& group : *std::as_const(answer.body).find("groups")->if_array()) {
    names.emplace_back(group.string_at({"name"}));
  }
  return names;
}

TEST(AggregatedDiscovery, ListsTheGroupByItsPriority) {
  ApiWorld world;
  world.make_all();
  const Texts names = group_names(world.server.get("/apis"));
  EXPECT_EQ(names.front(), "apiregistration.k8s.io");
  EXPECT_EQ(names[1], "apps");
  EXPECT_EQ(names[2], "events.k8s.io");
  const auto at = std::ranges::find(names, "wares.example.com");
  ASSERT_NE(at, names.end());
  EXPECT_EQ(*(at + 1), "metrics.k8s.io") << "behind all groups of larger priority";
  const Answer group = world.server.get("/apis/wares.example.com");
  EXPECT_EQ(group.string_at({"preferredVersion", "groupVersion"}), "wares.example.com/v1");
  const Answer all = world.server.get("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_THAT(all.text, HasSubstr(R"("metadata":{"name":"wares.example.com"},"versions":[)"
                                  R"({"version":"v1","resources":[{"resource":"wares","responseKind":)"));
  EXPECT_THAT(all.text, HasSubstr(R"("subresources":[{"subresource":"status",)"));
  EXPECT_THAT(world.server.get("/").text, HasSubstr(R"("/apis/wares.example.com/v1")"));
  EXPECT_THAT(world.server.get("/openapi/v3").text, HasSubstr(R"("/openapi/v3/apis/wares.example.com/v1?hash=AB")"));
  EXPECT_THAT(world.server.get("/openapi/v3").text, Not(HasSubstr("hash=no")));
  world.script["/openapi/v3/apis/wares.example.com/v1?hash=AB"] = reply(200, R"({"openapi":"3.0.0"})");
  const auto document = world.server.send(api::Method::kGet, "/openapi/v3/apis/wares.example.com/v1?hash=AB");
  EXPECT_EQ(document->text, R"({"openapi":"3.0.0"})");
}

TEST(AggregatedDiscovery, IsStaleWhileTheServerIsAwayAndGoesWithTheApiService) {
  ApiWorld world;
  world.make_all();
  const std::string wanted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  EXPECT_THAT(world.server.get("/apis", wanted).text, Not(HasSubstr("Stale")));
  world.script[kWares] = reply(500, "no");
  for (int i = 0; i < 70; ++i) world.server.advance(seconds(1));
  const Answer stale = world.server.get("/apis", wanted);
  EXPECT_THAT(stale.text, HasSubstr(R"("freshness":"Stale")"));
  EXPECT_THAT(stale.text, HasSubstr(R"("resource":"wares")")) << "what is known of it stays";
  ASSERT_EQ(world.server.remove(kApis + "/v1.wares.example.com").code, 200);
  world.run_until_idle();
  EXPECT_THAT(world.server.get("/apis", wanted).text, Not(HasSubstr("wares.example.com")));
  EXPECT_EQ(world.server.get(kWares + "/wares").code, 404);
  const std::size_t asked = world.server.apis.asked.size();
  for (int i = 0; i < 70; ++i) world.server.advance(seconds(1));
  EXPECT_EQ(world.server.apis.asked.size(), asked) << "nothing is asked of it any more";
}

const std::string kDefinitions = R"({"swagger":"2.0","paths":{"/apis/wares.example.com/v1/wares":{"get":{"responses":
  {"200":{"schema":{"$ref":"#/definitions/com.example.wares.v1.Ware"}}}}},"/apis/other.example.com/v1/x":{}},
  "definitions":{"com.example.wares.v1.Ware":{"description":"A thing to sell.","type":"object","properties":{"metadata":
  {"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}},"x-kubernetes-group-version-kind":
  [{"group":"wares.example.com","kind":"Ware","version":"v1"}]},
  "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"description":"Theirs.","type":"object"}}})";

void pass_minutes(ApiWorld& world, int minutes = 1) {
  for (int i = 0; i < 65 * minutes; ++i) world.server.advance(seconds(1));
}

TEST(AggregatedOpenApi, V2HasTheDefinitionsOfTheGroupVersion) {
  ApiWorld world;
  const std::string before = world.server.get("/openapi/v2").text;
  world.script["/openapi/v2"] = reply(200, kDefinitions);
  world.make_all();
  const Json v2 = world.server.get("/openapi/v2").body;
  const auto at = [&](std::string_view section, std::string_view name) {
    const Json* found = v2.at({section, name});
    return found == nullptr ? std::string() : api::to_text(*found);
  };
  EXPECT_THAT(at("definitions", "com.example.wares.v1.Ware"),
              HasSubstr(R"("$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2")"));
  EXPECT_THAT(at("definitions", "com.example.wares.v1.Ware"),
              HasSubstr(R"({"group":"wares.example.com","kind":"Ware")"));
  EXPECT_THAT(at("definitions", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2"), HasSubstr("Theirs."));
  EXPECT_THAT(at("definitions", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"), Not(HasSubstr("Theirs.")));
  EXPECT_THAT(at("paths", "/apis/wares.example.com/v1/wares"), HasSubstr("com.example.wares.v1.Ware"));
  EXPECT_EQ(v2.at({"paths", "/apis/other.example.com/v1/x"}), nullptr) << "of another group";
  const Answer protobuf = world.server.get("/openapi/v2", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  EXPECT_THAT(protobuf.text, HasSubstr("com.example.wares.v1.Ware"));
  EXPECT_THAT(protobuf.text, HasSubstr("A thing to sell."));
  ASSERT_EQ(world.server.remove(kApis + "/v1.wares.example.com").code, 200);
  world.run_until_idle();
  EXPECT_EQ(world.server.get("/openapi/v2").text, before) << "all of it goes with the APIService";
}

TEST(AggregatedOpenApi, V2StaysWhileTheServerIsAwayAndFollowsWhatItSays) {
  ApiWorld world;
  world.script["/openapi/v2"] = reply(200, kDefinitions);
  world.make_all();
  const auto has_ware = [&] { return world.server.get("/openapi/v2").text.contains("A thing to sell."); };
  EXPECT_TRUE(has_ware());
  for (const auto& [status, body] :
       {std::pair(500, "no"), std::pair(200, "{"), std::pair(200, R"({"openapi":"3.0.0"})")}) {
    world.script["/openapi/v2"] = reply(status, body);
    pass_minutes(world);
    EXPECT_TRUE(has_ware()) << status << " " << body;
  }
  world.script["/openapi/v2"] = reply(404, "");
  pass_minutes(world);
  EXPECT_FALSE(has_ware()) << "the server has no such document any more";
  world.script["/openapi/v2"] = reply(200, kDefinitions);
  pass_minutes(world);
  EXPECT_TRUE(has_ware());
}

TEST(DueNames, ANameWhoseFetchIsUnderWayStaysDueAndDelaysNoOther) {
  DueNames due(2);
  for (const char* name : {"slow", "b", "b", "c"}) due.add(name);
  EXPECT_EQ(due.take(), "slow");
  due.begin("slow");
  due.add("slow");
  EXPECT_EQ(due.take(), "b");
  due.begin("b");
  EXPECT_EQ(due.take(), std::nullopt);  // two are under way
  due.end("b");
  EXPECT_EQ(due.take(), "c");
  EXPECT_EQ(due.take(), std::nullopt);  // only the name that is under way is due
  due.end("slow");
  EXPECT_EQ(due.take(), "slow");
  EXPECT_EQ(due.take(), std::nullopt);
}

TEST(AggregatedOpenApi, ADocumentThatIsKnownIsNotSentAgain) {
  ApiWorld world;
  api::Response tagged = reply(200, kDefinitions);
  tagged.headers.emplace_back("ETag", "\"one\"");
  world.script["/openapi/v2"] = tagged;
  world.make_all();
  world.script["/openapi/v2"] = reply(304, "");
  pass_minutes(world);
  std::vector<Texts> tags;
  for (const Asked& asked : world.server.apis.asked) {
    if (asked.request.target == "/openapi/v2") tags.push_back(asked.headers("if-none-match"));
  }
  EXPECT_THAT(tags, ElementsAre(Texts(), Texts{"\"one\""}));
  EXPECT_THAT(world.server.get("/openapi/v2").text, HasSubstr("A thing to sell."));
}

TEST(AggregatedOpenApi, AChangeDuringAFetchIsFollowedByAnother) {
  ApiWorld world;
  world.make_all();  // the request for v2 has no answer yet
  const auto change = world.server.merge(kApis + "/v1.wares.example.com", R"({"spec":{"versionPriority":7}})");
  EXPECT_EQ(change.code, 200) << change.text;
  world.script["/openapi/v2"] = reply(200, kDefinitions);
  for (int i = 0; i < 15; ++i) world.server.advance(seconds(1));
  EXPECT_THAT(world.server.get("/openapi/v2").text, HasSubstr("A thing to sell."));
}

TEST(AggregatedOpenApi, TheIndexOfV3StaysWhileTheServerFails) {
  ApiWorld world;
  world.make_all();
  const auto has_path = [&] { return world.server.get("/openapi/v3").text.contains("v3/apis/wares.example.com/v1"); };
  EXPECT_TRUE(has_path());
  world.script["/openapi/v3"] = reply(503, "no");
  pass_minutes(world);
  EXPECT_TRUE(has_path());
  world.script["/openapi/v3"] = reply(404, "");
  pass_minutes(world);
  EXPECT_FALSE(has_path());
}

TEST(LocalApis, EveryGroupVersionOfThisServerHasOne) {
  ApiWorld world;
  world.run_until_idle();
  const Answer apps = world.server.get(kApis + "/v1.apps");
  ASSERT_EQ(apps.code, 200) << apps.text;
  EXPECT_EQ(*apps.body.at({"spec", "groupPriorityMinimum"}), Json(17'800));
  EXPECT_EQ(apps.string_at({"metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"}), "onstart");
  EXPECT_THAT(apps.text, HasSubstr(R"("reason":"Local")"));
  EXPECT_EQ(world.server.get(kApis + "/v1.").code, 200);
  EXPECT_EQ(world.server.get(kApis + "/v1.apiregistration.k8s.io").code, 404);
}

TEST(LocalApis, ConfigMapHasTheAuthoritiesOfThisServer) {
  ApiWorld world;
  world.run_until_idle();
  const Answer map = world.server.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication");
  ASSERT_EQ(map.code, 200) << map.text;
  EXPECT_EQ(map.string_at({"data", "requestheader-client-ca-file"}), world.server.proxy_ca_pem);
  EXPECT_EQ(map.string_at({"data", "requestheader-allowed-names"}), R"(["front-proxy-client"])");
  EXPECT_EQ(map.string_at({"data", "requestheader-username-headers"}), R"(["X-Remote-User"])");
  world.server.proxy_ca_pem = "-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----\n";
  world.server.restart();
  world.run_until_idle();
  const Answer both = world.server.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication");
  EXPECT_THAT(both.string_at({"data", "requestheader-client-ca-file"}), HasSubstr("own"));
  EXPECT_THAT(both.string_at({"data", "requestheader-client-ca-file"}), HasSubstr("other"));
}

TEST(IdentityHeaders, HoldNothingThatEndsALine) {
  const api::HeaderList headers =
      identity_headers({.name = "a\r\nx-evil: 1", .uid = {}, .groups = {"g"}, .extra = {{"k\n", {"v\n"}}}});
  EXPECT_EQ(headers, (api::HeaderList{
                         {"x-remote-user", "a  x-evil: 1"}, {"x-remote-group", "g"}, {"x-remote-extra-k%0A", "v "}}));
}

}  // namespace
}  // namespace spillway::apiserver::aggregation_tests
