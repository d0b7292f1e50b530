// Expressions that clients make long (admission policies, rules of custom kinds, match conditions of webhooks) are
// compiled and evaluated in slices: requests of others are answered in between, and the outcome is the same.
#include "apiserver/crontabs.h"
#include "apiserver/read/compilations.h"
#include "apiserver/server_fixture.h"
#include "apiserver/shared_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

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

/// Adds a kind whose rule takes some thousand steps for the lists of long_numbers().
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
  server.run_until_idle();
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
  server.run_until_idle();
  ASSERT_TRUE(first->answered() && second->answered());
  EXPECT_EQ(first->response->status, 422);
  EXPECT_EQ(second->response->status, 422);
}

TEST(SlicedRules, TheRulesOfACustomKind) {
  TestServer server;
  add_dear_kind(server);
  const auto good = server.begin(api::Method::kPost, kTabs, long_numbers(1));
  expect_others_are_served(server, *good);
  server.run_until_idle();
  ASSERT_TRUE(good->answered());
  EXPECT_EQ(good->response->status, 201) << good->response->body;
  const auto bad = server.begin(api::Method::kPut, kTabs + "/long", long_numbers(1000));
  expect_others_are_served(server, *bad);
  // The next update of the object waits for its turn, and finds what the one before has left.
  const auto next = server.begin(api::Method::kPatch, kTabs + "/long", R"({"metadata":{"labels":{"a":"b"}}})",
                                 {{"content-type", "application/merge-patch+json"}});
  server.run_until_idle();
  ASSERT_TRUE(bad->answered() && next->answered());
  EXPECT_EQ(bad->response->status, 422) << bad->response->body;
  EXPECT_TRUE(bad->response->body.contains("failed rule: self.all(a, self.all(b, a + b != 2000))"));
  EXPECT_EQ(next->response->status, 200) << next->response->body;
}

/// The kind is removed while its rules are evaluated: the write ends with an error.
TEST(SlicedRules, AKindThatGoesMeanwhile) {
  TestServer server;
  add_dear_kind(server);
  const auto write = server.begin(api::Method::kPost, kTabs, long_numbers(1));
  EXPECT_FALSE(write->answered());
  const auto removal = server.begin(api::Method::kDelete, kDefinitionsPath + "/crontabs.stable.example.com");
  server.run_until_idle();
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
  server.run_until_idle();
  ASSERT_TRUE(write->answered());
  EXPECT_EQ(write->response->status, 403) << write->response->body;
  EXPECT_TRUE(server.webhooks.asked.empty());
}

/// A policy for ConfigMaps of `count` validations, the last of which refuses all with `message`.
std::string long_policy(std::string_view name, int count, std::string_view message) {
  std::string validations;
  for (int i = 1; i < count; ++i) validations += fmt::format(R"({{"expression":"object.metadata.name != 'x{}'"}},)", i);
  validations += fmt::format(R"({{"expression":"false","message":"{}"}})", message);
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"matchConstraints":{{"resourceRules":[{{"operations":["*"],
      "apiGroups":[""],"apiVersions":["*"],"resources":["configmaps"]}}]}},"validations":[{}]}}}})",
      name, validations);
}

const std::string kPoliciesPath = kAdmissionGroup + "/validatingadmissionpolicies";
constexpr int kManyValidations = 300;

void bind_policy(TestServer& server, std::string_view name) {
  const Answer bound = server.post(
      kAdmissionGroup + "/validatingadmissionpolicybindings",
      fmt::format(R"({{"metadata":{{"name":"{0}"}},"spec":{{"policyName":"{0}","validationActions":["Deny"]}}}})",
                  name));
  ASSERT_EQ(bound.code, 201) << bound.text;
}

std::shared_ptr<TestSink> begin_change(TestServer& server, const std::string& name, std::string policy) {
  return server.begin(api::Method::kPatch, kPoliciesPath + "/" + name, std::move(policy),
                      {{"content-type", "application/merge-patch+json"}});
}

/// The message with which a new ConfigMap is refused; empty: it is not refused.
std::string refusal_of(TestServer& server) {
  const Answer made = server.post(kMaps + "?dryRun=All", std::string(kAnyMap));
  return made.code == 201 ? "" : made.string_at({"message"});
}

/// Compilation of a long policy: at its write, and again when it takes effect.
TEST(SlicedRules, ALongPolicyIsCompiledInSlices) {
  TestServer server;
  bind_policy(server, "long");
  const auto write = server.begin(api::Method::kPost, kPoliciesPath, long_policy("long", kManyValidations, "first"));
  expect_others_are_served(server, *write);
  server.slices = 0;
  server.run_until_idle();
  ASSERT_TRUE(write->answered());
  EXPECT_EQ(write->response->status, 201) << write->response->body;
  EXPECT_GT(server.slices, 18) << "a dozen for each of the two compilations";
  EXPECT_TRUE(refusal_of(server).contains("first"));
}

