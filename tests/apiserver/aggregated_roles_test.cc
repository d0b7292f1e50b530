// ClusterRoles that gather the rules of others.
#include "apiserver/collect/role_aggregator.h"
#include "apiserver/roles/aggregation.h"
#include "apiserver/server_fixture.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {

namespace {

const std::string kClusterRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

std::string rule_of(const std::string& resource) {
  return R"({"apiGroups":["example.com"],"resources":[")" + resource + R"("],"verbs":["get"]})";
}

std::string role_of(const std::string& name, const std::string& labels, const std::string& rules) {
  return R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":")" + name +
         R"(","labels":{)" + labels + R"(}},"rules":[)" + rules + "]}";
}

std::string gatherer_of(const std::string& name, const std::string& labels, const std::string& selectors) {
  return R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":")" + name +
         R"(","labels":{)" + labels + R"(}},"aggregationRule":{"clusterRoleSelectors":[)" + selectors + "]}}";
}

api::Json parsed(const std::string& text) {
  return *api::parse_json(text);
}

/// The resources that the rules of a role name, in their order.
std::string resources_of(const api::Json& rules) {
  std::string out;
  if (rules.if_array() == nullptr) return out;
  for (const api::Json& rule : *rules.if_array()) {
    for (const api::Json& resource : *rule.find("resources")->if_array())
      out += std::string(resource.string_at({})) + " ";
  }
  return out;
}

TEST(AggregatedRules, AreThoseOfMatchingRolesByNameAndOnce) {
  const std::vector<api::Json> roles{
      parsed(role_of("b", R"("add":"1")", rule_of("b") + "," + rule_of("same"))),
      parsed(role_of("a", R"("add":"1")", rule_of("same") + "," + rule_of("a"))),
      parsed(role_of("c", R"("add":"2")", rule_of("c"))),
      parsed(role_of("d", R"("other":"1")", rule_of("d"))),
      parsed(R"({"kind":"ClusterRole","metadata":{"name":"no-labels"},"rules":[)" + rule_of("e") + "]}"),
      parsed(R"({"kind":"Role","metadata":{"name":"f","labels":{"add":"1"}},"rules":[)" + rule_of("f") + "]}")};
  const auto gathered = [&](const std::string& selectors) {
    return resources_of(aggregated_rules(parsed(gatherer_of("g", "", selectors)), roles));
  };
  EXPECT_EQ(gathered(R"({"matchLabels":{"add":"1"}})"), "same a b ");
  EXPECT_EQ(gathered(R"({"matchLabels":{"add":"2"}},{"matchLabels":{"add":"1"}})"), "c same a b ");
  EXPECT_EQ(gathered(R"({"matchLabels":{"add":"1"}},{"matchLabels":{"add":"1"}})"), "same a b ");
  EXPECT_EQ(gathered(R"({"matchExpressions":[{"key":"add","operator":"Exists"}]})"), "same a b c ");
  EXPECT_EQ(gathered(R"({"matchLabels":{"add":"1","other":"1"}})"), "");
  EXPECT_EQ(gathered("{}"), "same a b c d e ");
  EXPECT_TRUE(aggregated_rules(parsed(role_of("a", "", rule_of("a"))), roles).is_null());
}

TEST(AggregatedRules, NeverHoldItsOwn) {
  const std::vector<api::Json> roles{parsed(role_of("g", R"("add":"1")", rule_of("mine"))),
                                     parsed(role_of("h", R"("add":"1")", rule_of("other")))};
  const api::Json g = parsed(gatherer_of("g", R"("add":"1")", R"({"matchLabels":{"add":"1"}})"));
  EXPECT_EQ(resources_of(aggregated_rules(g, roles)), "other ");
}

TEST(AggregatedRules, AreDistinguishedByTheirContent) {
  const auto same = [](const std::string& a, const std::string& b) {
    return rule_identity(parsed(a)) == rule_identity(parsed(b));
  };
  EXPECT_TRUE(same(R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":[]})",
                   R"({"apiGroups":[""],"resources":["pods"],"verbs":["get"],"nonResourceURLs":null})"));
  EXPECT_FALSE(same(R"({"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]})",
                    R"({"verbs":["list","get"],"apiGroups":[""],"resources":["pods"]})"));
  EXPECT_FALSE(same(R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})",
                    R"({"verbs":["get"],"apiGroups":["pods"],"resources":[""]})"));
  EXPECT_FALSE(same(R"({"verbs":["get"],"resourceNames":["a"]})", R"({"verbs":["get"],"resources":["a"]})"));
  EXPECT_FALSE(
      same(R"({"verbs":["get"],"resources":["a"],"resourceNames":["x"]})", R"({"verbs":["get"],"resources":["a"]})"));
  EXPECT_TRUE(are_same_rules(nullptr, nullptr));
  const api::Json none;
  const api::Json empty = api::Json::array();
  EXPECT_TRUE(are_same_rules(&none, &empty));
  const api::Json one = parsed("[" + rule_of("a") + "]");
  EXPECT_FALSE(are_same_rules(&none, &one));
}

