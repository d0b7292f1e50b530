// Goal: the index of a table finds the schema that comparing all of them in order would find; heartbeats keep their
// schema whatever other schemas say. Method: random schemas over a small world of clients and requests.
#include "policy/flow/flow_table.h"

#include "base/rng.h"
#include "policy/flow/built_in.h"
#include "policy/flow/documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace spillway::flow {
namespace {

struct Client {
  std::string user;
  std::vector<std::string> groups;
};

const std::array<Client, 5> kClients{Client{"ann", {"people", "system:authenticated"}},
                                     Client{"system:node:n1", {"system:nodes", "system:authenticated"}},
                                     Client{"system:serviceaccount:shop:cart", {"system:serviceaccounts"}},
                                     Client{"system:serviceaccount:shop:till", {"system:serviceaccounts"}},
                                     Client{"nobody", {}}};

Asked get_of(const Client& client, std::string_view group, std::string_view resource, std::string_view ns,
             std::string_view subresource = {}) {
  return {.user = client.user,
          .groups = client.groups,
          .is_resource = true,
          .verb = "update",
          .group = group,
          .resource = resource,
          .subresource = subresource,
          .ns = ns,
          .path = "/apis"};
}

Subject random_subject(Rng& rng) {
  using enum Subject::Kind;
  switch (rng.below(8)) {
    case 0:
      return {kUser, "ann"};
    case 1:
      return {kUser, "*"};
    case 2:
      return {kGroup, "system:authenticated"};
    case 3:
      return {kGroup, "system:nodes"};
    case 4:
      return {kGroup, "*"};
    case 5:
      return {kServiceAccount, "cart", "shop"};
    case 6:
      return {kServiceAccount, "*", "shop"};
    default:
      return {kServiceAccount, "*", "other"};
  }
}

Schema random_schema(Rng& rng, std::size_t number) {
  const std::array<std::string, 3> resources{"pods", "leases", "*"};
  Schema schema{.name = "s" + std::to_string(number),
                .precedence = 2 + static_cast<int>(rng.below(20)),
                .level = "workload-low",
                .rules = {}};
  for (std::uint64_t i = 0; i <= rng.below(2); ++i) {
    schema.rules.push_back({.subjects = {random_subject(rng)},
                            .resources = {{.verbs = {"*"},
                                           .groups = {"*"},
                                           .resources = {resources[rng.below(resources.size())]},
                                           .namespaces = {rng.below(2) == 0 ? "a" : "*"}}}});
  }
  return schema;
}

std::size_t first_match(const Configuration& configuration, const Asked& asked) {
  const auto found =
      std::ranges::find_if(configuration.schemas, [&](const Schema& each) { return matches(each, asked); });
  const auto last = std::prev(configuration.schemas.end());
  return static_cast<std::size_t>((found == configuration.schemas.end() ? last : found) -
                                  configuration.schemas.begin());
}

TEST(FlowTable, TheIndexFindsTheFirstSchemaThatMatches) {
  Rng rng(7);
  std::size_t others = 0;
  for (int world = 0; world < 200; ++world) {
    Configuration configuration = built_in_configuration();
    for (std::size_t i = 0; i < 12; ++i) configuration.schemas.push_back(random_schema(rng, i));
    ASSERT_TRUE(arrange(configuration));
    const FlowTable table(configuration);
    for (const Client& client : kClients) {
      for (const std::string ns : {"a", "b"}) {
        for (const std::string resource : {"pods", "leases", "services"}) {
          const Asked asked = get_of(client, "", resource, ns);
          const std::size_t want = first_match(configuration, asked);
          EXPECT_EQ(table.classify(asked), want) << client.user << " " << resource;
          others += configuration.schemas[want].level == "workload-low";
        }
      }
    }
  }
  EXPECT_GT(others, 1'000U);
}

TEST(FlowTable, NoSchemaTakesTheHeartbeatsOfNodes) {
  Configuration built_in = built_in_configuration();
  const Rule all{
      .subjects = {{Subject::Kind::kGroup, "*"}},
      .resources = {{.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}, .namespaces = {"*"}, .cluster_scope = true}}};
  std::vector<Schema> schemas = built_in.schemas;
  schemas.push_back({.name = "grab", .precedence = 2, .level = "jail", .rules = {all}});
  std::vector<Level> levels = built_in.levels;
  levels.push_back({.name = "jail", .limit = Level::Limit::kReject, .shares = 0});
  const Client& node = kClients[1];
  const auto level_of = [&](const FlowTable& table, const Asked& asked) {
    const Schema& schema = table.configuration().schemas[table.classify(asked)];
    return schema.level + (schema.by == FlowBy::kUser ? " by user" : "");
  };
  for (const bool edited : {false, true}) {
    if (edited) {  // the schema of heartbeats itself leads elsewhere
      Schema& own = *std::ranges::find(schemas, kHeartbeats, &Schema::name);
      own.level = "jail";
      own.by = FlowBy::kNothing;
    }
    const FlowTable table(assemble(schemas, levels));
    EXPECT_EQ(level_of(table, get_of(node, "coordination.k8s.io", "leases", "kube-node-lease")), "node-high by user");
    EXPECT_EQ(level_of(table, get_of(node, "", "nodes", "", "status")), "node-high by user");
    EXPECT_EQ(level_of(table, get_of(node, "", "pods", "a")), "jail");
    EXPECT_EQ(level_of(table, get_of(kClients[0], "coordination.k8s.io", "leases", "kube-node-lease")), "jail");
    EXPECT_EQ(level_of(table, get_of({"system:node:n1", {"people"}}, "", "nodes", "", "status")), "jail")
        << "a name alone makes no node";
  }
}

}  // namespace
}  // namespace spillway::flow
