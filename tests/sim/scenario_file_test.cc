// Scenario files: parsing, and errors with their place.
#include "sim/scenario/outcome.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/printer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace spillway::sim {

namespace {

const std::string kBad = "tests/scenarios/bad/";  // tests run in the project folder

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Result<std::string> no_files(const std::string& file) {
  return invalid(file, "no such file");
}

Result<Scenario> parse(const std::string& text) {
  return parse_scenario("s.yaml", text, no_files);
}

std::string error_of(const std::string& text) {
  const auto scenario = parse(text);
  return scenario ? "none" : scenario.error().text();
}

TEST(ScenarioFile, EveryExampleReads) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator("examples/incidents")) {
    const auto scenario = parse_scenario(file.path().string(), text_of(file.path().string()), no_files);
    ASSERT_TRUE(scenario) << scenario.error().text();
    EXPECT_EQ(scenario->name, file.path().stem().string());
    EXPECT_FALSE(scenario->expectations.empty());
    ++files;
  }
  EXPECT_GE(files, 8);
}

TEST(ScenarioFile, EveryBadOneSaysWhatIsWrongAndWhere) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kBad)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string file = entry.path().string();
    const auto scenario = parse_scenario(file, text_of(file), no_files);
    ASSERT_FALSE(scenario) << file;
    EXPECT_EQ(scenario.error().text() + "\n", text_of(kBad + entry.path().stem().string() + ".expected"));
    ++files;
  }
  EXPECT_GE(files, 10);
}

TEST(ScenarioFile, SaysItAll) {
  const auto scenario = parse(R"(
name: x
seed: 9
cluster: {nodes: 12, zones: 2, racks: 2, memory: 2Gi, workloads: [{replicaSet: db, replicas: 3, memory: 100Mi}]}
config: {brakes: on, controllers: {nodeMonitorGracePeriod: 40s}, agents: {evictionHard: {memory.available: 300Mi}}}
timeline:
- {at: 1m, partition: {zone: zone-1, skip: 2, every: 3, way: toServer}, for: 90s, repeat: {times: 3, every: 2m}}
- {after: firstUnknown, crash: controllers, for: 30s}
- {at: 2m, memory: {pods: default/db-*, first: 1, to: 900Mi, over: 2m}}
- {at: 3m, heal: {rack: zone-0-rack-1}}
- {at: 4m, thresholds: {only: [2], evictionSoft: {memory.available: 400Mi}, evictionSoftGracePeriod: {memory.available: 1m}}}
expect: [evicted <= 3 before 5m, {no: default/db-* evicted}, recovered before 20m]
)");
  ASSERT_TRUE(scenario) << scenario.error().text();
  EXPECT_EQ(scenario->seed, 9U);
  ASSERT_EQ(scenario->timeline.size(), 5U);
  const auto& change = std::get<ChangeThresholds>(scenario->timeline[4].action);
  EXPECT_EQ(change.eviction.thresholds.soft, (eviction::SignalMap{{"memory.available", "400Mi"}}));
  EXPECT_EQ(change.eviction.thresholds.hard, eviction::default_hard_thresholds());
  EXPECT_EQ(event_text(scenario->timeline[4]),
            "{at: 4m0s, thresholds: {evictionSoft: {memory.available: 400Mi}, evictionSoftGracePeriod: "
            "{memory.available: 1m}, only: [2]}}");
  const auto& cut = std::get<PartitionNodes>(scenario->timeline[0].action);
  EXPECT_EQ(cut.cut, Cut::kToServer);
  EXPECT_EQ(cut.nodes.skip, 2U);
  EXPECT_EQ(scenario->timeline[0].lasts, seconds(90));
  EXPECT_EQ(scenario->timeline[0].times, 3);
  EXPECT_EQ(scenario->timeline[1].when, TimelineEvent::When::kFirstUnknown);
  EXPECT_EQ(std::get<UseMemory>(scenario->timeline[2].action).over, minutes(2));
  EXPECT_EQ(scenario->config.controllers.node_lifecycle.monitor.health.node_monitor_grace_period, seconds(40));
  EXPECT_TRUE(scenario->config.controllers.brakes.stall_share.has_value());
  ASSERT_TRUE(scenario->config.agents);
  EXPECT_EQ(scenario->expectations.size(), 3U);
  EXPECT_EQ(scenario->duration, minutes(16) + seconds(30));  // ten minutes after the last cut
}