TEST(SlicedRules, ALongPolicyThatDoesNotCompileIsRefusedWithEachError) {
  TestServer server;
  std::string policy = long_policy("long", kManyValidations, "first");
  policy.replace(policy.find("object.metadata"), 6, "nobody");
  policy.replace(policy.rfind("object.metadata"), 6, "nobody");
  const auto write = server.begin(api::Method::kPost, kPoliciesPath, policy);
  expect_others_are_served(server, *write);
  server.run_until_idle();
  ASSERT_TRUE(write->answered());
  EXPECT_EQ(write->response->status, 422);
  EXPECT_TRUE(write->response->body.contains("spec.validations[0].expression")) << write->response->body;
  EXPECT_TRUE(write->response->body.contains("spec.validations[298].expression")) << write->response->body;
  EXPECT_EQ(server.get(kPoliciesPath + "/long").code, 404);
}

/// Compilations that a test ends.
class OneAtATime : public ::testing::Test {
 protected:
  void add(const std::string& subject) {
    compilations.add(subject, [this, subject](Compilations::Then ended) {
      started.push_back(subject);
      end = std::move(ended);
    });
  }

  void end_and_turn() {
    const std::size_t before = started.size();
    std::exchange(end, nullptr)();
    EXPECT_EQ(started.size(), before) << "the next one has a turn of its own";
    timers.run_due(now.mono);
  }

  Now now{Instant(seconds(1)), WallTime(seconds(1))};
  TimerQueue timers;
  Compilations compilations{timers, now};
  std::vector<std::string> started;
  Compilations::Then end;
};

/// A write waits for the compilations that were added before it, and for none that is added later.
TEST_F(OneAtATime, AWriteWaitsForTheCompilationsBeforeIt) {
  std::string done;
  compilations.when_done([&] { done += "a"; });
  EXPECT_EQ(done, "a") << "none runs";
  add("first");
  compilations.when_done([&] { done += "b"; });
  add("second");
  compilations.when_done([&] { done += "c"; });
  add("third");
  EXPECT_EQ(started, std::vector<std::string>{"first"});
  EXPECT_EQ(done, "a");
  end_and_turn();
  EXPECT_EQ(done, "ab");
  end_and_turn();
  EXPECT_EQ(done, "abc");
  end_and_turn();
  EXPECT_EQ(done, "abc");
  EXPECT_EQ(started, (std::vector<std::string>{"first", "second", "third"}));
}

/// However often an object changes, it waits once: its compilation begins with what it is then.
TEST_F(OneAtATime, AnObjectWaitsOnce) {
  add("long");
  for (int i = 0; i < 100; ++i) {
    add("long");
    add("other");
  }
  EXPECT_EQ(compilations.waiting(), 2U);
  std::string done;
  compilations.when_done([&] { done += "w"; });
  end_and_turn();
  EXPECT_EQ(started, (std::vector<std::string>{"long", "long"})) << "it changed after its first one had begun";
  end_and_turn();
  EXPECT_EQ(done, "") << "its object may be the other one";
  end_and_turn();
  EXPECT_EQ(done, "w");
  EXPECT_EQ(compilations.waiting(), 0U);
  EXPECT_EQ(started.size(), 3U);
}

/// A short version that is written while a long one is compiled takes effect, and is not replaced when that ends.
TEST(SlicedRules, TheLastVersionOfAPolicyTakesEffect) {
  TestServer server;
  bind_policy(server, "p");
  ASSERT_EQ(server.post(kPoliciesPath, long_policy("p", 1, "first")).code, 201);
  EXPECT_TRUE(refusal_of(server).contains("first"));
  // The second update waits for the turn of the first one; the event of the first one compiles for as long as that.
  const auto longer = begin_change(server, "p", long_policy("p", kManyValidations, "second"));
  const auto shorter = begin_change(server, "p", long_policy("p", 1, "third"));
  server.run_until_idle();
  ASSERT_TRUE(longer->answered() && shorter->answered());
  EXPECT_EQ(longer->response->status, 200) << longer->response->body;
  EXPECT_EQ(shorter->response->status, 200) << shorter->response->body;
  EXPECT_TRUE(refusal_of(server).contains("third"));
  ASSERT_EQ(server.remove(kPoliciesPath + "/p").code, 200);
  EXPECT_EQ(refusal_of(server), "");
}

/// The policy goes while it is compiled: it takes no effect afterwards.
TEST(SlicedRules, APolicyThatGoesMeanwhile) {
  TestServer server;
  bind_policy(server, "long");
  ASSERT_EQ(server.post(kPoliciesPath, long_policy("long", 1, "first")).code, 201);
  const auto longer = begin_change(server, "long", long_policy("long", kManyValidations, "second"));
  const auto removal = server.begin(api::Method::kDelete, kPoliciesPath + "/long");
  server.run_until_idle();
  ASSERT_TRUE(longer->answered() && removal->answered());
  EXPECT_EQ(removal->response->status, 200) << removal->response->body;
  EXPECT_EQ(refusal_of(server), "");
}

const std::string kWebhooksPath = kAdmissionGroup + "/validatingwebhookconfigurations";