TEST(AggregatedRules, AreNotMoreThanTheyMayBe) {
  const api::StringMap labels{{"add", "1"}};
  const api::Json role = parsed(role_of("a", "", rule_of("a") + "," + rule_of("b")));
  const std::vector<GatheredRole> roles{{"a", &labels, [&] { return std::make_shared<const api::Json>(role); }}};
  const api::Json g = parsed(gatherer_of("g", "", "{}"));
  const std::size_t bytes = 2 * rule_identity(parsed(rule_of("a"))).size();
  EXPECT_EQ(resources_of(*aggregated_rules(g, roles, bytes)), "a b ");
  EXPECT_FALSE(aggregated_rules(g, roles, bytes - 1));
}

class AggregatedRoles : public ::testing::Test {
 protected:
  std::string resources(const std::string& name) {
    const Answer answer = server.get(kClusterRoles + "/" + name);
    const api::Json* const rules = answer.body.find("rules");
    return rules == nullptr ? std::string() : resources_of(*rules);
  }

  void make(const std::string& role) { ASSERT_EQ(server.post(kClusterRoles, role).code, 201); }

  void merge(const std::string& name, const std::string& patch) {
    ASSERT_EQ(server.merge(kClusterRoles + "/" + name, patch).code, 200) << name;
  }

  std::string version(const std::string& name) {
    return server.get(kClusterRoles + "/" + name).string_at({"metadata", "resourceVersion"});
  }

  void rest() {
    for (int i = 0; i < 12; ++i) server.advance(seconds(30));
  }

  TestServer server;
};

TEST_F(AggregatedRoles, FollowWhatTheyGather) {
  make(gatherer_of("g", "", R"({"matchLabels":{"add":"1"}})"));
  EXPECT_EQ(resources("g"), "");
  make(role_of("b", R"("add":"1")", rule_of("b")));
  server.advance(seconds(1));
  EXPECT_EQ(resources("g"), "b ");
  make(role_of("a", R"("add":"2")", rule_of("a")));
  server.advance(seconds(1));
  EXPECT_EQ(resources("g"), "b ");
  merge("a", R"({"metadata":{"labels":{"add":"1"}}})");
  server.advance(seconds(1));
  EXPECT_EQ(resources("g"), "a b ");
  merge("b", R"({"rules":[)" + rule_of("c") + "]}");
  server.advance(seconds(1));
  EXPECT_EQ(resources("g"), "a c ");
  merge("a", R"({"metadata":{"labels":{"add":null}}})");
  server.advance(seconds(1));
  EXPECT_EQ(resources("g"), "c ");
  ASSERT_EQ(server.remove(kClusterRoles + "/b").code, 200);
  server.advance(seconds(1));
  EXPECT_EQ(resources("g"), "");
}

TEST_F(AggregatedRoles, TakeRightsAwayWithoutAPause) {
  make(role_of("a", R"("add":"1")", rule_of("a")));
  make(role_of("b", R"("add":"1")", rule_of("b")));
  make(gatherer_of("g", "", R"({"matchLabels":{"add":"1"}})"));
  server.advance(seconds(1));
  for (int number = 0; number < 30; ++number)
    merge("a", R"({"rules":[)" + rule_of("a" + std::to_string(number)) + "]}");
  server.advance(seconds(10));
  for (int number = 0; number < 3; ++number) merge("a", R"({"rules":[)" + rule_of("c" + std::to_string(number)) + "]}");
  ASSERT_EQ(resources("g").find("c2"), std::string::npos) << "it is written seldom by now";
  ASSERT_EQ(server.remove(kClusterRoles + "/b").code, 200);
  ASSERT_EQ(server.remove(kClusterRoles + "/a").code, 200);
  EXPECT_EQ(resources("g"), "");
}

