// Scenarios played on the product: what they expect holds, the same seed is the same run, brakes never do more.
#include "sim/cluster.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"
#include "sim/scenario/printer.h"
#include "sim/scenario/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace spillway::sim {

namespace {

Result<std::string> read_text(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return invalid(file, "cannot be read");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Scenario load(const std::string& file) {
  const auto beside = [&file](const std::string& name) {
    return read_text(file.substr(0, file.rfind('/') + 1) + name);
  };
  const auto scenario = parse_scenario(file, *read_text(file), beside);
  EXPECT_TRUE(scenario) << scenario.error().text();
  return *scenario;
}

Scenario made(const std::string& text) {
  const auto scenario = parse_scenario("s.yaml", text, read_text);
  EXPECT_TRUE(scenario) << scenario.error().text();
  return *scenario;
}

void expect_all(const RunOutcome& outcome) {
  for (const std::string& violation : outcome.violations) ADD_FAILURE() << violation;
  for (const ExpectationResult& each : outcome.expectations) EXPECT_TRUE(each.held) << each.text << ": " << each.seen;
}

class Named : public ::testing::TestWithParam<std::string> {};

TEST_P(Named, HoldsWhatItExpects) {
  expect_all(run_scenario(load("tests/scenarios/" + GetParam() + ".yaml"), {.seed = 1, .should_continue = {}}));
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Named, ::testing::Values("memory-leak", "imported-zone"));

/// An hour of pods that no node can keep: without the back-off, and with it. No other pod is evicted either way.
TEST(EvictLoop, SlowsDownWithTheBackoff) {
  Scenario scenario = load("tests/scenarios/evict-loop.yaml");
  const auto evictions = [](const RunOutcome& outcome) {
    std::map<std::string, std::size_t> by_owner;
    for (const Happening& each : outcome.happenings) {
      if (each.kind == HappeningKind::kEvicted) ++by_owner[each.owner];
    }
    return by_owner;
  };
  const RunOutcome with = run_scenario(scenario, {.seed = 1, .should_continue = {}});
  expect_all(with);
  auto few = evictions(with);
  scenario.config.controllers.eviction_backoff = false;
  scenario.duration = seconds(20);  // an hour of the scenario takes an hour of processor time
  scenario.expectations.clear();
  const RunOutcome without = run_scenario(scenario, {.seed = 1, .should_continue = {}});
  expect_all(without);
  auto many = evictions(without);
  EXPECT_GT(many["ReplicaSet/default/pinned"], 100U) << "in twenty seconds, replaced at once";
  EXPECT_GE(few["ReplicaSet/default/pinned"], 8U) << "in an hour";
  EXPECT_LE(few["ReplicaSet/default/pinned"], 12U) << "in an hour";
  EXPECT_LE(few["DaemonSet/default/hog"], 2 * 12U) << "of two nodes";
  EXPECT_EQ(few["ReplicaSet/default/web"], 0U);
}

class SmallIncident : public ::testing::TestWithParam<std::string> {};

TEST_P(SmallIncident, RecoversAndBrakesOnlyHold) {
  Scenario scenario = load("examples/incidents/" + GetParam() + ".yaml");
  std::get<GeneratedCluster>(scenario.cluster).nodes = 9;
  const RunOutcome off = run_scenario(scenario, {.seed = 1, .should_continue = {}});
  set_brakes(scenario.config.controllers, true);
  const RunOutcome on = run_scenario(scenario, {.seed = 1, .should_continue = {}});
  expect_all(off);
  expect_all(on);
  for (const HappeningKind kind : {HappeningKind::kFlip, HappeningKind::kTaint, HappeningKind::kDeleted}) {
    EXPECT_LE(on.count(kind), off.count(kind)) << counter_name(kind);
  }
}

INSTANTIATE_TEST_SUITE_P(Incidents, SmallIncident, ::testing::Values("lost-lease-watch", "killed-before-tainting"));

TEST(ZoneOutage, OnlyTheDeadZoneIsTouchedAndAllRecovers) {
  Scenario scenario = load("examples/incidents/zone-outage.yaml");
  std::get<GeneratedCluster>(scenario.cluster).nodes = 12;
  const RunOutcome outcome = run_scenario(scenario, {.seed = 1, .should_continue = {}});
  expect_all(outcome);
  EXPECT_EQ(outcome.count(HappeningKind::kFlip), 4U);
  EXPECT_EQ(outcome.tainted_nodes_max, 4U);
  for (const Happening& each : outcome.happenings) EXPECT_EQ(each.zone.empty() ? "zone-0" : each.zone, "zone-0");
}

/// Seeds 1 to 3; SPILLWAY_ROLLOUT_SEEDS=FIRST-LAST plays others, SPILLWAY_ROLLOUT_SIZE=whole all 500 pods.
std::pair<std::uint64_t, std::uint64_t> rollout_seeds() {
  const char* const text = std::getenv("SPILLWAY_ROLLOUT_SEEDS");
  if (text == nullptr) return {1, 3};
  char* end = nullptr;
  const std::uint64_t first = std::strtoull(text, &end, 10);
  return {first, *end == '-' ? std::strtoull(end + 1, nullptr, 10) : first};
}

Scenario rollout_outage() {
  Scenario scenario = load("tests/scenarios/rollout-outage.yaml");
  if (std::getenv("SPILLWAY_ROLLOUT_SIZE") != nullptr) return scenario;
  auto& cluster = std::get<GeneratedCluster>(scenario.cluster);
  cluster.nodes = 9;
  cluster.workloads.front().replicas = 30;
  for (TimelineEvent& event : scenario.timeline) {
    if (auto* const scale = std::get_if<ScaleWorkload>(&event.action)) scale->replicas = 27;
  }
  return scenario;
}

TEST(RolloutOutage, KeepsWhatTheStrategyPromises) {
  const Scenario scenario = rollout_outage();
  const auto [first, last] = rollout_seeds();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RunOutcome outcome = run_scenario(scenario, {.seed = seed, .should_continue = {}});
    expect_all(outcome);
    std::set<std::string> owners;
    for (const Happening& each : outcome.happenings) {
      if (each.kind == HappeningKind::kDeleted) owners.insert(each.owner);
    }
    EXPECT_GE(owners.size(), 2U) << "pods of several ReplicaSets were replaced";
  }
}

TEST(Rollout, ThatFitsNowhereHangsUntilItIsUndone) {
  const std::string text =
      "name: x\ncluster: {nodes: 3, zones: 1, workloads: [{deployment: web, replicas: 4, maxUnavailable: 1, maxSurge: "
      "25%}]}\nsettle: 30s\nduration: 4m\n"
      "timeline:\n- {at: 10s, rollout: {deployment: default/web, memory: 20Mi, memoryRequest: 1Ti}}\n";
  const RunOutcome hangs = run_scenario(made(text + "expect: [unplaced >= 1]"), {.seed = 1, .should_continue = {}});
  expect_all(hangs);
  EXPECT_FALSE(hangs.recovered_at);
  const RunOutcome undone =
      run_scenario(made(text + "- {at: 1m, undo: default/web}\nexpect: [unplaced >= 1, recovered]"),
                   {.seed = 1, .should_continue = {}});
  expect_all(undone);
  EXPECT_TRUE(undone.unplaced.empty());
}

TEST(Rollout, WaitsWhileItIsPaused) {
  const auto replaced = [](const std::string& more) {
    const RunOutcome outcome =
        run_scenario(made("name: x\ncluster: {nodes: 3, zones: 1, workloads: [{deployment: web, replicas: "
                          "4}]}\nsettle: 30s\nduration: 2m\ntimeline:\n- {at: 10s, pause: "
                          "default/web}\n- {at: 20s, rollout: {deployment: default/web}}\n" +
                          more),
                     {.seed = 1, .should_continue = {}});
    expect_all(outcome);
    return outcome.count(HappeningKind::kDeleted);
  };
  EXPECT_EQ(replaced(""), 0U);
  EXPECT_EQ(replaced("- {at: 30s, undo: default/web}\n"), 0U);
  EXPECT_EQ(replaced("- {at: 30s, resume: default/web}\n"), 4U);
}

TEST(Rollout, IsPrintedAsItWasRead) {
  const std::string printed = scenario_yaml(made(
      "name: x\ncluster: {nodes: 3, zones: 1, workloads: [{deployment: web, replicas: 4, maxUnavailable: 25%, "
      "maxSurge: "
      "2}]}\ntimeline:\n- {at: 0s, rollout: {deployment: default/web, memory: 20Mi, memoryRequest: 1Gi}}\n- {at: 1s, "
      "pause: default/web, for: 10s}\n- {at: 2s, resume: default/web}\n- {at: 3s, undo: default/web}\n- {at: 4s, "
      "scale: {deployment: default/web, replicas: 3}}\n"));
  EXPECT_EQ(scenario_yaml(made(printed)), printed);
  for (const char* const said : {"maxUnavailable: \"25%\"", "maxSurge: 2", "memoryRequest: 1Gi", "for: 10s", "undo"})
    EXPECT_TRUE(printed.contains(said)) << said << printed;
}

constexpr const char* kShort =
    "name: x\ncluster: {nodes: 4, zones: 2}\nsettle: 30s\nduration: 4m\n"
    "timeline: [{at: 0s, partition: {zone: zone-0}, for: 2m}]";

TEST(RunScenario, TheSameSeedIsTheSameRunAndAnotherIsNot) {
  const Scenario scenario = made(kShort);
  const RunOutcome first = run_scenario(scenario, {.seed = 7, .should_continue = {}});
  EXPECT_EQ(first.trace_hash, run_scenario(scenario, {.seed = 7, .should_continue = {}}).trace_hash);
  EXPECT_NE(first.trace_hash, run_scenario(scenario, {.seed = 8, .should_continue = {}}).trace_hash);
}

class Watching final : public RunObserver {
 public:
  void on_begin(Cluster& cluster) override {
    cluster.world().listen([this](const store::Change&, Now) { ++writes; });
  }