/// A configuration of a hundred webhooks for ConfigMaps; `or_else`: a condition with which they are asked.
std::string many_webhooks(std::string_view or_else) {
  std::string webhooks;
  for (int i = 0; i < 100; ++i) {
    webhooks += fmt::format(R"({}{{"name":"w{}.example.com","sideEffects":"None","admissionReviewVersions":["v1"],
        "clientConfig":{{"url":"https://w.example.com"}},"rules":[{{"operations":["*"],"apiGroups":[""],"apiVersions":["*"],
        "resources":["configmaps"]}}],"matchConditions":[{{"name":"c","expression":"object.metadata.name == 'x{}' || {}"}}]}})",
                            i == 0 ? "" : ",", i, i, or_else);
  }
  return fmt::format(R"({{"metadata":{{"name":"w"}},"webhooks":[{}]}})", webhooks);
}

TEST(SlicedRules, LongMatchConditionsOfWebhooksAreCompiledInSlices) {
  TestServer server;
  const auto write = server.begin(api::Method::kPost, kWebhooksPath, many_webhooks("false"));
  expect_others_are_served(server, *write);
  server.run_until_idle();
  ASSERT_TRUE(write->answered());
  EXPECT_EQ(write->response->status, 201) << write->response->body;
  EXPECT_EQ(server.post(kMaps, std::string(kAnyMap)).code, 201);
  EXPECT_TRUE(server.webhooks.asked.empty());
}

/// Policies that are stored at the start: compiled in slices, and no write passes before all of them are in effect. The
/// last one that is compiled refuses it.
TEST(SlicedRules, StoredPoliciesAreCompiledInSlicesAtTheStart) {
  TestServer server;
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_EQ(server.post(kPoliciesPath, long_policy(name, kManyValidations, "refused")).code, 201);
  }
  bind_policy(server, "c");
  server.slices = 0;
  server.begin_restart();
  int refusals = 0;
  std::shared_ptr<TestSink> write;
  do {
    if (++refusals == 10) {
      const auto ready = server.begin(api::Method::kGet, "/readyz");
      ASSERT_TRUE(ready->answered());
      EXPECT_EQ(ready->response->status, 500);
    }
    write = server.begin(api::Method::kPost, kMaps + "?dryRun=All", std::string(kAnyMap));
  } while (write->answered() && write->response->status == 503 && server.run_turn());
  server.run_until_idle();
  EXPECT_GT(server.slices, 27) << "nine for each of the three";
  EXPECT_GT(refusals, 27) << "requests are answered in between";
  ASSERT_TRUE(write->answered());
  EXPECT_EQ(write->response->status, 422);
  EXPECT_TRUE(write->response->body.contains("refused")) << write->response->body;
}

TEST(SlicedRules, StoredWebhooksAreCompiledInSlicesAtTheStart) {
  TestServer server;
  ASSERT_EQ(server.post(kWebhooksPath, many_webhooks("true")).code, 201);
  server.slices = 0;
  server.begin_restart();
  int answers = 0;
  while (server.run_turn()) {
    const auto write = server.begin(api::Method::kPost, kMaps + "?dryRun=All", std::string(kAnyMap));
    if (!write->answered()) break;
    EXPECT_EQ(write->response->status, 503) << write->response->body;
    ++answers;
  }
  server.run_until_idle();
  EXPECT_GT(answers, 2);
  EXPECT_FALSE(server.webhooks.asked.empty()) << "the write that was not refused waits for them";
}

/// Another server of the store writes a long policy again and again: its versions are not compiled beside each other.
TEST(SlicedRules, ManyVersionsFromAnotherServerAreCompiledOnce) {
  SharedServers all;
  SharedServers::Server& a = all.add();
  SharedServers::Server& b = all.add();
  const auto write = [&](int version) {
    Json policy = *api::parse_json(long_policy("p", kManyValidations, fmt::format("version {}", version)));
    if (version == 0) return all.call(a, api::Method::kPost, kPoliciesPath, api::to_text(policy)).code;
    const Answer last = all.call(a, api::Method::kGet, kPoliciesPath + "/p");
    policy["metadata"]["resourceVersion"] = last.string_at({"metadata", "resourceVersion"});
    return all.call(a, api::Method::kPut, kPoliciesPath + "/p", api::to_text(policy)).code;
  };
  ASSERT_EQ(all.call(a, api::Method::kPost, kAdmissionGroup + "/validatingadmissionpolicybindings",
                     R"({"metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}})")
                .code,
            201);
  b.view.late = true;
  ASSERT_EQ(write(0), 201);
  std::size_t before = b.wakeups;
  b.view.deliver_all();
  all.run_until_idle();
  const std::size_t one = b.wakeups - before;
  EXPECT_GT(one, 5U);
  b.view.late = true;
  for (int version = 1; version <= 20; ++version) ASSERT_EQ(write(version), 200);
  before = b.wakeups;
  b.view.deliver_all();
  all.run_until_idle();
  EXPECT_LE(b.wakeups - before, 2 * one + 2) << "the first one and the last one";
  const Answer refused = all.call(b, api::Method::kPost, kMaps, std::string(kAnyMap));
  EXPECT_EQ(refused.code, 422);
  EXPECT_TRUE(refused.text.contains("version 20")) << refused.text;
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
