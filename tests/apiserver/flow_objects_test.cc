// Goal: FlowSchemas and PriorityLevelConfigurations as resources: every cluster has them and keeps the mandatory ones,
// a change takes effect with the next request, and no client's schema takes the heartbeats of nodes or all seats.
#include "apiserver/server_fixture.h"
#include "policy/flow/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

using enum api::Method;

const std::string kGroupPath = "/apis/flowcontrol.apiserver.k8s.io/v1/";
const std::string kSchemas = kGroupPath + "flowschemas";
const std::string kLevels = kGroupPath + "prioritylevelconfigurations";
const api::UserInfo kPerson{"ann", {}, {"people", "system:authenticated"}};
constexpr std::string_view kAutoUpdate = "apf.kubernetes.io/autoupdate-spec";

std::string level_body(std::string_view name, int shares, std::string_view response = "{'type':'Reject'}") {
  std::string text = fmt::format(
      "{{'metadata':{{'name':'{}'}},'spec':{{'type':'Limited','limited':{{'nominalConcurrencyShares':{},"
      "'limitResponse':{}}}}}}}",
      name, shares, response);
  std::ranges::replace(text, '\'', '"');
  return text;
}

std::string schema_body(std::string_view name, std::string_view level, int precedence,
                        std::string_view group = "people") {
  std::string text = fmt::format(
      "{{'metadata':{{'name':'{}'}},'spec':{{'priorityLevelConfiguration':{{'name':'{}'}},'matchingPrecedence':{},"
      "'rules':[{{'subjects':[{{'kind':'Group','group':{{'name':'{}'}}}}],'resourceRules':[{{'verbs':['*'],"
      "'apiGroups':['*'],'resources':['*'],'namespaces':['*'],'clusterScope':true}}],'nonResourceRules':[{{"
      "'verbs':['*'],'nonResourceURLs':['*']}}]}}]}}}}",
      name, level, precedence, group);
  std::ranges::replace(text, '\'', '"');
  return text;
}

class FlowResources : public ::testing::Test {
 protected:
  /// The names of the schema and level of a request, by the uids in its answer.
  std::string flow_of(const api::UserInfo& user, std::string target, api::Method method = kGet) {
    server_.user = user;
    const auto sink = server_.send(method, std::move(target));
    server_.user = kAdmin;
    if (!sink->response) return "no answer";
    return name_of(kSchemas, sink->response->header("X-Kubernetes-PF-FlowSchema-UID")) + " " +
           name_of(kLevels, sink->response->header("X-Kubernetes-PF-PriorityLevel-UID"));
  }

  std::string name_of(const std::string& path, std::string_view uid) {
    const Answer list = server_.get(path);
    for (const api::Json& each : *list.body.find("items")->if_array()) {
      if (each.string_at({"metadata", "uid"}) == uid) return std::string(each.string_at({"metadata", "name"}));
    }
    return "none";
  }

  std::vector<std::string> names_of(const std::string& path) {
    std::vector<std::string> names;
    const Answer list = server_.get(path);
    for (const api::Json& each : *list.body.find("items")->if_array()) {
      names.emplace_back(each.string_at({"metadata", "name"}));
    }
    return names;
  }

  std::string annotation(const std::string& path) {
    return server_.get(path).string_at({"metadata", "annotations", kAutoUpdate});
  }

  /// "Dangling" of a schema: status and reason.
  std::string dangling(const std::string& name) {
    const Answer schema = server_.get(kSchemas + "/" + name);
    const api::Json* list = schema.body.at({"status", "conditions"});
    if (list == nullptr || list->if_array() == nullptr || list->if_array()->empty()) return "";
    const api::Json& first = list->if_array()->front();
    return fmt::format("{} {} {}", first.string_at({"type"}), first.string_at({"status"}), first.string_at({"reason"}));
  }

  TestServer server_;
};

TEST_F(FlowResources, EveryClusterHasThem) {
  EXPECT_EQ(names_of(kLevels), (std::vector<std::string>{"catch-all", "exempt", "global-default", "leader-election",
                                                         "node-high", "system", "workload-high", "workload-low"}));
  EXPECT_EQ(names_of(kSchemas),
            (std::vector<std::string>{"catch-all", "endpoint-controller", "exempt", "global-default",
                                      "kube-controller-manager", "kube-scheduler", "kube-system-service-accounts",
                                      "probes", "service-accounts", "system-leader-election", "system-node-high",
                                      "system-nodes", "workload-leader-election"}));
  EXPECT_EQ(annotation(kSchemas + "/probes"), "true");
  EXPECT_EQ(annotation(kLevels + "/exempt"), "true");
  EXPECT_EQ(dangling("probes"), "Dangling False Found");
  EXPECT_EQ(server_.get(kSchemas + "/exempt").body.at({"metadata", "generation"})->if_int64(), 1);
  EXPECT_EQ(flow_of(kAdmin, kMaps), "exempt exempt");
  EXPECT_EQ(flow_of(kPerson, kMaps), "global-default global-default");
  EXPECT_EQ(flow_of(kNode, "/api/v1/nodes/n1"), "system-node-high node-high");
}

