// Goal: which requests the audit log says something of, and how much: every kind of condition of a rule against every
// kind of request, the order of rules, files that are no policy.
#include "apiserver/audit/policy.h"
#include "apiserver/audit/policy_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

const api::UserInfo kTim{"tim@k8s.io", {}, {"humans", "developers"}};

RequestAttributes asked_for(api::Method method, std::string_view target) {
  return request_attributes(method, *api::parse_target(target));
}

struct AskedRow {
  std::string name;
  const api::UserInfo* user;
  RequestAttributes asked;
};

const std::vector<AskedRow>& requests() {
  static const std::vector<AskedRow> kRequests{
      {"namespaced", &kTim, asked_for(api::Method::kGet, "/api/v1/namespaces/default/pods/busybox")},
      {"cluster", &kTim, asked_for(api::Method::kGet, "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit")},
      {"path", &kTim, asked_for(api::Method::kGet, "/logs/kubelet.log")},
      {"subresource", &kTim, asked_for(api::Method::kGet, "/api/v1/namespaces/default/pods/busybox/log")},
      {"unknown user", nullptr, asked_for(api::Method::kGet, "/api/v1/namespaces/default/pods/busybox")},
  };
  return kRequests;
}

struct AuditRuleRow {
  std::string name;
  AuditRule rule;
  std::vector<std::string> matches;  // names of the matching requests, in order
};

std::vector<AuditRuleRow> rules() {
  const auto of = [](std::vector<AuditResources> resources) { return AuditRule{.resources = std::move(resources)}; };
  return {
      {"default", {}, {"namespaced", "cluster", "path", "subresource", "unknown user"}},
      {"create", {.verbs = {"create"}}, {}},
      {"reads", {.verbs = {"get", "list", "watch"}}, {"namespaced", "cluster", "path", "subresource", "unknown user"}},
      {"tim", {.users = {"tim@k8s.io"}}, {"namespaced", "cluster", "path", "subresource"}},
      {"another", {.users = {"bob"}}, {}},
      {"humans", {.groups = {"robots", "humans"}}, {"namespaced", "cluster", "path", "subresource"}},
      {"robots", {.groups = {"robots"}}, {}},
      {"tim as a robot", {.users = {"tim@k8s.io"}, .groups = {"robots"}}, {}},
      {"namespace", {.namespaces = {"default"}}, {"namespaced", "subresource", "unknown user"}},
      {"no namespace", {.namespaces = {""}}, {"cluster"}},
      {"pods", of({{"", {"pods"}, {}}}), {"namespaced", "unknown user"}},
      {"pods/log", of({{"", {"pods/log"}, {}}}), {"subresource"}},
      {"pods/*", of({{"", {"pods/*"}, {}}}), {"namespaced", "subresource", "unknown user"}},
      {"*/log", of({{"", {"*/log"}, {}}}), {"subresource"}},
      {"*/status", of({{"", {"*/status"}, {}}}), {}},
      {"*", of({{"", {"*"}, {}}}), {"namespaced", "subresource", "unknown user"}},
      {"core group", of({{"", {}, {}}}), {"namespaced", "subresource", "unknown user"}},
      {"rbac group", of({{"rbac.authorization.k8s.io", {}, {}}}), {"cluster"}},
      {"pods of rbac", of({{"rbac.authorization.k8s.io", {"pods"}, {}}}), {}},
      {"two groups",
       of({{"rbac.authorization.k8s.io", {"clusterroles"}, {}}, {"", {"pods/log"}, {}}}),
       {"cluster", "subresource"}},
      {"busybox", of({{"", {"pods", "pods/log"}, {"busybox"}}}), {"namespaced", "subresource", "unknown user"}},
      {"another name", of({{"", {"pods", "pods/log"}, {"nginx"}}}), {}},
      {"pods elsewhere", {.resources = {{"", {"pods"}, {}}}, .namespaces = {"kube-system"}}, {}},
      {"a path", {.paths = {"/logs/kubelet.log"}}, {"path"}},
      {"paths below", {.paths = {"/logs*"}}, {"path"}},
      {"any path", {.paths = {"*"}}, {"path"}},
      {"another path", {.paths = {"/logs", "/metrics*"}}, {}},
  };
}