  void on_end(Cluster& cluster) override { nodes = cluster.world().nodes().size(); }

  std::uint64_t writes = 0;
  std::size_t nodes = 0;
};

TEST(RunScenario, AnObserverChangesNothing) {
  const Scenario scenario = made(kShort);
  Watching observer;
  const RunOutcome outcome = run_scenario(scenario, {.seed = 7, .observer = &observer, .should_continue = {}});
  EXPECT_EQ(outcome.trace_hash, run_scenario(scenario, {.seed = 7, .should_continue = {}}).trace_hash);
  EXPECT_EQ(observer.writes, outcome.writes);
  EXPECT_EQ(observer.nodes, 4U);
}

TEST(RunScenario, EndsWhereItIsRequested) {
  int asked = 0;
  const RunOutcome outcome =
      run_scenario(made(kShort), {.seed = 1, .should_continue = [&asked](double) { return ++asked < 5; }});
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(asked, 5);
}

TEST(RunScenario, AOneWayCutTowardsTheServerSilencesNodes) {
  const RunOutcome outcome = run_scenario(
      made("name: x\ncluster: {nodes: 4, zones: 2}\nsettle: 30s\n"
           "timeline: [{at: 0s, partition: {only: [0], way: toServer}, for: 2m}]\nexpect: [flips == 1, recovered]"),
      {.seed = 1, .should_continue = {}});
  expect_all(outcome);
}

std::vector<std::string> evicted_in(const RunOutcome& outcome) {
  std::vector<std::string> pods;
  for (const Happening& each : outcome.happenings) {
    if (each.kind == HappeningKind::kEvicted) pods.push_back(each.object + ": " + each.reason);
  }
  return pods;
}

/// Two machines, each with one of these pods and another one that is not changed.
std::string short_of(const std::string& threshold, const std::string& event, const std::string& expected) {
  return R"(
name: short
cluster:
  nodes: 2
  zones: 1
  disk: 20Gi
  workloads:
  - {daemonSet: quiet, memoryRequest: 10Mi}
  - {replicaSet: hog, replicas: 1}
config:
  agents: {evictionHard: {)" +
         threshold + R"(}, evictionPressureTransitionPeriod: 30s}
timeline:
- )" + event +
         R"(
duration: 10m
expect:
- oomKills == 0
- no: default/quiet-* evicted
)" + expected;
}

