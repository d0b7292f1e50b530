// MutatingWebhookConfigurations and ValidatingWebhookConfigurations as the server keeps them.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

const std::string kGroup = "/apis/admissionregistration.k8s.io/v1";
const std::string kMutating = kGroup + "/mutatingwebhookconfigurations";
const std::string kValidating = kGroup + "/validatingwebhookconfigurations";

constexpr std::string_view kGood =
    R"("name":"a.hooks.dev","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://h/p"})";

/// The good webhook with some members in place of its own, or more of them.
std::string with(std::string_view members) {
  const auto base = api::parse_json(fmt::format("{{{}}}", kGood));
  const auto more = api::parse_json(fmt::format("{{{}}}", members));
  EXPECT_TRUE(base && more) << members;
  api::Json webhook = *base;
  for (const auto& [key, value] : *std::as_const(*more).if_object()) {
    if (value.is_null()) {
      webhook.erase({key});
    } else {
      webhook[key] = value;
    }
  }
  return api::to_text(api::Json::object(
      {{"metadata", api::Json::object({{"name", "c"}})}, {"webhooks", api::Json::array({std::move(webhook)})}}));
}

std::string rule(std::string_view members) {
  return with(fmt::format(R"("rules":[{{{}}}])", members));
}

TEST(WebhookConfigurations, Defaults) {
  TestServer server;
  const std::string sent =
      with(R"("rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}],)"
           R"("clientConfig":{"service":{"namespace":"n","name":"s"}})");
  const Answer made = server.post(kMutating, sent);
  ASSERT_EQ(made.code, 201) << made.text;
  const api::Json& webhook = made.body.find("webhooks")->if_array()->front();
  EXPECT_EQ(api::to_text(webhook),
            R"({"admissionReviewVersions":["v1"],"clientConfig":{"service":{"name":"s","namespace":"n","port":443}},)"
            R"("failurePolicy":"Fail","matchPolicy":"Equivalent","name":"a.hooks.dev","namespaceSelector":{},)"
            R"("objectSelector":{},"reinvocationPolicy":"Never","rules":[{"apiGroups":[""],"apiVersions":["v1"],)"
            R"("operations":["CREATE"],"resources":["pods"],"scope":"*"}],"sideEffects":"None","timeoutSeconds":10})");
  EXPECT_EQ(made.body.at({"metadata", "generation"})->if_int64(), 1);
  const Answer other = server.post(kValidating, sent);
  ASSERT_EQ(other.code, 201);
  EXPECT_EQ(other.body.find("webhooks")->if_array()->front().find("reinvocationPolicy"), nullptr);
  const Answer changed =
      server.json_patch(kMutating + "/c", R"([{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":3}])");
  ASSERT_EQ(changed.code, 200) << changed.text;
  EXPECT_EQ(changed.body.at({"metadata", "generation"})->if_int64(), 2);
}

TEST(WebhookConfigurations, Tables) {
  TestServer server;
  ASSERT_EQ(server.post(kValidating, with("")).code, 201);
  const Answer table = server.get(kValidating, "application/json;as=Table;g=meta.k8s.io;v=v1");
  ASSERT_EQ(table.code, 200);
  EXPECT_NE(table.text.find(R"("cells":["c",1,"0s"])"), std::string::npos) << table.text;
  EXPECT_NE(table.text.find(R"("name":"Webhooks")"), std::string::npos);
}

struct Wrong {
  std::string body;
  std::string field;
  std::string message;
};