TEST(ScenarioFile, ChoosesNodes) {
  const Inventory inventory = inventory_of({.nodes = 8, .zones = 2, .racks = 2, .pods_per_node = 0, .workloads = {}});
  const auto chosen = [&](const NodeChoice& choice) { return chosen_nodes(choice, inventory.machines); };
  EXPECT_EQ(chosen({}).size(), 8U);
  EXPECT_EQ(chosen({.zone = "zone-1", .label = {}, .names = {}, .only = {}}), (std::vector<std::size_t>{1, 3, 5, 7}));
  EXPECT_EQ(chosen({.zone = "zone-1", .label = {}, .names = {}, .skip = 1, .every = 2, .only = {}}),
            (std::vector<std::size_t>{3, 7}));
  EXPECT_EQ(chosen({.zone = {}, .label = std::pair("rack", "zone-0-rack-1"), .names = {}, .only = {}}),
            (std::vector<std::size_t>{2, 6}));
  EXPECT_EQ(chosen({.zone = {}, .label = {}, .names = {"*2"}, .only = {}}), (std::vector<std::size_t>{2}));
}

TEST(ScenarioFile, RefusesAnEndBeforeTheLastEvent) {
  EXPECT_EQ(error_of("name: x\nduration: 1m\ntimeline: [{at: 0s, partition: all, for: 10m}]"),
            "s.yaml:2:1: duration: the timeline ends later: expected at least 600 s");
}

TEST(Expectation, MatchesNames) {
  EXPECT_TRUE(matches_glob("default/db-*", "default/db-0"));
  EXPECT_FALSE(matches_glob("default/db-*", "other/db-0"));
  EXPECT_FALSE(matches_glob("*/db", "default/db-0"));
  EXPECT_TRUE(matches_glob("db-?", "default/db-0"));
  EXPECT_TRUE(matches_glob("*", "default/db-0"));
  EXPECT_FALSE(matches_glob("default*", "default/db-0"));
}

TEST(Expectation, IsEvaluatedByWhatHappenedBefore) {
  RunOutcome outcome;
  outcome.happenings = {{.at = minutes(1),
                         .kind = HappeningKind::kEvicted,
                         .object = "default/a",
                         .node = {},
                         .zone = {},
                         .owner = {},
                         .reason = {}},
                        {.at = minutes(6),
                         .kind = HappeningKind::kEvicted,
                         .object = "default/b",
                         .node = {},
                         .zone = {},
                         .owner = {},
                         .reason = {}}};
  const auto held = [&outcome](std::string_view text) { return evaluate(*parse_expectation(text), outcome).held; };
  EXPECT_TRUE(held("evicted <= 1 before 5m"));
  EXPECT_FALSE(held("evicted <= 1"));
  EXPECT_TRUE(held("evicted == 2 before 7m"));
  EXPECT_FALSE(held("evicted > 2"));
  EXPECT_TRUE(held("taints == 0"));
  EXPECT_FALSE(evaluate(*parse_prohibition("default/b evicted"), outcome).held);
  EXPECT_TRUE(evaluate(*parse_prohibition("default/b evicted before 6m"), outcome).held);
  EXPECT_FALSE(held("recovered"));
  outcome.recovered_at = minutes(8);
  EXPECT_TRUE(held("recovered before 9m"));
  EXPECT_FALSE(held("recovered before 8m"));
}

}  // namespace

}  // namespace spillway::sim
