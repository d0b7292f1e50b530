// The cost of settings: which settings are tried, what they change in a scenario, and how they compare.
#include "sim/scenario/advice.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::sim {
namespace {

using ::testing::HasSubstr;

Scenario leak() {
  auto parsed =
      parse_scenario("leak.yaml", R"(
name: leak
cluster:
  nodes: 2
  zones: 1
  memory: 1Gi
  workloads:
  - {replicaSet: web, replicas: 4, memory: 50Mi, memoryRequest: 50Mi}
  - {replicaSet: db, replicas: 2, memory: 200Mi, memoryRequest: 200Mi}
config:
  agents: {evictionHard: {memory.available: 100Mi}}
timeline:
- {at: 1m, memory: {pods: default/web-*, first: 2, to: 900Mi, rate: 4Mi/s}}
duration: 8m
expect: [evicted == 0]
)",
                     [](const std::string& name) { return Result<std::string>(invalid(name, "no files")); }, {});
  EXPECT_TRUE(parsed) << parsed.error().text();
  return *std::move(parsed);
}

Advice advice_of(const Choice& choice) {
  const auto scenario = with_choice(leak(), choice);
  EXPECT_TRUE(scenario) << scenario.error().text();
  return {
      .choice = choice, .cost = cost_of(*scenario, run_scenario(*scenario, {})), .impossible = {}, .worse_than = {}};
}

TEST(Advice, TriesEverythingAsItIsAndEveryCombination) {
  const auto choices = choices_of({{"100Mi", "5%"}, {"1Gi"}, {true, false}});
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 5U);
  EXPECT_TRUE(choices->front().is_as_it_is());
  EXPECT_EQ(choices->at(1), (Choice{"100Mi", "1Gi", true}));
  EXPECT_EQ(choices->at(2), (Choice{"100Mi", "1Gi", false}));
  EXPECT_EQ(choices->at(4), (Choice{"5%", "1Gi", false}));
  EXPECT_EQ(choices_of({})->size(), 1U);
  EXPECT_EQ(choices_of({{}, {}, {false}})->size(), 2U);
}

TEST(Advice, RefusesWhatIsNoValueAndTooMuch) {
  EXPECT_THAT(choices_of({{"much"}, {}, {}}).error().text(), HasSubstr("--memory-available"));
  EXPECT_THAT(choices_of({{}, {"-1Gi"}, {}}).error().text(),
              HasSubstr("expected quantities such as 512Mi, got \"-1Gi\""));
  const std::vector<std::string> nine(9, "1Mi");
  EXPECT_THAT(choices_of({nine, nine, {}}).error().text(), HasSubstr("expected at most 64"));
}

TEST(Advice, AThresholdCostsWhatItKeepsAndWhatItEvicts) {
  const Advice as_it_is = advice_of({});
  const Advice high = advice_of({"400Mi", {}, {}});
  const Advice reserved = advice_of({{}, "200Mi", {}});
  EXPECT_EQ(as_it_is.cost.kept_free, mebibytes(100));
  EXPECT_EQ(high.cost.kept_free, mebibytes(400));
  EXPECT_EQ(reserved.cost.kept_free, mebibytes(300));
  EXPECT_GT(as_it_is.cost.evicted, 0U);
  EXPECT_EQ(as_it_is.cost.failed_expectations, 1U);
  EXPECT_GE(high.cost.evicted, as_it_is.cost.evicted);
  EXPECT_EQ(as_it_is.cost.violations + high.cost.violations + reserved.cost.violations, 0U);
}

TEST(Advice, ANodeCannotReserveMoreThanItHas) {
  const auto scenario = with_choice(leak(), {{}, "2Gi", {}});
  ASSERT_FALSE(scenario);
  EXPECT_THAT(scenario.error().text(), HasSubstr("node-0"));
}

TEST(Advice, BrakesAreThoseOfTheControllers) {
  const auto on = with_choice(leak(), {{}, {}, true});
  const auto off = with_choice(leak(), {{}, {}, false});
  ASSERT_TRUE(on && off);
  EXPECT_TRUE(on->config.controllers.brakes.stall_share);
  EXPECT_FALSE(off->config.controllers.brakes.stall_share);
}

ConfigChoice config_of(const std::string& text) {
  return {"new.yaml", text, [](const std::string& name) { return Result<std::string>(invalid(name, "no files")); }};
}