TEST(AuditPolicyRules, EveryKindOfConditionIsTriedOnEveryKindOfRequest) {
  for (const AuditRuleRow& row : rules()) {
    AuditPolicy policy;
    policy.rules.push_back(row.rule);
    policy.rules.back().level = AuditLevel::kRequest;
    std::vector<std::string> matched;
    for (const AskedRow& request : requests()) {
      if (decide_audit(policy, request.user, request.asked).level != AuditLevel::kNone) matched.push_back(request.name);
    }
    EXPECT_EQ(matched, row.matches) << row.name;
  }
}

TEST(AuditPolicyRules, TheFirstThatMatchesDecidesAlsoForNothing) {
  const AuditRule none{.level = AuditLevel::kNone, .verbs = {"get"}};
  const AuditRule all{.level = AuditLevel::kMetadata};
  const auto& get = requests().front();
  EXPECT_EQ(decide_audit({.rules = {none, all}}, get.user, get.asked).level, AuditLevel::kNone);
  EXPECT_EQ(decide_audit({.rules = {all, none}}, get.user, get.asked).level, AuditLevel::kMetadata);
  EXPECT_EQ(decide_audit({}, get.user, get.asked).level, AuditLevel::kNone);
}

TEST(AuditPolicyRules, StagesOfRuleAndPolicyAreLeftOutAndTheRuleSaysWhetherOwnersAre) {
  AuditPolicy policy{.rules = {{.level = AuditLevel::kRequest}}, .omit_managed_fields = true};
  policy.omit_stages.add(AuditStage::kRequestReceived);
  policy.rules[0].omit_stages.add(AuditStage::kResponseStarted);
  const auto& get = requests().front();
  AuditDecision decision = decide_audit(policy, get.user, get.asked);
  EXPECT_TRUE(decision.omit_stages.has(AuditStage::kRequestReceived));
  EXPECT_TRUE(decision.omit_stages.has(AuditStage::kResponseStarted));
  EXPECT_FALSE(decision.omit_stages.has(AuditStage::kResponseComplete));
  EXPECT_TRUE(decision.omit_managed_fields);
  policy.rules[0].omit_managed_fields = false;
  EXPECT_FALSE(decide_audit(policy, get.user, get.asked).omit_managed_fields);
}