TEST(RunScenario, WhoFillsADiskIsEvictedAndGivesItBack) {
  const RunOutcome outcome = run_scenario(
      made(short_of("nodefs.available: 10%", "{at: 1m, disk: {pods: default/hog-*, to: 30Gi, rate: 100Mi/s}}",
                    "- evicted == 1\n- recovered before 9m\n")),
      {.seed = 1, .should_continue = {}});
  expect_all(outcome);
  const auto evicted = evicted_in(outcome);
  ASSERT_EQ(evicted.size(), 1U);
  EXPECT_TRUE(evicted[0].contains("low on resource: ephemeral-storage")) << evicted[0];
}

TEST(RunScenario, ADiskThatIsReclaimedInTimeEvictsNoPod) {
  expect_all(run_scenario(
      made(short_of("nodefs.available: 10%", "{at: 1m, for: 1m, disk: {pods: default/hog-*, to: 10Gi, over: 30s}}",
                    "- evicted == 0\n")),
      {.seed = 1, .should_continue = {}}));
}

TEST(RunScenario, WhoForksTooOftenIsEvicted) {
  const RunOutcome outcome =
      run_scenario(made(short_of("pid.available: 20%", "{at: 1m, fork: {pods: default/hog-*, to: 32000, rate: 500}}",
                                 "- evicted == 1\n- recovered before 9m\n")),
                   {.seed = 1, .should_continue = {}});
  expect_all(outcome);
  const auto evicted = evicted_in(outcome);
  ASSERT_EQ(evicted.size(), 1U);
  EXPECT_TRUE(evicted[0].contains("low on resource: pids")) << evicted[0];
}

