// Expressions that clients make long (admission policies, rules of custom kinds, match conditions of webhooks) are
// evaluated in slices: requests of others are answered in between, and the outcome is the same.
#include "apiserver/crontabs.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace spillway::apiserver {

namespace {

/// An expression that costs more than one may: `depth` loops over `size` numbers inside each other.
std::string dear_expression(int size, int depth) {
  std::string list = "[0";
  for (int i = 1; i < size; ++i) list += fmt::format(",{}", i);
  list += "]";
  std::string text = "true";
  for (int i = 0; i < depth; ++i) text = fmt::format("{}.all(x{}, {})", list, i, text);
  return text;
}

const std::string kDearExpression = dear_expression(60, 4);
const std::string kAdmissionGroup = "/apis/admissionregistration.k8s.io/v1";

void add_dear_policy(TestServer& server) {
  const Answer made = server.post(
      kAdmissionGroup + "/validatingadmissionpolicies",
      fmt::format(R"({{"metadata":{{"name":"dear"}},"spec":{{"matchConstraints":{{"resourceRules":[{{"operations":["*"],
          "apiGroups":[""],"apiVersions":["*"],"resources":["configmaps"]}}]}},"validations":[{{"expression":"{}"}}]}}}})",
                  kDearExpression));
  ASSERT_EQ(made.code, 201) << made.text;
  const Answer bound =
      server.post(kAdmissionGroup + "/validatingadmissionpolicybindings",
                  R"({"metadata":{"name":"dear"},"spec":{"policyName":"dear","validationActions":["Deny"]}})");
  ASSERT_EQ(bound.code, 201) << bound.text;
}

/// The rule of this kind takes some thousand steps for the lists of long_numbers().
void add_dear_kind(TestServer& server) {
  const std::string_view version =
      R"x({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{
      "type":"object","properties":{"numbers":{"type":"array","maxItems":280,"items":{"type":"integer"},
      "x-kubernetes-validations":[{"rule":"self.all(a, self.all(b, a + b != 2000))"}]}}}}}}})x";
  const Answer made =
      server.post(kDefinitionsPath, definition("crontabs", "CronTab", "stable.example.com", version, R"(["ct"])"));
  ASSERT_EQ(made.code, 201) << made.text;
  server.advance(seconds(1));
}

std::string long_numbers(int last) {
  std::string list;
  for (int i = 0; i < 279; ++i) list += fmt::format("{},", i);
  return tab("long", fmt::format(R"({{"numbers":[{}{}]}})", list, last));
}

constexpr std::string_view kAnyMap = R"({"metadata":{"name":"m"},"data":{"a":"1"}})";

/// A stranger's read is answered while the write waits for its next slice.
void expect_others_are_served(TestServer& server, const TestSink& write) {
  EXPECT_FALSE(write.answered()) << "one slice is not enough";
  const auto read = server.begin(api::Method::kGet, "/api/v1/namespaces/default");
  EXPECT_TRUE(read->answered());
  EXPECT_FALSE(write.answered());
}

TEST(SlicedRules, APolicy) {
  TestServer server;
  add_dear_policy(server);
  const auto write = server.begin(api::Method::kPost, kMaps, std::string(kAnyMap));
  expect_others_are_served(server, *write);
  server.slices = 0;
  server.settle();
  ASSERT_TRUE(write->answered());
  EXPECT_EQ(write->response->status, 422);
  EXPECT_TRUE(write->response->body.contains("operation cancelled: actual cost limit exceeded"))
      << write->response->body;
  EXPECT_GT(server.slices, 3);
}

TEST(SlicedRules, TwoWritesTakeTurns) {
  TestServer server;
  add_dear_policy(server);
  const auto first = server.begin(api::Method::kPost, kMaps, std::string(kAnyMap));
  const auto second = server.begin(api::Method::kPost, kMaps, R"({"metadata":{"name":"n"}})");
  expect_others_are_served(server, *first);
  expect_others_are_served(server, *second);
  server.settle();
  ASSERT_TRUE(first->answered() && second->answered());
  EXPECT_EQ(first->response->status, 422);
  EXPECT_EQ(second->response->status, 422);
}

TEST(SlicedRules, TheRulesOfACustomKind) {
  TestServer server;
  add_dear_kind(server);
  const auto good = server.begin(api::Method::kPost, kTabs, long_numbers(1));
  expect_others_are_served(server, *good);
  server.settle();
  ASSERT_TRUE(good->answered());
  EXPECT_EQ(good->response->status, 201) << good->response->body;
  const auto bad = server.begin(api::Method::kPut, kTabs + "/long", long_numbers(1000));
  expect_others_are_served(server, *bad);
  // The next update of the object waits for its turn, and finds what the one before has left.
  const auto next = server.begin(api::Method::kPatch, kTabs + "/long", R"({"metadata":{"labels":{"a":"b"}}})",
                                 {{"content-type", "application/merge-patch+json"}});
  server.settle();
  ASSERT_TRUE(bad->answered() && next->answered());
  EXPECT_EQ(bad->response->status, 422) << bad->response->body;
  EXPECT_TRUE(bad->response->body.contains("failed rule: self.all(a, self.all(b, a + b != 2000))"));
  EXPECT_EQ(next->response->status, 200) << next->response->body;
}

/// The kind goes while its rules are evaluated: the write ends without what is gone.
TEST(SlicedRules, AKindThatGoesMeanwhile) {
  TestServer server;
  add_dear_kind(server);
  const auto write = server.begin(api::Method::kPost, kTabs, long_numbers(1));
  EXPECT_FALSE(write->answered());
  const auto removal = server.begin(api::Method::kDelete, kDefinitionsPath + "/crontabs.stable.example.com");
  server.settle();
  server.advance(seconds(30));
  ASSERT_TRUE(write->answered() && removal->answered());
  EXPECT_EQ(removal->response->status, 200);
  EXPECT_EQ(server.get(kTabs).code, 404);
}

TEST(SlicedRules, TheMatchConditionsOfAWebhook) {
  TestServer server;
  const Answer made =
      server.post(kAdmissionGroup + "/validatingwebhookconfigurations",
                  fmt::format(R"({{"metadata":{{"name":"w"}},"webhooks":[{{"name":"w.example.com","sideEffects":"None",
          "admissionReviewVersions":["v1"],"clientConfig":{{"url":"https://w.example.com"}},
          "rules":[{{"operations":["*"],"apiGroups":[""],"apiVersions":["*"],"resources":["configmaps"]}}],
          "matchConditions":[{{"name":"dear","expression":"{}"}}]}}]}})",
                              kDearExpression));
  ASSERT_EQ(made.code, 201) << made.text;
  const auto write = server.begin(api::Method::kPost, kMaps, std::string(kAnyMap));
  expect_others_are_served(server, *write);
  server.settle();
  ASSERT_TRUE(write->answered());
  EXPECT_EQ(write->response->status, 403) << write->response->body;
  EXPECT_TRUE(server.webhooks.asked.empty());
}

/// An evaluation that has begun runs to its end when the server goes: its memory is given back, and nothing is called.
TEST(SlicedRules, AServerThatEndsMeanwhile) {
  TestServer server;
  add_dear_policy(server);
  const auto write = server.begin(api::Method::kPost, kMaps, std::string(kAnyMap));
  EXPECT_FALSE(write->answered());
  server.restart();
  EXPECT_EQ(server.get("/api/v1/namespaces/default").code, 200);
  EXPECT_EQ(server.get(kMaps + "/m").code, 404);
}

}  // namespace
}  // namespace spillway::apiserver