// The server's start and the part that keeps the objects create them side by side.
TEST_F(FlowResources, AFirstStartWarnsOfNothing) {
  EXPECT_EQ(server_.warnings, std::vector<std::string>());
}

TEST_F(FlowResources, TablesShowThem) {
  const std::string as_table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const std::string schemas = server_.get(kSchemas + "/kube-scheduler", as_table).text;
  EXPECT_TRUE(schemas.contains(R"("cells":["kube-scheduler","workload-high",800,"ByNamespace",)")) << schemas;
  EXPECT_TRUE(schemas.contains(R"(,"False"])")) << schemas;
  const std::string levels = server_.get(kLevels, as_table).text;
  EXPECT_TRUE(levels.contains(R"("cells":["catch-all","Limited",5,"<none>","<none>","<none>",)")) << levels;
  EXPECT_TRUE(levels.contains(R"("cells":["exempt","Exempt","<none>","<none>","<none>","<none>",)")) << levels;
  EXPECT_TRUE(levels.contains(R"("cells":["workload-low","Limited",100,128,6,50,)")) << levels;
}

TEST_F(FlowResources, ASchemaTakesEffectWithTheNextRequest) {
  ASSERT_EQ(server_.post(kLevels, level_body("people", 10)).code, 201);
  ASSERT_EQ(server_.post(kSchemas, schema_body("people", "people", 500)).code, 201);
  EXPECT_EQ(flow_of(kPerson, kMaps), "people people");
  ASSERT_EQ(server_.merge(kSchemas + "/people", R"({"spec":{"matchingPrecedence":9950}})").code, 200);
  EXPECT_EQ(flow_of(kPerson, kMaps), "global-default global-default");
  ASSERT_EQ(server_.merge(kSchemas + "/people", R"({"spec":{"matchingPrecedence":9900}})").code, 200);
  EXPECT_EQ(flow_of(kPerson, kMaps), "global-default global-default") << "of equal precedence the first name counts";
  ASSERT_EQ(server_.merge(kSchemas + "/people", R"({"spec":{"matchingPrecedence":9899}})").code, 200);
  EXPECT_EQ(flow_of(kPerson, kMaps), "people people");
  ASSERT_EQ(server_.remove(kSchemas + "/people").code, 200);
  EXPECT_EQ(flow_of(kPerson, kMaps), "global-default global-default");
  server_.restart();
  EXPECT_EQ(server_.get(kLevels + "/people").code, 200);
}

TEST_F(FlowResources, ASchemaOfAMissingLevelDangles) {
  ASSERT_EQ(server_.post(kSchemas, schema_body("people", "later", 500)).code, 201);
  EXPECT_EQ(dangling("people"), "Dangling True NotFound");
  EXPECT_EQ(flow_of(kPerson, kMaps), "global-default global-default");
  ASSERT_EQ(server_.post(kLevels, level_body("later", 10)).code, 201);
  EXPECT_EQ(dangling("people"), "Dangling False Found");
  EXPECT_EQ(flow_of(kPerson, kMaps), "people later");
  ASSERT_EQ(server_.remove(kLevels + "/later").code, 200);
  EXPECT_EQ(dangling("people"), "Dangling True NotFound");
  EXPECT_EQ(flow_of(kPerson, kMaps), "global-default global-default");
}

TEST_F(FlowResources, MandatoryOnesAreRestored) {
  for (const std::string& path : {kSchemas + "/exempt", kLevels + "/catch-all", kSchemas + "/probes"}) {
    const std::string uid = server_.get(path).string_at({"metadata", "uid"});
    ASSERT_EQ(server_.remove(path).code, 200);
    const std::string again = server_.get(path).string_at({"metadata", "uid"});
    EXPECT_FALSE(again.empty()) << path;
    EXPECT_NE(again, uid) << path;
  }
  EXPECT_EQ(flow_of(kAdmin, kMaps), "exempt exempt");
  ASSERT_EQ(
      server_
          .merge(kSchemas + "/exempt", R"({"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}}})")
          .code,
      200);
  EXPECT_EQ(annotation(kSchemas + "/exempt"), "true");
  EXPECT_EQ(server_.merge(kSchemas + "/exempt", R"({"spec":{"matchingPrecedence":2}})").code, 422);
  // The shares of the exempt level may be chosen.
  ASSERT_EQ(
      server_.merge(kLevels + "/exempt", R"({"spec":{"exempt":{"nominalConcurrencyShares":20,"lendablePercent":50}}})")
          .code,
      200);
  EXPECT_EQ(server_.get(kLevels + "/exempt").body.at({"spec", "exempt", "nominalConcurrencyShares"})->if_int64(), 20);
  EXPECT_TRUE(server_.get("/metrics").text.contains("nominal_limit_seats{priority_level=\"exempt\"} 46"));
}