TEST_F(AggregatedRoles, ReplaceRulesThatClientsWrote) {
  make(role_of("a", R"("add":"1")", rule_of("a")));
  make(gatherer_of("g", "", R"({"matchLabels":{"add":"1"}})"));
  server.advance(minutes(5));
  merge("g", R"({"rules":[)" + rule_of("mine") + "]}");
  server.advance(seconds(1));
  EXPECT_EQ(resources("g"), "a ");
}

TEST_F(AggregatedRoles, AreWrittenWhenTheyChangeOnly) {
  make(role_of("a", R"("add":"1")", rule_of("a")));
  make(gatherer_of("g", "", R"({"matchLabels":{"add":"1"}})"));
  rest();
  const std::string before = version("g");
  make(role_of("b", R"("add":"1")", rule_of("a")));       // adds nothing
  merge("a", R"({"metadata":{"labels":{"more":"1"}}})");  // changes no rule
  make(role_of("c", R"("other":"1")", rule_of("c")));     // is not gathered
  rest();
  EXPECT_EQ(version("g"), before);
  server.restart();
  rest();
  EXPECT_EQ(version("g"), before);
}

TEST_F(AggregatedRoles, KeepTheirRulesWhenTheyGatherNoMore) {
  make(role_of("a", R"("add":"1")", rule_of("a")));
  make(gatherer_of("g", "", R"({"matchLabels":{"add":"1"}})"));
  rest();
  merge("g", R"({"aggregationRule":null})");
  ASSERT_EQ(server.remove(kClusterRoles + "/a").code, 200);
  rest();
  EXPECT_EQ(resources("g"), "a ");
}

TEST_F(AggregatedRoles, AddToTheRolesOfEveryCluster) {
  make(role_of("crontabs-view", R"("rbac.authorization.k8s.io/aggregate-to-view":"true")", rule_of("crontabs")));
  make(role_of("crontabs-edit", R"("rbac.authorization.k8s.io/aggregate-to-edit":"true")", rule_of("crontabs/scale")));
  server.advance(seconds(1));
  const auto has = [&](const std::string& role, const std::string& resource) {
    return (" " + resources(role)).find(" " + resource + " ") != std::string::npos;
  };
  EXPECT_TRUE(has("view", "crontabs"));
  EXPECT_TRUE(has("edit", "crontabs"));
  EXPECT_TRUE(has("admin", "crontabs"));
  EXPECT_FALSE(has("view", "crontabs/scale"));
  EXPECT_TRUE(has("edit", "crontabs/scale"));
  EXPECT_TRUE(has("admin", "crontabs/scale"));
  EXPECT_FALSE(has("edit", "rolebindings"));
  EXPECT_TRUE(has("admin", "rolebindings"));
}

TEST_F(AggregatedRoles, IsRecordedAsUpstreamsController) {
  make(role_of("crontabs-view", R"("rbac.authorization.k8s.io/aggregate-to-view":"true")", rule_of("crontabs")));
  server.advance(seconds(1));
  EXPECT_NE(server.get(kClusterRoles + "/view").text.find(R"("manager":"clusterrole-aggregation-controller")"),
            std::string::npos);
}

TEST_F(AggregatedRoles, TooLargeOnesStayAsTheyAre) {
  make(gatherer_of("g", "", R"({"matchLabels":{"add":"1"}})"));
  make(role_of("a", R"("add":"1")", rule_of("a")));
  rest();
  for (const std::string name : {"b", "c"}) {
    make(role_of(name, R"("add":"1")", rule_of(std::string(kGatheredBytesMax / 2, name.front()))));
  }
  rest();
  EXPECT_LT(resources("g").size(), kGatheredBytesMax);
  EXPECT_TRUE(resources("g").starts_with("a "));
  ASSERT_EQ(server.remove(kClusterRoles + "/b").code, 200);
  ASSERT_EQ(server.remove(kClusterRoles + "/c").code, 200);
  rest();
  EXPECT_EQ(resources("g"), "a ");
}