TEST(Advice, AFileChangesWhatItSaysAndFlagsGoBeforeIt) {
  ChoiceLists lists;
  lists.configs = {config_of("brakes: {taint: 3/5m}\n"),
                   config_of("agents: {evictionHard: {memory.available: 200Mi}}\n")};
  lists.memory_available = {"300Mi", "5%"};
  const auto choices = choices_of(lists);
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 5U);
  EXPECT_EQ(choices->at(2).config, lists.configs[1]);
  const auto braked = with_choice(leak(), {{}, {}, {}, lists.configs[0]});
  ASSERT_TRUE(braked) << braked.error().text();
  EXPECT_EQ(braked->config.controllers.brakes.taint.global, (lifecycle::ActLimit{3, minutes(5)}));
  EXPECT_EQ(cost_of(*braked, {}).kept_free, mebibytes(100)) << "as the scenario has it";
  EXPECT_EQ(cost_of(*with_choice(leak(), {{}, {}, {}, lists.configs[1]}), {}).kept_free, mebibytes(200));
  EXPECT_EQ(cost_of(*with_choice(leak(), choices->at(2)), {}).kept_free, mebibytes(300));
  lists.configs = {config_of("brakes: {taints: 3/5m}\n")};
  EXPECT_THAT(choices_of(lists).error().text(), HasSubstr("new.yaml:1:10"));
  lists.configs = {config_of("agents: {evictionHard: {memory.available: 9Gi}}\n")};
  EXPECT_FALSE(with_choice(leak(), {{}, {}, {}, lists.configs[0]})) << "a node has 1Gi";
}

Advice made(std::uint64_t evicted, std::uint64_t oom_kills, std::int64_t kept_mib) {
  Advice advice;
  advice.cost = {.oom_kills = oom_kills, .evicted = evicted, .kept_free = mebibytes(kept_mib), .runs = 1};
  return advice;
}

TEST(Advice, SaysWhichSettingIsNoBetterThanAnother) {
  std::vector<Advice> all{made(3, 1, 100), made(3, 0, 100), made(1, 0, 400), made(3, 0, 200), made(3, 0, 100)};
  all.push_back({.choice = {"9Gi", {}, {}}, .cost = {}, .impossible = invalid("node", "too much"), .worse_than = {}});
  compare(all);
  EXPECT_EQ(all[0].worse_than, 1U);
  EXPECT_FALSE(all[1].worse_than) << "the same cost is not worse";
  EXPECT_FALSE(all[2].worse_than);
  EXPECT_EQ(all[3].worse_than, 1U);
  EXPECT_FALSE(all[4].worse_than);
  EXPECT_FALSE(all[5].worse_than);
  const std::string text = advice_text(all);
  EXPECT_THAT(text, HasSubstr("cannot be: "));
  EXPECT_THAT(text, HasSubstr("no better than 1"));
  const api::Json json = advice_json(all);
  EXPECT_EQ(json.find("choices")->if_array()->size(), 6U);
  EXPECT_EQ(json.find("choices")->if_array()->front().at({"cost", "keptFreeBytesPerNode"})->if_int64(), 100 << 20);
}

TEST(Advice, CostsOfRunsAddUpAndMemoryIsTheAverage) {
  Cost sum;
  add(sum, made(1, 2, 100).cost);
  add(sum, made(3, 0, 100).cost);
  add(sum, made(0, 0, 400).cost);
  EXPECT_EQ(sum.evicted, 4U);
  EXPECT_EQ(sum.oom_kills, 2U);
  EXPECT_EQ(sum.runs, 3U);
  EXPECT_EQ(sum.kept_free, mebibytes(200));
  Cost controllers;
  controllers.runs = controllers.recordings = controllers.controllers = 1;
  controllers.tainted = 7;
  add(sum, controllers);
  EXPECT_EQ(sum.runs, 4U);
  EXPECT_EQ(sum.tainted, 7U);
  EXPECT_EQ(sum.kept_free, mebibytes(200)) << "they say nothing of memory";
}

TEST(Advice, WhatIsNotKnownIsNoZero) {
  Advice night;
  night.cost = {.evicted = 3, .kept_free = mebibytes(100), .runs = 1, .recordings = 1, .without_evidence = 2};
  Advice lifecycle;
  lifecycle.cost = {.tainted = 3, .kept_free = {}, .runs = 1, .recordings = 1, .controllers = 1};
  const std::string text = advice_text({night, lifecycle});
  EXPECT_THAT(text, HasSubstr("as it is, 2 without evidence"));
  const api::Json json = advice_json({night, lifecycle});
  const auto& choices = *json.find("choices")->if_array();
  EXPECT_TRUE(choices[0].at({"cost", "oomKills"})->is_null());
  EXPECT_EQ(choices[0].at({"cost", "keptFreeBytesPerNode"})->if_int64(), 100 << 20);
  EXPECT_EQ(choices[0].at({"cost", "withoutEvidence"})->if_int64(), 2);
  EXPECT_TRUE(choices[1].at({"cost", "keptFreeBytesPerNode"})->is_null());
  EXPECT_EQ(choices[1].at({"cost", "tainted"})->if_int64(), 3);
}

}  // namespace
}  // namespace spillway::sim