TEST_F(FlowResources, SuggestedOnesAreKeptUnlessAnAdministratorTakesThemOver) {
  const std::string path = kLevels + "/workload-low";
  const auto shares = [&] {
    return server_.get(path).body.at({"spec", "limited", "nominalConcurrencyShares"})->if_int64();
  };
  ASSERT_EQ(server_.merge(path, R"({"spec":{"limited":{"nominalConcurrencyShares":7}}})").code, 200);
  EXPECT_EQ(shares(), 100) << "its annotation says that the server keeps it";
  ASSERT_EQ(
      server_
          .merge(
              path,
              R"({"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"limited":{"nominalConcurrencyShares":7}}})")
          .code,
      200);
  EXPECT_EQ(shares(), 7);
  server_.restart();
  EXPECT_EQ(shares(), 7);
  ASSERT_EQ(server_.merge(path, R"({"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":null}}})").code,
            200);
  EXPECT_EQ(annotation(path), "false") << "it has been changed before";
}

TEST_F(FlowResources, HeartbeatsPassAnySchema) {
  ASSERT_EQ(server_.post(kLevels, level_body("jail", 0)).code, 201);
  ASSERT_EQ(server_.post(kSchemas, schema_body("grab", "jail", 2, "system:authenticated")).code, 201);
  ASSERT_EQ(
      server_
          .merge(
              kSchemas + "/system-node-high",
              R"({"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"priorityLevelConfiguration":{"name":"jail"},"distinguisherMethod":null}})")
          .code,
      200);
  ASSERT_EQ(
      server_
          .merge(
              kLevels + "/node-high",
              R"({"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"limited":{"nominalConcurrencyShares":0,"lendablePercent":100}}})")
          .code,
      200);
  EXPECT_EQ(flow_of(kNode, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"),
            "system-node-high node-high");
  EXPECT_EQ(flow_of(kNode, "/api/v1/nodes/n1"), "system-node-high node-high");
  EXPECT_EQ(flow_of(kPerson, kMaps), "grab jail");
  EXPECT_EQ(flow_of(kAdmin, kMaps), "exempt exempt");
  EXPECT_TRUE(server_.get("/metrics").text.contains("nominal_limit_seats{priority_level=\"node-high\"} 60"));
}

TEST_F(FlowResources, TheyAreDefaultedAndValidated) {
  const Answer level = server_.post(
      kLevels,
      R"({"metadata":{"name":"a"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{}}}}})");
  ASSERT_EQ(level.code, 201) << level.text;
  EXPECT_EQ(
      api::to_text(*level.body.find("spec")),
      R"({"limited":{"lendablePercent":0,"limitResponse":{"queuing":{"handSize":8,"queueLengthLimit":50,"queues":64},)"
      R"("type":"Queue"},"nominalConcurrencyShares":30},"type":"Limited"})");
  const Answer schema =
      server_.post(kSchemas, R"({"metadata":{"name":"a"},"spec":{"priorityLevelConfiguration":{"name":"a"}}})");
  ASSERT_EQ(schema.code, 201) << schema.text;
  EXPECT_EQ(schema.body.at({"spec", "matchingPrecedence"})->if_int64(), 1'000);
  const auto causes = [&](const std::string& path, const std::string& spec) {
    const Answer answer = server_.post(path, R"({"metadata":{"name":"x"},"spec":)" + spec + "}");
    std::vector<std::string> texts;
    const api::Json* list = answer.body.at({"details", "causes"});
    if (list == nullptr || list->if_array() == nullptr) return std::vector<std::string>{answer.text};
    for (const api::Json& cause : *list->if_array()) {
      texts.push_back(fmt::format("{}: {}", cause.string_at({"field"}), cause.string_at({"message"})));
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(
      causes(kSchemas,
             R"({"priorityLevelConfiguration":{"name":""},"matchingPrecedence":1,"rules":[{"subjects":[]}]})"),
      (Texts{"spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
             "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
             "spec.rules[0].subjects: Required value: subjects must contain at least one value",
             "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"}));
  EXPECT_EQ(
      causes(
          kSchemas,
          R"({"priorityLevelConfiguration":{"name":"a"},"matchingPrecedence":10001,"rules":[{"subjects":[{"kind":"User","group":{"name":"g"}},{"kind":"Robot"}],"nonResourceRules":[{"verbs":["*","get"],"nonResourceURLs":["x","/a*","//","/ a","/a/*"]}]}]})"),
      (Texts{
          "spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000",
          "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
          "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
          R"(spec.rules[0].subjects[1].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User")",
          R"(spec.rules[0].nonResourceRules[0].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs)",
          R"(spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "x": must start with slash)",
          R"(spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: "/a*": wildcard can only do suffix matching)",
          R"(spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: Invalid value: "//": must not contain double slash)",
          R"(spec.rules[0].nonResourceRules[0].nonResourceURLs[3]: Invalid value: "/ a": must not contain white-space)"}));
  EXPECT_EQ(
      causes(
          kSchemas,
          R"({"priorityLevelConfiguration":{"name":"a"},"rules":[{"subjects":[{"kind":"ServiceAccount","serviceAccount":{"namespace":"A","name":"*"}}],"resourceRules":[{"verbs":[],"apiGroups":["*","apps"],"resources":[],"namespaces":["a","*"]},{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}]})")
          .size(),
      6U);
  EXPECT_EQ(causes(kLevels, R"({"type":"Exempt","limited":{"limitResponse":{"type":"Reject"}}})"),
            (Texts{R"(spec.type: Invalid value: "Exempt": type must be 'Exempt' if and only if name is 'exempt')",
                   "spec.limited: Forbidden: must be nil if the type is not Limited"}));
  EXPECT_EQ(
      causes(
          kLevels,
          R"({"type":"Limited","exempt":{},"limited":{"nominalConcurrencyShares":-1,"lendablePercent":101,"borrowingLimitPercent":-1,"limitResponse":{"type":"Queue","queuing":{"queues":4,"handSize":5,"queueLengthLimit":-1}}}})"),
      (Texts{"spec.exempt: Forbidden: must be nil if the type is Limited",
             "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
             "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
             "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer",
             "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
             "spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)"}));
  EXPECT_EQ(
      causes(
          kLevels,
          R"({"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{"queues":10000000,"handSize":10}}}})"),
      (Texts{"spec.limited.limitResponse.queuing.handSize: Invalid value: 10: required entropy bits of deckSize "
             "10000000 and handSize 10 should not be greater than 60"}));
}