TEST(WebhookConfigurations, WhatIsRefused) {
  constexpr std::string_view kRule =
      R"("operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"])";
  const std::string clients = "webhooks[0].clientConfig";
  const std::vector<Wrong> rows{
      {with(R"("name":"short.name")"), "webhooks[0].name", "should be a domain with at least three segments"},
      {with(R"("name":"")"), "webhooks[0].name", "Required value"},
      {with(R"("name":"A.b.c")"), "webhooks[0].name", "a lowercase RFC 1123 subdomain"},
      {with(R"("sideEffects":null)"), "webhooks[0].sideEffects", "must specify one of None, NoneOnDryRun"},
      {with(R"("sideEffects":"Some")"), "webhooks[0].sideEffects", R"(supported values: "None", "NoneOnDryRun")"},
      {with(R"("admissionReviewVersions":[])"), "webhooks[0].admissionReviewVersions", "must specify one of v1"},
      {with(R"("admissionReviewVersions":["v1beta1"])"), "webhooks[0].admissionReviewVersions",
       "must include at least one of v1"},
      {with(R"("admissionReviewVersions":["v1","v1"])"), "webhooks[0].admissionReviewVersions[1]", "duplicate version"},
      {with(R"("timeoutSeconds":0)"), "webhooks[0].timeoutSeconds", "must be between 1 and 30 seconds"},
      {with(R"("timeoutSeconds":31)"), "webhooks[0].timeoutSeconds", "must be between 1 and 30 seconds"},
      {with(R"("failurePolicy":"Perhaps")"), "webhooks[0].failurePolicy", R"(supported values: "Fail", "Ignore")"},
      {with(R"("matchPolicy":"Perhaps")"), "webhooks[0].matchPolicy", R"("Equivalent", "Exact")"},
      {with(R"("reinvocationPolicy":"Perhaps")"), "webhooks[0].reinvocationPolicy", R"("IfNeeded", "Never")"},
      {with(R"("matchConditions":[{"name":"a","expression":"foo"}])"), "webhooks[0].matchConditions[0].expression",
       "undeclared reference to 'foo' (in container '')"},
      {with(R"("matchConditions":[{"name":"a","expression":"1"}])"), "webhooks[0].matchConditions[0].expression",
       "must evaluate to bool"},
      {with(R"("matchConditions":[{"name":"a","expression":" "}])"), "webhooks[0].matchConditions[0].expression",
       "Required value"},
      {with(R"("matchConditions":[{"name":"","expression":"true"}])"), "webhooks[0].matchConditions[0].name",
       "Required value"},
      {with(R"("matchConditions":[{"name":"a b","expression":"true"}])"), "webhooks[0].matchConditions[0].name",
       "name part must consist of"},
      {with(R"("matchConditions":[{"name":"a","expression":"true"},{"name":"a","expression":"true"}])"),
       "webhooks[0].matchConditions[1].name", "Duplicate value"},
      {with(R"("objectSelector":{"matchExpressions":[{"key":"a","operator":"Perhaps"}]})"),
       "webhooks[0].objectSelector.matchExpressions[0].operator", "not a valid selector operator"},
      {with(R"("clientConfig":{})"), clients, "exactly one of url or service is required"},
      {with(R"("clientConfig":{"url":"https://h","service":{"name":"s","namespace":"n"}})"), clients,
       "exactly one of url or service is required"},
      {with(R"("clientConfig":{"url":"http://h"})"), clients + ".url", "'https' is the only allowed URL scheme"},
      {with(R"("clientConfig":{"url":"https://u:p@h"})"), clients + ".url", "user information is not permitted"},
      {with(R"("clientConfig":{"url":"https://h?a=b"})"), clients + ".url", "query parameters are not permitted"},
      {with(R"("clientConfig":{"url":"https://h#a"})"), clients + ".url", "fragments are not permitted"},
      {with(R"("clientConfig":{"url":"https:///p"})"), clients + ".url", "host must be specified"},
      {with(R"("clientConfig":{"url":"https://h/a b"})"), clients + ".url", "url must be a valid URL"},
      {with(R"("clientConfig":{"url":"https://h/\r\nX: y"})"), clients + ".url", "url must be a valid URL"},
      {with(R"("clientConfig":{"service":{"namespace":"n"}})"), clients + ".service.name", "service name is required"},
      {with(R"("clientConfig":{"service":{"name":"n"}})"), clients + ".service.namespace",
       "service namespace is required"},
      {with(R"("clientConfig":{"service":{"name":"s","namespace":"n","port":70000}})"), clients + ".service.port",
       "port is not valid"},
      {with(R"("clientConfig":{"service":{"name":"s","namespace":"n","path":"a"}})"), clients + ".service.path",
       "must start with a '/'"},
      {with(R"("clientConfig":{"service":{"name":"s","namespace":"n","path":"/a//b"}})"), clients + ".service.path",
       "segment[1] may not be empty"},
      {with(R"("clientConfig":{"service":{"name":"s","namespace":"n","path":"/a?b=c"}})"), clients + ".service.path",
       "segment[0]: "},
      {rule(R"("apiGroups":[""],"apiVersions":["v1"],"resources":["pods"])"), "webhooks[0].rules[0].operations",
       "Required value"},
      {rule(R"("operations":["*","CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"])"),
       "webhooks[0].rules[0].operations", "must not specify other operations"},
      {rule(R"("operations":["PATCH"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"])"),
       "webhooks[0].rules[0].operations[0]", R"("CONNECT", "CREATE")"},
      {rule(R"("operations":["*"],"apiGroups":["","*"],"apiVersions":["v1"],"resources":["pods"])"),
       "webhooks[0].rules[0].apiGroups", "must not specify other API groups"},
      {rule(R"("operations":["*"],"apiGroups":[""],"apiVersions":[""],"resources":["pods"])"),
       "webhooks[0].rules[0].apiVersions[0]", "Required value"},
      {rule(R"("operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*/*","pods"])"),
       "webhooks[0].rules[0].resources", "if '*/*' is present"},
      {rule(R"("operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*","pods"])"),
       "webhooks[0].rules[0].resources", "if '*' is present"},
      {rule(R"("operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods/*","pods/log"])"),
       "webhooks[0].rules[0].resources[1]", "if 'pods/*' is present, must not specify pods/log"},
      {rule(R"("operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*/log","pods/log"])"),
       "webhooks[0].rules[0].resources[1]", "if '*/log' is present, must not specify pods/log"},
      {rule(fmt::format(R"({},"scope":"World")", kRule)), "webhooks[0].rules[0].scope",
       R"("*", "Cluster", "Namespaced")"},
      {fmt::format(R"({{"metadata":{{"name":"c"}},"webhooks":[{{{0}}},{{{0}}}]}})", kGood), "webhooks[1].name",
       "Duplicate value"},
  };
  TestServer server;
  for (const Wrong& row : rows) {
    const Answer answer = server.post(kMutating, row.body);
    EXPECT_EQ(answer.code, 422) << row.body << "\n" << answer.text;
    const std::string message = answer.string_at({"message"});
    EXPECT_NE(message.find(row.field + ": "), std::string::npos) << row.field << "\n" << message;
    EXPECT_NE(message.find(row.message), std::string::npos) << row.message << "\n" << message;
  }
}

TEST(WebhookConfigurations, WhatIsTaken) {
  TestServer server;
  int count = 0;
  for (const std::string_view client :
       {R"({"url":"https://h"})", R"({"url":"https://h:8443/a/b"})", R"({"url":"https://[::1]:8443/"})",
        R"({"service":{"name":"s","namespace":"n","path":"/a/b/"}})",
        R"({"service":{"name":"s","namespace":"n","path":"/"}})"}) {
    std::string body = with(fmt::format(R"("clientConfig":{})", client));
    body.replace(body.find(R"("name":"c")"), 10, fmt::format(R"("name":"c{}")", ++count));
    const Answer answer = server.post(kMutating, body);
    EXPECT_EQ(answer.code, 201) << client << "\n" << answer.text;
  }
  EXPECT_EQ(server.post(kMutating, R"({"metadata":{"name":"none"}})").code, 201);
}

TEST(WebhookConfigurations, AnUpdateNamesTheVersionItIsBasedOn) {
  TestServer server;
  ASSERT_EQ(server.post(kMutating, with("")).code, 201);
  EXPECT_EQ(server.put(kMutating + "/c", with("")).code, 422);
  EXPECT_EQ(server.merge(kMutating + "/c", R"({"webhooks":[]})").code, 200);
}

}  // namespace

}  // namespace spillway::apiserver
