// Matching of webhooks and requests: every combination of a small world of rules against a small world of requests,
// held against the sentences of the documentation, written out once more.
#include "policy/webhooks/match.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace spillway::webhooks {

namespace {

using api::Json;
using Texts = std::vector<std::string>;

constexpr std::array kOperations{Operation::kCreate, Operation::kUpdate, Operation::kDelete, Operation::kConnect};

struct World {
  std::string_view group;
  std::string_view version;
  std::string_view resource;
  std::string_view subresource;
  std::string_view ns;
};

constexpr std::array kRequests{World{"", "v1", "pods", "", "shop"},
                               World{"", "v1", "pods", "status", "shop"},
                               World{"", "v1", "nodes", "", ""},
                               World{"", "v1", "namespaces", "", "shop"},
                               World{"apps", "v1", "deployments", "", "a"},
                               World{"apps", "v1", "deployments", "scale", "a"},
                               World{"batch", "v1beta1", "jobs", "", "shop"}};

/// True if the word is covered by "*" or itself; written without the helper of the code under test.
bool covers(std::string_view written, std::string_view word) {
  return written.size() == 1 && written[0] == '*' ? true : written == word;
}

bool expected_resource(const std::string& written, const World& request) {
  // The table of the documentation: "*" all resources but no subresources, "*/*" everything, "pods" only pods,
  // "pods/*" pods and all below them, "*/scale" all scales.
  if (written == "*/*") return true;
  if (written == "*") return request.subresource.empty();
  const std::size_t slash = written.find('/');
  if (slash == std::string::npos) return written == request.resource && request.subresource.empty();
  const std::string left = written.substr(0, slash);
  const std::string right = written.substr(slash + 1);
  if (right == "*") return left == request.resource;
  return covers(left, request.resource) && right == request.subresource;
}

bool expected_scope(Scope scope, const World& request) {
  if (scope == Scope::kAny) return true;
  const bool cluster = request.ns.empty() || request.resource == "namespaces";
  return scope == Scope::kCluster ? cluster : !cluster;
}

TEST(WebhookMatch, EveryRuleAgainstEveryRequest) {
  const std::array<Texts, 5> operations{Texts{"*"}, {"CREATE"}, {"UPDATE", "DELETE"}, {"CONNECT"}, {}};
  const std::array<Texts, 4> groups{Texts{""}, {"apps"}, {"*"}, {"", "batch"}};
  const std::array<Texts, 3> versions{Texts{"v1"}, {"*"}, {"v1beta1", "v2"}};
  const std::array<Texts, 9> resources{
      Texts{"pods"},  {"*"},   {"*/*"}, {"pods/*"}, {"pods/status"}, {"*/scale"}, {"deployments/scale", "nodes"},
      {"namespaces"}, {"jobs"}};
  std::size_t matched = 0;
  std::size_t asked = 0;
  for (const Texts& operation_list : operations) {
    for (const Texts& group_list : groups) {
      for (const Texts& version_list : versions) {
        for (const Texts& resource_list : resources) {
          for (const Scope scope : {Scope::kAny, Scope::kCluster, Scope::kNamespaced}) {
            const Rule rule{operation_list, group_list, version_list, resource_list, scope};
            for (const World& request : kRequests) {
              for (const Operation operation : kOperations) {
                const ResourceName name{request.group, request.version, request.resource};
                const Subject subject{operation, request.subresource, request.ns, {}, {&name, 1}};
                const auto any = [](const Texts& list, auto check) { return std::ranges::any_of(list, check); };
                const bool want = any(operation_list, [&](auto& one) { return covers(one, to_string(operation)); }) &&
                                  any(group_list, [&](auto& one) { return covers(one, request.group); }) &&
                                  any(version_list, [&](auto& one) { return covers(one, request.version); }) &&
                                  any(resource_list, [&](auto& one) { return expected_resource(one, request); }) &&
                                  expected_scope(scope, request);
                ++asked;
                matched += want ? 1 : 0;
                ASSERT_EQ(fits(rule, subject, name), want) << fmt::format(
                    "{} {}/{}/{} {} in \"{}\" against {} {} {} {}", to_string(operation), request.group,
                    request.version, request.resource, request.subresource, request.ns, fmt::join(operation_list, ","),
                    fmt::join(group_list, ","), fmt::join(version_list, ","), fmt::join(resource_list, ","));
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(asked, 5U * 4 * 3 * 9 * 3 * 7 * 4);
  EXPECT_GT(matched, 1000U);  // the test must not consist of mismatches
}

Webhook webhook_with(std::string_view more) {
  const auto parsed = api::parse_json(fmt::format(
      R"({{"metadata":{{"name":"c"}},"webhooks":[{{"name":"a.b.c","sideEffects":"None","rules":[{{"operations":["*"],)"
      R"("apiGroups":["events.k8s.io"],"apiVersions":["v1"],"resources":["events"],"scope":"*"}}]{}}}]}})",
      more));
  EXPECT_TRUE(parsed) << more;
  return webhooks_of(Phase::kMutating, *parsed).front();
}

TEST(WebhookMatch, AnEquivalentResourceCountsUnlessTheMatchIsToBeExact) {
  const std::array names{ResourceName{"", "v1", "events"}, ResourceName{"events.k8s.io", "v1", "events"}};
  const Subject subject{Operation::kCreate, "", "shop", {}, names};
  EXPECT_EQ(matched_name(webhook_with(""), subject), &names[1]);
  EXPECT_EQ(matched_name(webhook_with(R"(,"matchPolicy":"Equivalent")"), subject), &names[1]);
  EXPECT_EQ(matched_name(webhook_with(R"(,"matchPolicy":"Exact")"), subject), nullptr);
  const std::array other{ResourceName{"events.k8s.io", "v1", "events"}, ResourceName{"", "v1", "events"}};
  EXPECT_EQ(matched_name(webhook_with(R"(,"matchPolicy":"Exact")"), {Operation::kCreate, "", "shop", {}, other}),
            &other[0]);
}

TEST(WebhookMatch, ConfigurationsOfWebhooksAreExempt) {
  constexpr std::string_view kGroup = "admissionregistration.k8s.io";
  EXPECT_TRUE(is_exempt({kGroup, "v1", "mutatingwebhookconfigurations"}));
  EXPECT_TRUE(is_exempt({kGroup, "v1", "validatingwebhookconfigurations"}));
  EXPECT_TRUE(is_exempt({kGroup, "v1", "validatingadmissionpolicies"}));
  EXPECT_TRUE(is_exempt({kGroup, "v1", "validatingadmissionpolicybindings"}));
  EXPECT_FALSE(is_exempt({kGroup, "v1", "pods"}));
  EXPECT_FALSE(is_exempt({"", "v1", "mutatingwebhookconfigurations"}));
}

Json labelled(std::string_view value) {
  return Json::object({{"metadata", Json::object({{"labels", Json::object({{"a", value}})}})}});
}

TEST(WebhookMatch, SelectorsMatchTheNewAndTheOldObject) {
  const Webhook webhook = webhook_with(R"(,"objectSelector":{"matchLabels":{"a":"yes"}})");
  const Json yes = labelled("yes");
  const Json no = labelled("no");
  const Json options = Json::object({{"kind", "PodExecOptions"}});
  EXPECT_TRUE(selects(webhook, {.object = &yes}));
  EXPECT_FALSE(selects(webhook, {.object = &no}));
  EXPECT_TRUE(selects(webhook, {.object = &no, .old = &yes}));
  EXPECT_TRUE(selects(webhook, {.old = &yes}));
  EXPECT_FALSE(selects(webhook, {.object = &options}));
  EXPECT_FALSE(selects(webhook, {}));
  EXPECT_TRUE(selects(webhook_with(""), {}));
  // An object that cannot have labels is not selected for having none.
  EXPECT_FALSE(
      selects(webhook_with(R"(,"objectSelector":{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]})"),
              {.object = &options}));
}

TEST(WebhookMatch, NamespacesAreSelectedByTheirLabels) {
  const Webhook webhook = webhook_with(
      R"(,"namespaceSelector":{"matchExpressions":[{"key":"hooks","operator":"NotIn","values":["off"]}]})");
  const api::StringMap off{{"hooks", "off"}};
  const api::StringMap none;
  EXPECT_FALSE(selects(webhook, {.namespace_labels = &off}));
  EXPECT_TRUE(selects(webhook, {.namespace_labels = &none}));
  // An object of the cluster has no namespace and is always selected.
  EXPECT_TRUE(selects(webhook_with(R"(,"namespaceSelector":{"matchLabels":{"hooks":"on"}})"), {}));
}

TEST(Webhook, SaysWhatItsConfigurationSays) {
  const Webhook plain = webhook_with("");
  EXPECT_EQ(plain.configuration, "c");
  EXPECT_EQ(plain.name, "a.b.c");
  EXPECT_FALSE(plain.fails_open);
  EXPECT_FALSE(plain.asked_again);
  EXPECT_TRUE(plain.dry_run_safe);
  EXPECT_EQ(plain.timeout, seconds(10));
  const Webhook other = webhook_with(
      R"(,"failurePolicy":"Ignore","reinvocationPolicy":"IfNeeded","timeoutSeconds":3,"clientConfig":{"caBundle":"YQ==",)"
      R"("service":{"namespace":"n","name":"s","path":"/p","port":8443}})");
  EXPECT_TRUE(other.fails_open);
  EXPECT_TRUE(other.asked_again);
  EXPECT_EQ(other.timeout, seconds(3));
  EXPECT_EQ(other.authority_pem, "a");
  ASSERT_TRUE(other.service);
  EXPECT_EQ(other.service->port, 8443);
  EXPECT_EQ(other.service->path, "/p");
  EXPECT_EQ(webhook_with(R"(,"timeoutSeconds":300)").timeout, seconds(30));
  EXPECT_FALSE(webhook_with(R"(,"sideEffects":"Unknown")").dry_run_safe);
  // A malformed selector matches everything.
  EXPECT_TRUE(webhook_with(R"(,"objectSelector":{"matchExpressions":[{"key":"a","operator":"Perhaps"}]})")
                  .objects.is_everything());
}

}  // namespace

}  // namespace spillway::webhooks