TEST_F(FlowResources, AStatusKeepsTheSpec) {
  const std::string path = kSchemas + "/probes";
  const Answer done = server_.merge(
      path + "/status",
      R"({"metadata":{"labels":{"a":"b"}},"spec":{"matchingPrecedence":77},"status":{"conditions":[{"type":"Mine","status":"True"}]}})");
  ASSERT_EQ(done.code, 200) << done.text;
  EXPECT_EQ(done.body.at({"spec", "matchingPrecedence"})->if_int64(), 2);
  EXPECT_EQ(done.body.at({"metadata", "labels"}), nullptr);
  EXPECT_EQ(server_.merge(path + "/status", R"({"status":{"conditions":[{"type":"","status":"True"}]}})").code, 422);
}

TEST_F(FlowResources, TheirNumberAndTheirWordsAreBounded) {
  for (std::size_t i = 0; i < flow::kLevelsMax - 8; ++i) {
    ASSERT_EQ(server_.post(kLevels, level_body("l" + std::to_string(i), 1)).code, 201) << i;
  }
  const Answer beyond = server_.post(kLevels, level_body("beyond", 1));
  EXPECT_EQ(beyond.code, 403);
  EXPECT_TRUE(beyond.text.contains("this server holds at most 64 prioritylevelconfigurations")) << beyond.text;
  const auto with_words = [](const std::string& name, std::size_t words) {
    std::string urls;
    for (std::size_t i = 0; i + 2 < words; ++i) urls += fmt::format("{}\"/p{}\"", i == 0 ? "" : ",", i);
    return fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"priorityLevelConfiguration":{{"name":"exempt"}},"rules":[{{"subjects":[{{"kind":"User","user":{{"name":"ann"}}}}],"nonResourceRules":[{{"verbs":["get"],"nonResourceURLs":[{}]}}]}}]}}}})",
        name, urls);
  };
  EXPECT_EQ(server_.post(kSchemas, with_words("long", flow::kSchemaWordsMax + 1)).code, 422);
  int made = 0;
  while (made < 40 && server_.post(kSchemas, with_words("w" + std::to_string(made), flow::kSchemaWordsMax)).code == 201)
    ++made;
  EXPECT_EQ(made, 15);
  ASSERT_EQ(server_.post(kSchemas, schema_body("short", "exempt", 3)).code, 201);
  server_.advance(seconds(10));
  EXPECT_EQ(flow_of(kPerson, kMaps), "short exempt");
  EXPECT_EQ(flow_of(kAdmin, kMaps), "exempt exempt");
  // A mandatory object is made again, although the server holds as many words as it may.
  ASSERT_EQ(server_.remove(kSchemas + "/catch-all").code, 200);
  EXPECT_EQ(server_.get(kSchemas + "/catch-all").code, 200);
}

}  // namespace
}  // namespace spillway::apiserver