/// The time of the first eviction since the timeline began; nullopt: there was none.
std::optional<Duration> first_eviction(const RunOutcome& outcome) {
  for (const Happening& each : outcome.happenings) {
    if (each.kind == HappeningKind::kEvicted) return each.at;
  }
  return std::nullopt;
}

/// The same reader of files, without relief and with it; its page cache grows to more than its node has.
TEST(Relief, APageCacheThatCountsAsWorkingSetEvictsNoPod) {
  Scenario scenario = load("tests/scenarios/page-cache.yaml");
  const RunOutcome with = run_scenario(scenario, {.seed = 1, .should_continue = {}});
  expect_all(with);
  scenario.config.agents->eviction.relief = eviction::Relief::kOff;
  scenario.expectations.clear();
  const RunOutcome without = run_scenario(scenario, {.seed = 1, .should_continue = {}});
  expect_all(without);
  const auto evicted = [](const RunOutcome& outcome) {
    return std::ranges::count(outcome.happenings, HappeningKind::kEvicted, &Happening::kind);
  };
  EXPECT_EQ(evicted(without), 1);
  EXPECT_EQ(evicted(with), 0);
}

/// A leak beside a reader of files: relief can hold it off for a while, but not end it. The agent evicts in time.
TEST(Relief, ALeakIsEvictedWithinAReadingOfTheSameShortage) {
  const auto scenario = [](const std::string& relief) {
    return made(R"(
name: leak
cluster: {nodes: 1, zones: 1, memory: 1Gi, workloads: [{replicaSet: web, replicas: 2, memory: 50Mi}]}
config: {agents: {evictionHard: {memory.available: 200Mi}, memoryRelief: )" +
                relief + R"(}}
timeline: [{at: 10s, memory: {pods: default/web-*, first: 1, to: 1500Mi, rate: 20Mi/s}}]
duration: 2m
expect: [oomKills == 0, evicted == 1 before 1m]
)");
  };
  const RunOutcome without = run_scenario(scenario("false"), {.seed = 1, .should_continue = {}});
  const RunOutcome with = run_scenario(scenario("true"), {.seed = 1, .should_continue = {}});
  expect_all(without);
  expect_all(with);
  const auto usual = first_eviction(without);
  const auto relieved = first_eviction(with);
  ASSERT_TRUE(usual && relieved);
  EXPECT_LE(*relieved, *usual + seconds(1));
}

TEST(RunScenario, WhatReadsFilesIsPrintedAsItWasRead) {
  const Scenario scenario = made(R"(
name: reader
cluster: {nodes: 1, zones: 1}
timeline: [{at: 10s, for: 1m, cache: {pods: default/web-*, to: 500Mi, rate: 5Mi/s, again: true}}]
)");
  const auto* files = std::get_if<ReadFiles>(&scenario.timeline.front().action);
  ASSERT_NE(files, nullptr);
  EXPECT_TRUE(files->again);
  const std::string text = scenario_yaml(scenario);
  EXPECT_EQ(scenario_yaml(made(text)), text);
}

TEST(RunScenario, WhatFillsDisksAndForksIsPrintedAsItWasRead) {
  const Scenario scenario =
      made(short_of("nodefs.available: 10%",
                    "{at: 1m, disk: {pods: default/hog-*, label: app=hog, first: 1, to: 1Gi, rate: 1Mi/s}}\n- {at: 2m, "
                    "for: 1m, fork: {pods: default/hog-*, to: 20, over: 10s}}",
                    "- evicted == 0\n"));
  const std::string printed = scenario_yaml(scenario);
  EXPECT_EQ(scenario_yaml(made(printed)), printed);
  EXPECT_TRUE(printed.contains("1Mi/s") && printed.contains("fork") && printed.contains("disk: 20480Mi")) << printed;
}

TEST(RunScenario, DrainKeepsToTheBudgetAndEndsWithoutPods) {
  const RunOutcome outcome = run_scenario(
      made("name: x\ncluster: {nodes: 3, zones: 1, workloads: [{replicaSet: web, replicas: 6, minAvailable: 5}]}\n"
           "timeline: [{at: 0s, drain: {only: [0]}}]\nexpect: [deletions >= 1, deletions <= 6, recovered]"),
      {.seed = 1, .should_continue = {}});
  expect_all(outcome);
  for (const Happening& each : outcome.happenings) {
    if (each.kind == HappeningKind::kDeleted) EXPECT_EQ(each.node, "node-00000");
  }
}

/// One of two servers counts budgets. It ends before the pods of a node stop being ready; the other one takes its place
/// 25 s later, and gets requests of evictions before that.
TEST(RunScenario, DrainKeepsToTheBudgetWithoutItsController) {
  for (const std::string server : {"server-0", "server-1"}) {
    expect_all(
        run_scenario(made("name: x\nsettle: 20s\nduration: 2m\nconfig: {controllers: {nodeMonitorGracePeriod: 20s}}\n"
                          "cluster: {nodes: 4, zones: 1, podsPerNode: 0, servers: 2, etcd: 3, workloads: [{replicaSet: "
                          "web, replicas: 8, minAvailable: 5}]}\n"
                          "timeline:\n- {at: 0s, crash: {only: [2, 3]}, for: 1m}\n- {at: 14s, crash: " +
                          server +
                          ", for: 46s}\n- {at: 32s, drain: {only: [0]}}\n"
                          "expect: [deletions == 0 before 55s, deletions >= 2]"),
                     {.seed = 1, .should_continue = {}}));
  }
}

TEST(RunScenario, ScaleAndASlowAndAbsentServer) {
  const RunOutcome outcome = run_scenario(
      made("name: x\ncluster: {nodes: 3, zones: 1, podsPerNode: 1}\nsettle: 1m\n"
           "timeline: [{at: 0s, scale: {replicaSet: default/web, replicas: 1}}, {at: 1m, apiServer: away, for: 20s},"
           " {at: 2m, apiServer: {slow: 1s}, for: 1m}]\nexpect: [deletions == 2, flips == 0, recovered]"),
      {.seed = 1, .should_continue = {}});
  expect_all(outcome);
}

TEST(RunScenario, ThatTheNodeIsFullEndsInAnExpectationThatFails) {
  const RunOutcome outcome =
      run_scenario(made("name: x\ncluster: {nodes: 1, zones: 1, memory: 512Mi, workloads: [{replicaSet: "
                        "web, replicas: 1, memory: 20Mi}]}\n"
                        "settle: 1m\nduration: 3m\ntimeline: [{at: 10s, memory: {pods: default/web-*, "
                        "to: 900Mi}}]\nexpect: [oomKills == 0, evicted == 0]"),
                   {.seed = 1, .should_continue = {}});
  EXPECT_FALSE(outcome.all_expectations_held());
}

TEST(Comparison, PutsWhatDiffersFirst) {
  RunOutcome a;
  RunOutcome b;
  b.happenings.push_back(
      {.kind = HappeningKind::kTaint, .object = "n", .node = "n", .zone = {}, .owner = {}, .reason = {}});
  const api::Json json = comparison_json(a, b);
  ASSERT_EQ(json.find("differences")->if_array()->size(), 1U);
  EXPECT_EQ(json.find("differences")->if_array()->front().string_at({"what"}), "taints");
  EXPECT_LT(comparison_text(a, b).find("taints"), comparison_text(a, b).find("flips"));
}

RunOutcome eventful() {
  RunOutcome outcome{.scenario = "night", .story = "a zone is silent", .seed = 7, .nodes = 9, .pods = 30};
  outcome.lasted = seconds(1080);
  for (int i = 0; i < 7; ++i) {
    outcome.happenings.push_back({.at = seconds(60 + i),
                                  .kind = HappeningKind::kDeleted,
                                  .object = "default/web",
                                  .node = "n",
                                  .zone = i < 5 ? "zone-0" : "zone-1",
                                  .owner = "ReplicaSet/default/web-" + std::to_string(i),
                                  .reason = {}});
  }
  outcome.happenings.push_back(
      {.kind = HappeningKind::kFlip, .object = "n", .node = "n", .zone = {}, .owner = {}, .reason = {}});
  outcome.tainted_nodes_max = 3;
  outcome.recovered_at = seconds(629) + milliseconds(995);
  outcome.time_to_recovery = milliseconds(29'995);
  outcome.held_by = {"stall"};
  outcome.expectations = {{"recovered", true, "recovered at 10m29s"}, {"deletions <= 3", false, "deletions was 7"}};
  return outcome;
}

TEST(OutcomeText, TheVerdictIsFirstAndFiguresHaveFewDigits) {
  const std::string text = outcome_text(eventful());
  EXPECT_TRUE(
      text.starts_with("night: failed: 1 of 2 expectations does not hold\n"
                       "a zone is silent\n"
                       "pass recovered (recovered at 10m29s)\n"
                       "FAIL deletions <= 3 (deletions was 7)\n"
                       "\n"
                       "All was well again at 10m29s, 29s after the last event: every node is ready, and every "
                       "pod runs.\n"
                       "7 pods were deleted through the API server (1 of ReplicaSet/default/web-0, 5 in zone "
                       "zone-0).\n"))
      << text;
  EXPECT_NE(text.find("Of 9 nodes, at most 3 were tainted NoExecute at the same time"), text.npos) << text;
  EXPECT_NE(text.find("\n9 nodes, 30 pods, 18m0s of virtual time, seed 7\n"), text.npos) << text;
  EXPECT_NE(text.find("\n         7  pods deleted (deletions)\n"), text.npos) << text;
  EXPECT_NE(text.find("ReplicaSet/default/web-4\n            and 2 more (-o json)\n"), text.npos) << text;
  EXPECT_EQ(text.find("995"), text.npos) << text;
}

TEST(OutcomeText, EveryResultHasItsVerdict) {
  RunOutcome outcome = eventful();
  outcome.expectations[1].held = true;
  EXPECT_EQ(summary_of(outcome).verdict, "passed: all 2 expectations hold");
  EXPECT_TRUE(summary_of(outcome).is_good);
  outcome.expectations.pop_back();
  EXPECT_EQ(summary_of(outcome).verdict, "passed: its expectation holds");
  outcome.expectations.clear();
  EXPECT_EQ(summary_of(outcome).verdict, "recovered; the scenario expects nothing in particular");
  outcome.recovered_at.reset();
  outcome.unrecovered = {"pod a", "pod b", "pod c", "pod d"};
  EXPECT_EQ(summary_of(outcome).verdict, "not recovered; the scenario expects nothing in particular");
  EXPECT_FALSE(summary_of(outcome).is_good);
  EXPECT_EQ(summary_of(outcome).sentences.front(), "Not well at the end: pod a, pod b, pod c and others.");
  outcome.violations = {"two pods of one name"};
  EXPECT_EQ(summary_of(outcome).verdict,
            "a bug of Spillway: 1 property was violated; report it with the file and the seed");
}

TEST(OutcomeText, ATimeBeforeABoundNeverReadsAsTheBound) {
  EXPECT_EQ(virtual_time_text(seconds(300) - Duration(1)), "4m59s");
  EXPECT_EQ(virtual_time_text(seconds(300)), "5m0s");
  EXPECT_EQ(virtual_time_text(milliseconds(1500) + Duration(7)), "1.5s");
  EXPECT_EQ(virtual_time_text(std::nullopt), "never");
}

TEST(Comparison, BeginsWithBothVerdictsInTheWordsOfOneRun) {
  RunOutcome b = eventful();
  b.scenario = "night under b.yaml";
  b.happenings.clear();
  b.expectations[1].held = true;
  const std::string text = comparison_text(eventful(), b);
  EXPECT_TRUE(
      text.starts_with("A  night: failed: 1 of 2 expectations does not hold\n"
                       "B  night under b.yaml: passed: all 2 expectations hold\n"))
      << text;
  for (const RunSummary::Figure& each : summary_of(b).figures)
    EXPECT_NE(text.find(each.words), text.npos) << each.words;
}

// Faults of machines and of their links.

std::optional<Duration> time_of_first(const RunOutcome& outcome, HappeningKind kind) {
  for (const Happening& each : outcome.happenings) {
    if (each.kind == kind) return each.at;
  }
  return std::nullopt;
}

TEST(Machines, AWrongClockIsNotAFailure) {
  const RunOutcome outcome =
      run_scenario(made("name: x\ncluster: {nodes: 3, zones: 1}\nsettle: 30s\nduration: 5m\ntimeline:\n"
                        "- {at: 10s, jumpClock: {only: [0], by: -1h}}\n"
                        "- {at: 20s, jumpClock: {only: [1], by: 1h}}\n"
                        "expect: [flips == 0, taints == 0, deletions == 0]"),
                   {.seed = 1, .should_continue = {}});
  expect_all(outcome);
}

TEST(Machines, ALinkMayBeBadWithoutLosingTheNodeAndLoseItWhenNothingArrives) {
  const auto flips = [](const std::string& link) {
    const RunOutcome outcome = run_scenario(
        made("name: x\ncluster: {nodes: 4, zones: 1}\nsettle: 30s\nduration: 4m\ntimeline:\n- {at: 0s, link: " + link +
             ", for: 2m}\nexpect: [recovered before 4m]"),
        {.seed = 1, .should_continue = {}});
    expect_all(outcome);
    return outcome.count(HappeningKind::kFlip);
  };
  EXPECT_EQ(flips("{only: [0], latency: 2s, lost: 50000}"), 0U);
  EXPECT_EQ(flips("{only: [0], lost: 1000000}"), 1U) << "the others' links are as good as before";
}

constexpr const char* kHog =
    "name: x\ncluster: {nodes: 1, zones: 1, memory: 1Gi, workloads: [{replicaSet: web, replicas: 2, memory: 100Mi, "
    "memoryRequest: 100Mi}]}\nconfig: {agents: {evictionHard: {memory.available: 300Mi}}}\nsettle: 30s\n"
    "duration: 3m\n";

TEST(Machines, APodThatHangsHoldsItsMemoryAndEndsWhenItCan) {
  const std::string leak = "- {at: 30s, memory: {pods: default/web-*, first: 1, to: 800Mi}}\n";
  const RunOutcome hangs =
      run_scenario(made(kHog + ("timeline:\n- {at: 0s, stuck: {pods: default/web-*}, for: 2m}\n" + leak)),
                   {.seed = 1, .should_continue = {}});
  const RunOutcome ends = run_scenario(made(kHog + ("timeline:\n" + leak)), {.seed = 1, .should_continue = {}});
  expect_all(hangs);
  expect_all(ends);
  ASSERT_TRUE(time_of_first(ends, HappeningKind::kEvicted));
  EXPECT_LT(*time_of_first(ends, HappeningKind::kEvicted), seconds(60));
  ASSERT_TRUE(time_of_first(hangs, HappeningKind::kEvicted));
  EXPECT_GE(*time_of_first(hangs, HappeningKind::kEvicted), minutes(2)) << "it is evicted when it has ended";
}

TEST(Machines, AnAgentEvictsByTheThresholdsItWasStartedWithLast) {
  const std::string cluster =
      "name: x\ncluster: {nodes: 1, zones: 1, memory: 1Gi, workloads: [{replicaSet: web, replicas: 2, memory: 200Mi, "
      "memoryRequest: 10Mi}]}\nconfig: {agents: {evictionHard: {memory.available: 300Mi}}}\nsettle: 30s\n"
      "duration: 3m\n";
  const auto evicted = [&cluster](const std::string& timeline) {
    const RunOutcome outcome =
        run_scenario(made(cluster + "timeline:\n" + timeline), {.seed = 1, .should_continue = {}});
    expect_all(outcome);
    EXPECT_EQ(outcome.count(HappeningKind::kFlip), 0U);
    return outcome.count(HappeningKind::kEvicted);
  };
  const std::string leak = "- {at: 1m, memory: {pods: default/web-*, first: 1, to: 600Mi}}\n";
  EXPECT_EQ(evicted(leak), 1U);
  EXPECT_EQ(evicted("- {at: 30s, thresholds: {evictionHard: {memory.available: 100Mi}}}\n" + leak), 0U);
  // Only for a moment: its ReplicaSet makes another pod for each one that is evicted.
  EXPECT_GT(evicted("- {at: 176s, thresholds: {only: [0], evictionHard: {memory.available: 700Mi}}}\n"), 0U);
}

TEST(Machines, AMachineWithSwapIsSlowBeforeItIsOutOfMemory) {
  const std::string leak = "timeline: [{at: 10s, memory: {pods: default/web-*, to: 3Gi}}]";
  const auto kills = [&leak](const std::string& swap) {
    const RunOutcome outcome = run_scenario(
        made("name: x\ncluster: {nodes: 1, zones: 1, memory: 1Gi, " + swap +
             "workloads: [{replicaSet: web, replicas: 2, memory: 100Mi}]}\nconfig: {agents: {evictionHard: "
             "{memory.available: 64Mi}}}\nsettle: 30s\nduration: 1m\n" +
             leak),
        {.seed = 1, .should_continue = {}});
    return outcome.count(HappeningKind::kOomKill);
  };
  EXPECT_GT(kills(""), 0U);
  EXPECT_EQ(kills("swap: 8Gi, "), 0U);
}

TEST(Machines, ImagesThatCannotBeDeletedCostPods) {
  const auto evicted = [](const std::string& more) {
    const RunOutcome outcome = run_scenario(
        made("name: x\ncluster: {nodes: 1, zones: 1, disk: 20Gi, workloads: [{replicaSet: web, replicas: 2, "
             "memory: 10Mi}]}\nconfig: {agents: {evictionHard: {nodefs.available: 2Gi}}}\nsettle: 30s\n"
             "duration: 3m\ntimeline:\n- {at: 10s, images: {only: [0], to: 17Gi" +
             more + "}, for: 2m}\n"),
        {.seed = 1, .should_continue = {}});
    expect_all(outcome);
    return outcome.count(HappeningKind::kEvicted);
  };
  EXPECT_EQ(evicted(""), 0U);
  EXPECT_GT(evicted(", undeletable: true"), 0U);
}

}  // namespace

}  // namespace spillway::sim
