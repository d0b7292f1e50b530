// Goal: which flow schema a request belongs to: every condition of a rule, the order of schemas, and the built-in table
// against the clients that every cluster has.
#include "policy/flow/schema.h"

#include "policy/flow/built_in.h"
#include "policy/flow/flow_table.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace spillway::flow {
namespace {

using Words = std::vector<std::string>;

struct Who {
  std::string user;
  Words groups;
};

const Who kAdmin{"admin", {"system:masters", "system:authenticated"}};
const Who kNode{"system:node:n1", {"system:nodes", "system:authenticated"}};
const Who kManager{"system:kube-controller-manager", {"system:authenticated"}};
const Who kScheduler{"system:kube-scheduler", {"system:authenticated"}};
const Who kOwnControllers{"spillway:controllers", {"system:authenticated"}};
const Who kOwnScheduler{"spillway:scheduler", {"system:authenticated"}};
const Who kSystemAccount{"system:serviceaccount:kube-system:x",
                         {"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}};
const Who kMirror{"system:serviceaccount:kube-system:endpointslicemirroring-controller",
                  {"system:serviceaccounts", "system:authenticated"}};
const Who kAccount{"system:serviceaccount:shop:cart", {"system:serviceaccounts", "system:authenticated"}};
const Who kPerson{"ann", {"system:authenticated"}};
const Who kAnonymous{"system:anonymous", {"system:unauthenticated"}};
const Who kNobody{"nobody", {}};

Asked resource(const Who& who, std::string_view verb, std::string_view group, std::string_view of,
               std::string_view subresource = {}, std::string_view ns = {}) {
  return {.user = who.user,
          .groups = who.groups,
          .is_resource = true,
          .verb = verb,
          .group = group,
          .resource = of,
          .subresource = subresource,
          .ns = ns,
          .path = "/apis"};
}

Asked path(const Who& who, std::string_view verb, std::string_view at) {
  return {.user = who.user, .groups = who.groups, .verb = verb, .path = at};
}

std::string schema_of(const Asked& asked) {
  static const FlowTable kBuiltIn(built_in_configuration());
  return kBuiltIn.configuration().schemas[kBuiltIn.classify(asked)].name;
}

constexpr std::string_view kLeases = "coordination.k8s.io";

TEST(FlowSchemas, TheBuiltInTableKnowsEveryClient) {
  const std::vector<std::pair<Asked, std::string>> rows{
      {resource(kAdmin, "list", "", "pods"), "exempt"},
      {path(kAdmin, "get", "/metrics"), "exempt"},
      {path(kAnonymous, "get", "/readyz"), "probes"},
      {path(kAccount, "get", "/healthz"), "probes"},
      {path(kPerson, "get", "/livez"), "probes"},
      {path(kPerson, "post", "/livez"), "global-default"},
      {path(kPerson, "get", "/livez/ping"), "global-default"},
      {path(kAnonymous, "get", "/version"), "catch-all"},
      {resource(kNode, "update", kLeases, "leases", {}, "kube-node-lease"), "system-node-high"},
      {resource(kNode, "patch", "", "nodes", "status"), "system-node-high"},
      {resource(kNode, "get", "", "nodes"), "system-node-high"},
      {resource(kNode, "list", "", "pods"), "system-nodes"},
      {resource(kNode, "list", kLeases, "leases"), "system-nodes"},
      {resource(kNode, "get", "", "nodes", "proxy"), "system-nodes"},
      {path(kNode, "get", "/apis"), "system-nodes"},
      {resource(kManager, "update", kLeases, "leases", {}, "kube-system"), "system-leader-election"},
      {resource(kScheduler, "get", kLeases, "leases", {}, "kube-system"), "system-leader-election"},
      {resource(kSystemAccount, "create", kLeases, "leases", {}, "kube-system"), "system-leader-election"},
      {resource(kManager, "delete", kLeases, "leases", {}, "kube-system"), "kube-controller-manager"},
      {resource(kManager, "update", "", "endpoints", {}, "default"), "endpoint-controller"},
      {resource(kMirror, "update", "", "endpoints", {}, "default"), "endpoint-controller"},
      {resource(kSystemAccount, "update", "", "endpoints", {}, "default"), "workload-leader-election"},
      {resource(kSystemAccount, "get", "", "configmaps", {}, "default"), "workload-leader-election"},
      {resource(kSystemAccount, "list", "", "configmaps", {}, "default"), "kube-system-service-accounts"},
      {resource(kManager, "list", "", "pods"), "kube-controller-manager"},
      {resource(kScheduler, "create", "", "pods", "binding", "default"), "kube-scheduler"},
      {resource(kOwnControllers, "update", kLeases, "leases", {}, "kube-system"), "system-leader-election"},
      {resource(kOwnScheduler, "update", kLeases, "leases", {}, "kube-system"), "system-leader-election"},
      {resource(kOwnControllers, "update", "", "endpoints", {}, "default"), "endpoint-controller"},
      {resource(kOwnControllers, "list", "", "pods"), "kube-controller-manager"},
      {resource(kOwnScheduler, "create", "", "pods", "binding", "default"), "kube-scheduler"},
      {resource(kAccount, "list", "", "pods"), "service-accounts"},
      {resource(kAccount, "update", kLeases, "leases", {}, "kube-system"), "service-accounts"},
      {path(kAccount, "get", "/apis"), "service-accounts"},
      {resource(kPerson, "list", "", "pods"), "global-default"},
      {resource(kAnonymous, "list", "", "pods"), "catch-all"},
      {resource(kNobody, "list", "", "pods"), "catch-all"},
  };
  for (const auto& [asked, want] : rows) {
    EXPECT_EQ(schema_of(asked), want) << asked.user << " " << asked.verb << " " << asked.resource << asked.path;
  }
}

TEST(FlowSchemas, TheBuiltInTableIsInOrderAndItsLevelsExist) {
  Configuration built_in = built_in_configuration();
  std::vector<std::tuple<int, std::string, std::string>> rows;
  for (const Schema& schema : built_in.schemas) rows.emplace_back(schema.precedence, schema.name, schema.level);
  const std::vector<std::tuple<int, std::string, std::string>> want{
      {1, "exempt", "exempt"},
      {2, "probes", "exempt"},
      {100, "system-leader-election", "leader-election"},
      {150, "endpoint-controller", "workload-high"},
      {200, "workload-leader-election", "leader-election"},
      {400, "system-node-high", "node-high"},
      {500, "system-nodes", "system"},
      {800, "kube-controller-manager", "workload-high"},
      {800, "kube-scheduler", "workload-high"},
      {900, "kube-system-service-accounts", "workload-high"},
      {9000, "service-accounts", "workload-low"},
      {9900, "global-default", "global-default"},
      {10'000, "catch-all", "catch-all"}};
  EXPECT_EQ(rows, want);
  EXPECT_TRUE(arrange(built_in));
}

/// Every combination of members of a resource rule, against every request of a small world.
TEST(FlowSchemas, AResourceRuleMatchesWhatAllOfItsListsMatch) {
  const std::array<Words, 3> verbs{Words{"get"}, {"*"}, {"list", "get"}};
  const std::array<Words, 3> groups{Words{""}, {"apps"}, {"*"}};
  const std::array<Words, 4> resources{Words{"pods"}, {"pods/log"}, {"*"}, {"pods", "nodes"}};
  const std::array<Words, 3> namespaces{Words{}, {"a"}, {"*"}};
  const auto in = [](const Words& words, const std::string& word) {
    for (const std::string& each : words) {
      if (each == "*" || each == word) return true;
    }
    return false;
  };
  int matched = 0;
  for (int number = 0; number < 3 * 3 * 4 * 3 * 2; ++number) {
    const bool cluster = number % 2 == 1;
    const ResourceRule rule{verbs[static_cast<std::size_t>(number / 2 % 3)],
                            groups[static_cast<std::size_t>(number / 6 % 3)],
                            resources[static_cast<std::size_t>(number / 18 % 4)],
                            namespaces[static_cast<std::size_t>(number / 72 % 3)], cluster};
    const Schema schema{.name = "s", .level = "l", .rules = {{{{Subject::Kind::kUser, "ann"}}, {rule}}}};
    for (const std::string verb : {"get", "list", "watch"}) {
      for (const std::string group : {"", "apps"}) {
        for (const auto& [name, part] : {std::pair("pods", ""), {"pods", "log"}, {"nodes", ""}, {"podslog", ""}}) {
          for (const std::string ns : {"", "a", "b"}) {
            const Asked asked = resource(kPerson, verb, group, name, part, ns);
            const std::string whole = *part == 0 ? name : std::string(name) + "/" + part;
            const bool want = in(rule.verbs, verb) && in(rule.groups, group) && in(rule.resources, whole) &&
                              (ns.empty() ? cluster : in(rule.namespaces, ns));
            EXPECT_EQ(matches(schema, asked), want)
                << number << " " << verb << " " << group << " " << whole << " " << ns;
            matched += want;
          }
        }
      }
    }
  }
  EXPECT_GT(matched, 500);
}

TEST(FlowSchemas, SubjectsArePeopleGroupsAndAccounts) {
  const auto has = [](Subject subject, const Who& who) {
    const Schema schema{.name = "s", .level = "l", .rules = {{{std::move(subject)}, {}, {{{"*"}, {"*"}}}}}};
    return matches(schema, path(who, "get", "/x"));
  };
  using enum Subject::Kind;
  EXPECT_TRUE(has({kUser, "ann"}, kPerson));
  EXPECT_TRUE(has({kUser, "*"}, kNobody));
  EXPECT_FALSE(has({kUser, "an"}, kPerson));
  EXPECT_TRUE(has({kGroup, "system:nodes"}, kNode));
  EXPECT_TRUE(has({kGroup, "*"}, kNobody));
  EXPECT_FALSE(has({kGroup, "system:nodes"}, kPerson));
  EXPECT_TRUE(has({kServiceAccount, "cart", "shop"}, kAccount));
  EXPECT_TRUE(has({kServiceAccount, "*", "shop"}, kAccount));
  EXPECT_FALSE(has({kServiceAccount, "*", "sho"}, kAccount));
  EXPECT_FALSE(has({kServiceAccount, "cart", "kube-system"}, kAccount));
  EXPECT_FALSE(has({kServiceAccount, "*", "shop"}, Who{"system:serviceaccount:shop", {}}));
}

TEST(FlowSchemas, PathsMayEndInAStar) {
  const auto has = [](std::string pattern, std::string_view at) {
    const Schema schema{
        .name = "s", .level = "l", .rules = {{{{Subject::Kind::kUser, "*"}}, {}, {{{"get"}, {std::move(pattern)}}}}}};
    return matches(schema, path(kPerson, "get", at));
  };
  EXPECT_TRUE(has("/debug/*", "/debug/x/y"));
  EXPECT_FALSE(has("/debug/*", "/debug"));
  EXPECT_FALSE(has("/debug/*", "/debugger"));
  EXPECT_TRUE(has("*", "/anything"));
  EXPECT_FALSE(has("/healthz", "/healthz/ping"));
}

TEST(FlowSchemas, FlowsAreSeparatedByWhatAuthenticationEstablished) {
  const Asked asked = resource(kAccount, "list", "", "pods", {}, "other");
  EXPECT_EQ(flow_name(FlowBy::kUser, asked), kAccount.user);
  EXPECT_EQ(flow_name(FlowBy::kNamespace, asked), "other");
  EXPECT_EQ(flow_name(FlowBy::kNothing, asked), "");
}

TEST(FlowSchemas, AConfigurationIsWhole) {
  const auto error_after = [](auto change) {
    Configuration made = built_in_configuration();
    change(made);
    const Outcome arranged = arrange(made);
    return arranged ? std::string() : arranged.error().message;
  };
  EXPECT_EQ(error_after([](Configuration&) {}), "");
  EXPECT_EQ(error_after([](Configuration& made) { made.levels.push_back(made.levels.front()); }),
            "priority level \"exempt\" is there twice");
  EXPECT_EQ(error_after([](Configuration& made) { made.schemas.push_back(made.schemas.front()); }),
            "flow schema \"exempt\" is there twice");
  EXPECT_EQ(error_after([](Configuration& made) { made.schemas.pop_back(); }), "there is no flow schema \"catch-all\"");
  EXPECT_EQ(error_after([](Configuration& made) { made.schemas.front().level = "gone"; }),
            "flow schema \"exempt\" is of the priority level \"gone\", which does not exist");
}

TEST(FlowSchemas, CatchAllIsLastWhateverOthersSay) {
  Configuration made = built_in_configuration();
  made.schemas.push_back({.name = "zzz", .precedence = 10'000, .level = "workload-low", .rules = {}});
  ASSERT_TRUE(arrange(made));
  EXPECT_EQ(made.schemas.back().name, "catch-all");
}

}  // namespace
}  // namespace spillway::flow
