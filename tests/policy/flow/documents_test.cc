// Goal: schemas and levels survive the way through their objects, and the objects of a cluster always make a whole
// configuration, whatever clients stored.
#include "policy/flow/documents.h"

#include "policy/flow/built_in.h"
#include "policy/flow/seat_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::flow {
namespace {

const Level* level_named(const Configuration& made, std::string_view name) {
  const auto found = std::ranges::find(made.levels, name, &Level::name);
  return found == made.levels.end() ? nullptr : &*found;
}

TEST(FlowDocuments, TheBuiltInTableIsItsOwnObjects) {
  const Configuration built_in = built_in_configuration();
  std::vector<Schema> schemas;
  std::vector<Level> levels;
  for (const Schema& each : built_in.schemas) schemas.push_back(schema_of(document_of(each)));
  for (const Level& each : built_in.levels) levels.push_back(level_of(document_of(each)));
  const Configuration made = assemble(schemas, levels);
  EXPECT_EQ(made.schemas, built_in.schemas);
  for (const Level& each : built_in.levels) {
    ASSERT_NE(level_named(made, each.name), nullptr);
    EXPECT_EQ(*level_named(made, each.name), each) << each.name;
  }
}

TEST(FlowDocuments, AnObjectIsAsClientsWriteIt) {
  const Configuration built_in = built_in_configuration();
  EXPECT_EQ(
      api::to_text(document_of(built_in.levels.front())),
      R"({"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"PriorityLevelConfiguration","metadata":)"
      R"({"name":"exempt"},"spec":{"exempt":{"lendablePercent":0,"nominalConcurrencyShares":0},"type":"Exempt"}})");
  EXPECT_EQ(
      api::to_text(document_of(built_in.schemas[1])),
      R"({"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchema","metadata":{"name":"probes"},"spec":)"
      R"({"matchingPrecedence":2,"priorityLevelConfiguration":{"name":"exempt"},"rules":[{"nonResourceRules":)"
      R"([{"nonResourceURLs":["/healthz","/readyz","/livez"],"verbs":["get"]}],"subjects":[{"group":)"
      R"({"name":"system:unauthenticated"},"kind":"Group"},{"group":{"name":"system:authenticated"},"kind":)"
      R"("Group"}]}]}})");
}

TEST(FlowDocuments, NothingMakesAConfigurationWithTheMandatoryOnes) {
  const Configuration made = assemble({}, {});
  std::vector<std::string> names;
  for (const Schema& each : made.schemas) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"exempt", "system-node-high", "catch-all"}));
  EXPECT_EQ(made.levels.size(), 3U);
}

TEST(FlowDocuments, MandatoryOnesKeepTheirFormAndSchemasWithoutALevelAreLeftOut) {
  const Schema exempt{.name = "exempt", .precedence = 9'000, .level = "catch-all", .rules = {}, .uid = "u1"};
  const Schema lost{.name = "lost", .level = "gone", .rules = {}};
  const Level fixed{.name = "catch-all", .limit = Level::Limit::kReject, .shares = 1'000, .uid = "u2"};
  const Level free{.name = "free", .limit = Level::Limit::kExempt};
  const Configuration made = assemble({exempt, lost}, {fixed, free});
  EXPECT_EQ(made.schemas.front().name, "exempt");
  EXPECT_EQ(made.schemas.front().level, "exempt");
  EXPECT_EQ(made.schemas.front().uid, "u1");
  EXPECT_EQ(std::ranges::find(made.schemas, "lost", &Schema::name), made.schemas.end());
  EXPECT_EQ(level_named(made, "catch-all")->shares, 5);
  EXPECT_EQ(level_named(made, "catch-all")->uid, "u2");
  EXPECT_EQ(level_named(made, "free"), nullptr) << "no second level without limits";
}

TEST(FlowDocuments, NoLevelHasQueuesWithoutEnd) {
  const Level endless{.name = "a", .limit = Level::Limit::kQueue, .queues = 10'000'000, .queue_length = 2'000'000'000};
  const Configuration made = assemble({}, {endless});
  EXPECT_EQ(level_named(made, "a")->queue_length, kFlowWaitsMax);
  EXPECT_EQ(level_named(made, "a")->queues * level_named(made, "a")->queue_length, kLevelWaitsMax);
}

TEST(FlowDocuments, HeartbeatsKeepTheirSeats) {
  std::vector<Level> levels = built_in_configuration().levels;
  Level& own = *std::ranges::find(levels, kNodeHigh, &Level::name);
  own.limit = Level::Limit::kReject;
  own.shares = 0;
  own.lendable_percent = 100;
  levels.push_back({.name = "greedy", .shares = 1'000'000});
  const Configuration made = assemble({}, levels);
  const std::vector<Share> shares = deal_seats(made.levels, 600);
  const auto at = static_cast<std::size_t>(level_named(made, kNodeHigh) - made.levels.data());
  EXPECT_EQ(made.levels[at].limit, Level::Limit::kQueue);
  EXPECT_EQ(shares[at].nominal, 60);
  EXPECT_EQ(shares[at].lendable, 0);
}

TEST(FlowDocuments, WhatExceedsTheBoundsIsLeftOutAndBuiltInOnesStay) {
  std::vector<Schema> schemas = built_in_configuration().schemas;
  const std::vector<std::string> many(kSchemaWordsMax - 1, "x");
  for (int i = 0; i < 400; ++i) {
    Schema& made = schemas.emplace_back(
        Schema{.name = "aaa" + std::to_string(i), .precedence = 2, .level = "workload-low", .rules = {}});
    if (i % 20 == 0)
      made.rules.push_back({.subjects = {{Subject::Kind::kUser, "ann"}}, .paths = {{.verbs = many, .paths = {}}}});
  }
  const Configuration made = assemble(schemas, built_in_configuration().levels);
  EXPECT_LE(made.schemas.size(), kSchemasMax + 1);
  std::size_t words = 0;
  for (const Schema& each : made.schemas) words += words_of(each);
  EXPECT_LE(words, kWordsMax);
  for (const Schema& each : built_in_configuration().schemas) {
    EXPECT_NE(std::ranges::find(made.schemas, each.name, &Schema::name), made.schemas.end()) << each.name;
  }
}

}  // namespace
}  // namespace spillway::flow
