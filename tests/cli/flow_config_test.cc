// Goal: the changes by a --flow-config file, and that every mistake in one is reported with its place.
#include "cli/config/flow_config.h"

#include "policy/flow/built_in.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace spillway::cli {
namespace {

Result<flow::Configuration> read(const std::string& text) {
  return read_flow_config("flow.yaml", [&](const std::string& file) { return yaml::parse(file, text); });
}

std::string error_of(const std::string& text) {
  const auto found = read(text);
  return found ? "" : found.error().text();
}

constexpr std::string_view kSchema = R"(apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: batch, labels: {a: b}, uid: x}
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 700
  distinguisherMethod: {type: ByNamespace}
  rules:
  - subjects:
    - {kind: ServiceAccount, serviceAccount: {namespace: batch, name: "*"}}
    - {kind: Group, group: {name: people}}
    - {kind: User, user: {name: ann}}
    resourceRules:
    - {verbs: [list], apiGroups: [""], resources: [pods], namespaces: [a], clusterScope: true}
    nonResourceRules:
    - {verbs: ["*"], nonResourceURLs: [/debug/*]}
status: {}
)";

constexpr std::string_view kLevel = R"(apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: slow}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 7
    lendablePercent: 20
    borrowingLimitPercent: 30
    limitResponse:
      type: Queue
      queuing: {queues: 3, handSize: 2, queueLengthLimit: 9}
)";

/// The text with `from` once replaced by `to`.
std::string changed(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const std::size_t at = out.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return out.replace(at, from.size(), to);
}

std::string listed(std::string_view kind, std::initializer_list<std::string_view> objects) {
  std::string out = fmt::format("apiVersion: v1\nkind: {}\nitems:\n", kind);
  for (const std::string_view object : objects) {
    std::string text = "- ";
    for (const char c : object) {
      text += c;
      if (c == '\n') text += "  ";
    }
    text.resize(text.size() - 2);
    out += text;
  }
  return out;
}

/// A level that queues, with the numbers of kLevel.
flow::Level slow_level() {
  return {.name = "slow",
          .limit = flow::Level::Limit::kQueue,
          .shares = 7,
          .lendable_percent = 20,
          .borrowing_limit_percent = 30,
          .queues = 3,
          .queue_length = 9,
          .hand_size = 2};
}

TEST(FlowConfig, ASchemaIsAdded) {
  const auto found = read(std::string(kSchema));
  ASSERT_TRUE(found) << found.error().text();
  const flow::Configuration built_in = flow::built_in_configuration();
  EXPECT_EQ(found->schemas.size(), built_in.schemas.size() + 1);
  EXPECT_EQ(found->levels, built_in.levels);
  const auto batch = std::ranges::find(found->schemas, "batch", &flow::Schema::name);
  ASSERT_NE(batch, found->schemas.end());
  using enum flow::Subject::Kind;
  const flow::Schema want{"batch",
                          700,
                          "workload-low",
                          flow::FlowBy::kNamespace,
                          {{{{kServiceAccount, "*", "batch"}, {kGroup, "people"}, {kUser, "ann"}},
                            {{{"list"}, {""}, {"pods"}, {"a"}, true}},
                            {{{"*"}, {"/debug/*"}}}}}};
  EXPECT_EQ(*batch, want);
  EXPECT_EQ(std::next(batch)->precedence, 800) << "in order";
}

TEST(FlowConfig, AListAddsALevelAndReplacesASchema) {
  const std::string text = listed(
      "List", {changed(changed(kSchema, "name: batch,", "name: service-accounts,"), "name: workload-low", "name: slow"),
               kLevel});
  const auto found = read(text);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->schemas.size(), flow::built_in_configuration().schemas.size());
  EXPECT_EQ(std::ranges::find(found->schemas, "service-accounts", &flow::Schema::name)->level, "slow");
  EXPECT_EQ(found->levels.back(), slow_level());
}

TEST(FlowConfig, WhatIsNotSaidIsUpstreamsDefault) {
  const auto found = read(
      "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\n"
      "metadata: {name: slow}\nspec: {type: Limited, limited: {limitResponse: {type: Queue}}}\n");
  ASSERT_TRUE(found) << found.error().text();
  flow::Level want = slow_level();
  want.shares = 30;
  want.lendable_percent = 0;
  want.borrowing_limit_percent.reset();
  want.queues = 64;
  want.queue_length = 50;
  want.hand_size = 8;
  EXPECT_EQ(found->levels.back(), want);
}

TEST(FlowConfig, JsonIsReadAsWell) {
  const auto found =
      read(R"({"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"PriorityLevelConfiguration",)"
           R"("metadata":{"name":"system"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}})");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(std::ranges::find(found->levels, "system", &flow::Level::name)->limit, flow::Level::Limit::kReject);
}

TEST(FlowConfig, MistakesInASchemaAreReportedWithTheirPlace) {
  const auto wrong = [](std::string_view from, std::string_view to) { return error_of(changed(kSchema, from, to)); };
  EXPECT_EQ(wrong("matchingPrecedence: 700", "matchingPrecedense: 700"),
            "flow.yaml:6: spec[matchingPrecedense]: unknown (did you mean matchingPrecedence?)");
  EXPECT_EQ(wrong("700", "0"), "flow.yaml:6: spec[matchingPrecedence]: expected a whole number from 1 to 10000");
  EXPECT_EQ(wrong("ByNamespace", "ByHeader"),
            "flow.yaml:7: spec[distinguisherMethod][type]: expected ByUser or ByNamespace");
  EXPECT_EQ(wrong("name: workload-low", "name: gone"),
            "flow.yaml:5: spec[priorityLevelConfiguration][name]: there is no priority level \"gone\"");
  EXPECT_EQ(wrong("kind: User", "kind: Person"),
            "flow.yaml:12: spec[rules][0][subjects][2][kind]: expected User, Group or ServiceAccount");
  EXPECT_EQ(wrong("kind: User", "kind: Group"),
            "flow.yaml:12: spec[rules][0][subjects][2][user]: must not be there beside kind Group");
  EXPECT_EQ(wrong("verbs: [list]", "verbs: []"),
            "flow.yaml:14: spec[rules][0][resourceRules][0]: verbs must not be empty");
  EXPECT_EQ(wrong("namespaces: [a], clusterScope: true", "namespaces: []"),
            "flow.yaml:14: spec[rules][0][resourceRules][0]: matches nothing: namespaces must not be empty unless "
            "clusterScope is true");
  EXPECT_EQ(wrong("/debug/*", "debug"),
            "flow.yaml:16: spec[rules][0][nonResourceRules][0][nonResourceURLs]: expected a path that "
            "begins with / and has no * but /* at its end");
  EXPECT_EQ(wrong("name: batch,", "name: exempt,"), "flow.yaml:3: metadata[name]: \"exempt\" cannot be changed");
  EXPECT_EQ(wrong("kind: FlowSchema", "kind: FlowSchemas"),
            "flow.yaml:2: kind: expected FlowSchema or PriorityLevelConfiguration");
  EXPECT_EQ(wrong("k8s.io/v1", "k8s.io/v1beta3"), "flow.yaml:1: apiVersion: expected flowcontrol.apiserver.k8s.io/v1");
}

TEST(FlowConfig, MistakesInALevelAreReportedWithTheirPlace) {
  const auto wrong = [](std::string_view from, std::string_view to) { return error_of(changed(kLevel, from, to)); };
  EXPECT_EQ(wrong("Limited", "Exempt"), "flow.yaml:5: spec[type]: expected Limited");
  EXPECT_EQ(wrong("lendablePercent: 20", "lendablePercent: 101"),
            "flow.yaml:8: spec[limited][lendablePercent]: expected a whole number from 0 to 100");
  EXPECT_EQ(wrong("type: Queue", "type: Wait"),
            "flow.yaml:11: spec[limited][limitResponse][type]: expected Queue or Reject");
  EXPECT_EQ(wrong("type: Queue", "type: Reject"),
            "flow.yaml:12: spec[limited][limitResponse][queuing]: must not be there beside type Reject");
  EXPECT_EQ(wrong("handSize: 2", "handSize: 4"),
            "flow.yaml:12: spec[limited][limitResponse][queuing]: handSize must not be above queues");
  EXPECT_EQ(wrong("queues: 3", "queues: 3.5"),
            "flow.yaml:12: spec[limited][limitResponse][queuing][queues]: expected a whole number from 1 to 10000000");
  EXPECT_TRUE(
      error_of(listed("List", {kLevel, kLevel})).ends_with("items[1][metadata][name]: \"slow\" is there twice"));
}

}  // namespace
}  // namespace spillway::cli