TEST(AuditPolicyRules, WithoutAFileWritesAndConnectionsToContainersAreRecorded) {
  const AuditPolicy policy = default_audit_policy();
  const auto level = [&](api::Method method, std::string_view target) {
    return to_string(decide_audit(policy, &kTim, asked_for(method, target)).level);
  };
  const std::string pods = "/api/v1/namespaces/default/pods";
  EXPECT_EQ(level(api::Method::kPost, pods), "Metadata");
  EXPECT_EQ(level(api::Method::kDelete, pods), "Metadata");
  EXPECT_EQ(level(api::Method::kPatch, pods + "/a/status"), "Metadata");
  EXPECT_EQ(level(api::Method::kGet, pods), "None");
  EXPECT_EQ(level(api::Method::kGet, pods + "?watch=1"), "None");
  EXPECT_EQ(level(api::Method::kGet, pods + "/a/log"), "None");
  EXPECT_EQ(level(api::Method::kGet, pods + "/a/exec?command=sh"), "Metadata");
  EXPECT_EQ(level(api::Method::kGet, pods + "/a/attach"), "Metadata");
  EXPECT_EQ(level(api::Method::kGet, "/api/v1/nodes/n/proxy/pods"), "Metadata");
  EXPECT_EQ(level(api::Method::kGet, "/api/v1/namespaces/a/pods/p:80/proxy/x"), "Metadata");
  EXPECT_EQ(level(api::Method::kGet, "/api/v1/namespaces/a/services/s/proxy/x"), "Metadata");
  EXPECT_EQ(level(api::Method::kGet, "/metrics"), "None");
  EXPECT_EQ(level(api::Method::kPut, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"), "None");
  EXPECT_EQ(level(api::Method::kPost, "/api/v1/namespaces/default/events"), "None");
  EXPECT_EQ(level(api::Method::kPost, "/apis/events.k8s.io/v1/namespaces/default/events"), "None");
}

Result<AuditPolicy> parsed(const std::string& text) {
  auto document = yaml::parse("p.yaml", text);
  if (!document) return document.error();
  return parse_audit_policy("p.yaml", *document);
}

constexpr const char* kHead = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";

TEST(AuditPolicyFile, SaysWhatUpstreamsExampleSays) {
  const auto policy = parsed(std::string(kHead) + R"(omitStages: ["RequestReceived"]
omitManagedFields: true
rules:
  - level: RequestResponse
    resources: [{group: "", resources: ["pods"]}]
  - level: Metadata
    resources: [{resources: ["pods/log", "pods/status"], resourceNames: [a]}]
    omitManagedFields: false
  - level: None
    users: ["system:kube-proxy"]
    verbs: ["watch"]
    namespaces: [kube-system, ""]
  - level: None
    userGroups: ["system:authenticated"]
    nonResourceURLs: ["/api*", /version]
    omitStages: [ResponseStarted]
)");
  ASSERT_TRUE(policy) << policy.error().text();
  AuditPolicy want{
      .rules = {{.level = AuditLevel::kRequestResponse, .resources = {{"", {"pods"}, {}}}},
                {.level = AuditLevel::kMetadata,
                 .resources = {{"", {"pods/log", "pods/status"}, {"a"}}},
                 .omit_managed_fields = false},
                {.level = AuditLevel::kNone,
                 .users = {"system:kube-proxy"},
                 .verbs = {"watch"},
                 .namespaces = {"kube-system", ""}},
                {.level = AuditLevel::kNone, .groups = {"system:authenticated"}, .paths = {"/api*", "/version"}}},
      .omit_managed_fields = true};
  want.omit_stages.add(AuditStage::kRequestReceived);
  want.rules.back().omit_stages.add(AuditStage::kResponseStarted);
  EXPECT_EQ(*policy, want);
}

TEST(AuditPolicyFile, WhatIsNoneIsRefusedWithItsLine) {
  const std::map<std::string, std::string> by_body{
      {"rule: []\n", "p.yaml:3: rule: unknown (did you mean rules?)"},
      {"rules: []\n", "p.yaml:1: rules are missing: nothing would be written down"},
      {"rules: {}\n", "p.yaml:3: rules: expected a list"},
      {"rules:\n- levl: None\n", "p.yaml:4: rules[0][levl]: unknown (did you mean level?)"},
      {"rules:\n- level: none\n", "p.yaml:4: rules[0][level]: expected None, Metadata, Request or RequestResponse"},
      {"rules:\n- verbs: [get]\n", "p.yaml:4: rules[0][level]: expected None, Metadata, Request or RequestResponse"},
      {"rules:\n- level: None\n  users: bob\n", "p.yaml:5: rules[0][users]: expected a list"},
      {"rules:\n- level: None\n  users: [1]\n", "p.yaml:5: rules[0][users][0]: expected a string"},
      {"rules:\n- level: None\n  omitStages: [Received]\n",
       "p.yaml:5: rules[0][omitStages][0]: expected RequestReceived, ResponseStarted, ResponseComplete or Panic"},
      {"rules:\n- level: None\n  omitManagedFields: maybe\n",
       "p.yaml:5: rules[0][omitManagedFields]: expected true or false"},
      {"rules:\n- level: None\n  nonResourceURLs: [api]\n",
       "p.yaml:5: rules[0][nonResourceURLs][0]: expected a path that begins with /, or *"},
      {"rules:\n- level: None\n  nonResourceURLs: [/a*b]\n",
       "p.yaml:5: rules[0][nonResourceURLs][0]: * may only be the last character of a path"},
      {"rules:\n- level: None\n  resources: [{resourceNames: [a]}]\n",
       "p.yaml:5: rules[0][resources][0]: resourceNames need at least one of resources"},
      {"rules:\n- level: None\n  resources: [{resorces: [a]}]\n",
       "p.yaml:5: rules[0][resources][0][resorces]: unknown (did you mean resources?)"},
      {"rules:\n- level: None\n  namespaces: [a]\n  nonResourceURLs: [/a]\n",
       "p.yaml:4: rules[0]: a rule is either for resources and namespaces or for nonResourceURLs"},
  };
  for (const auto& [body, want] : by_body) {
    const auto policy = parsed(kHead + body);
    ASSERT_FALSE(policy) << body;
    EXPECT_EQ(policy.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(policy.error().text(), want) << body;
  }
  EXPECT_EQ(parsed("kind: Policy\nrules: []\n").error().text(),
            "p.yaml:1: apiVersion is missing; expected audit.k8s.io/v1");
  EXPECT_EQ(parsed("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n").error().text(),
            "p.yaml:1: apiVersion: expected audit.k8s.io/v1");
  EXPECT_EQ(parsed("- a\n").error().text(), "p.yaml:1: expected a mapping");
  EXPECT_EQ(read_audit_policy("/nowhere/p.yaml").error().text(), "/nowhere/p.yaml: cannot be opened");
}

}  // namespace
}  // namespace spillway::apiserver