/// Three that gather each other, with different rules in them: these go round for ever, ever more slowly.
TEST_F(AggregatedRoles, InACircleAreWrittenSeldom) {
  const std::map<std::string, std::string> from{{"x", "y"}, {"y", "z"}, {"z", "x"}};
  make(role_of("base", R"("is":"base")", rule_of("base")));
  for (const auto& [name, other] : from)
    make(gatherer_of(name, "\"is\":\"" + name + "\"",
                     R"({"matchExpressions":[{"key":"is","operator":"In","values":["base",")" + other + "\"]}]}"));
  for (const auto& [name, other] : from) merge(name, R"({"rules":[)" + rule_of(name) + "]}");
  // Each was written once, and rests for a moment: what is written into them now stays that long.
  for (const auto& [name, other] : from) merge(name, R"({"rules":[)" + rule_of("of-" + name) + "]}");
  const auto last = [&] {
    std::uint64_t out = 0;
    for (const auto& [name, other] : from) out = std::max<std::uint64_t>(out, std::stoull(version(name)));
    return out;
  };
  for (int i = 0; i < 20; ++i) server.advance(seconds(30));
  const std::uint64_t before = last();
  for (int i = 0; i < 20; ++i) server.advance(seconds(30));
  EXPECT_GT(last(), before) << "no circle";
  EXPECT_LE(last() - before, 3U * 11);  // each at most once a minute
}

/// Property: whatever is done to roles, one that gathers others has their rules, and each once, when all is quiet.
class AnyAggregatedRoles : public ::testing::TestWithParam<int> {};

TEST_P(AnyAggregatedRoles, AreTheUnionOfWhatTheyGather) {
  constexpr int kLevels = 3;  // roles of a level aggregate others, and those of lower levels
  TestServer server;
  Rng rng(static_cast<std::uint64_t>(GetParam()));
  const auto labels = [&](int above) {
    std::string out;
    for (int level = above; level < kLevels; ++level) {
      if (rng.below(2) == 0) out += (out.empty() ? "" : ",") + ("\"to-" + std::to_string(level)) + R"(":"true")";
    }
    return out;
  };
  const auto path = [](const std::string& name) { return kClusterRoles + "/" + name; };
  for (int level = 0; level < kLevels; ++level) {
    const std::string selector = R"({"matchLabels":{"to-)" + std::to_string(level) + R"(":"true"}})";
    ASSERT_EQ(
        server.post(kClusterRoles, gatherer_of("level-" + std::to_string(level), labels(level + 1), selector)).code,
        201);
  }
  for (int step = 0; step < 30; ++step) {
    const std::string name = "role-" + std::to_string(rng.below(6));
    std::string rules;
    for (std::uint64_t i = rng.below(4); i > 0; --i) {
      rules += (rules.empty() ? "" : ",") + rule_of("r" + std::to_string(rng.below(5)));
    }
    if (rng.below(4) == 0) {
      server.remove(path(name));
    } else if (server.post(kClusterRoles, role_of(name, labels(0), rules)).code == 409) {
      server.put(path(name), role_of(name, labels(0), rules));
    }
    if (rng.below(3) == 0) server.advance(milliseconds(static_cast<std::int64_t>(rng.below(500))));
    if (rng.below(10) == 0) server.restart();
  }
  for (int i = 0; i < 12; ++i) server.advance(seconds(30));

  struct Seen {
    std::set<std::string> labels;
    std::vector<std::string> rules;
  };

  std::map<std::string, Seen> seen;
  const Answer list = server.get(kClusterRoles);
  for (const api::Json& role : *list.body.find("items")->if_array()) {
    Seen& one = seen[std::string(role.string_at({"metadata", "name"}))];
    if (const api::Json* found = role.at({"metadata", "labels"})) {
      for (const auto& [key, value] : *found->if_object()) one.labels.insert(key);
    }
    const api::Json* const rules = role.find("rules");
    if (rules == nullptr || rules->if_array() == nullptr) continue;
    for (const api::Json& rule : *rules->if_array()) one.rules.push_back(api::to_text(rule));
  }
  for (int level = 0; level < kLevels; ++level) {
    const std::string name = "level-" + std::to_string(level);
    std::set<std::string> wanted;
    for (const auto& [other, role] : seen) {
      if (other != name && role.labels.contains("to-" + std::to_string(level))) {
        wanted.insert(role.rules.begin(), role.rules.end());
      }
    }
    const std::vector<std::string>& has = seen.at(name).rules;
    EXPECT_EQ(std::set<std::string>(has.begin(), has.end()), wanted) << name;
    EXPECT_EQ(has.size(), wanted.size()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyAggregatedRoles, ::testing::Range(1, 13));

}  // namespace

}  // namespace spillway::apiserver
