// Twenty-four seeds of the swarm (`./dev swarm` runs any number): whatever breaks, the properties hold, and in the end
// there is rest; a seed is a file, and the file is the same run.
#include "agent/node/allocatable.h"
#include "policy/eviction/threshold_parse.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"
#include "sim/scenario/printer.h"
#include "sim/swarm/minimise.h"
#include "sim/swarm/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

namespace spillway::sim {
namespace {

Result<std::string> no_files(const std::string& file) {
  return invalid(file, "no such file");
}

RunOutcome run(const Scenario& scenario) {
  return run_scenario(scenario, {.seed = *scenario.seed, .should_continue = {}});
}

class Swarm : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Swarm, HoldsItsPropertiesAndConverges) {
  EXPECT_THAT(run(plan_of(GetParam())).violations, ::testing::IsEmpty()) << "replay: ./dev swarm --seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Swarm, ::testing::Range<std::uint64_t>(1, 25));

/// The same seeds with pods that are replaced before they are deleted, and that leave failed nodes within seconds.
Scenario replacing_first(std::uint64_t seed) {
  Scenario plan = plan_of(seed);
  controllers::TaintEvictionController::Options& evictions = plan.config.controllers.taint_eviction;
  evictions.replace_before_deletion = true;
  evictions.respect_budgets = seed % 3 == 0;
  std::get<GeneratedCluster>(plan.cluster).workloads.front().toleration_seconds =
      2 + static_cast<std::int64_t>(seed % 17);
  return plan;
}

/// The number in SPILLWAY_REPLACING_SEEDS; eight without it.
std::uint64_t replacing_seeds() {
  const char* asked = std::getenv("SPILLWAY_REPLACING_SEEDS");
  return asked == nullptr ? 8 : std::strtoull(asked, nullptr, 10);
}

class ReplacingSwarm : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ReplacingSwarm, HoldsItsPropertiesAndConverges) {
  EXPECT_THAT(run(replacing_first(GetParam())).violations, ::testing::IsEmpty())
      << scenario_yaml(replacing_first(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReplacingSwarm, ::testing::Range<std::uint64_t>(1, 1 + replacing_seeds()));

TEST(Plan, IsTheFileThatItPrints) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const std::string text = scenario_yaml(plan_of(seed));
    const auto read = parse_scenario("s.yaml", text, no_files);
    ASSERT_TRUE(read) << read.error().text() << "\n" << text;
    ASSERT_EQ(scenario_yaml(*read), text);
    ASSERT_EQ(scenario_yaml(plan_of(seed)), text);
  }
}

TEST(Plan, PlaysAsItsFileDoes) {
  for (const std::uint64_t seed : {11U, 12U}) {
    const Scenario plan = plan_of(seed);
    const auto read = parse_scenario("s.yaml", scenario_yaml(plan), no_files);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(run(plan).trace_hash, run(*read).trace_hash);
  }
}

/// Pods that use their requests meet no threshold: else they would be evicted without end, and the cluster never rests.
TEST(Plan, KeepsThresholdsOutOfWhatPodsMayRequest) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Scenario plan = plan_of(seed);
    const agent::AgentOptions& agents = *plan.config.agents;
    const std::int64_t memory = std::get<GeneratedCluster>(plan.cluster).memory.count();
    const auto thresholds = eviction::parse_thresholds(agents.eviction.thresholds);
    ASSERT_TRUE(thresholds);
    const auto kept =
        agent::node_reservation({{"memory", api::Quantity::of_bytes(Bytes{memory})}}, agents, *thresholds);
    ASSERT_TRUE(kept);
    for (const eviction::Threshold& each : *thresholds)
      EXPECT_LE(eviction::amount_of(each.value, memory)->value(), kept->at("memory").value()) << "seed " << seed;
  }
}

/// Two nodes and the drain are all it takes.
bool fails_with_a_drain(const Scenario& scenario) {
  const auto is_drain = [](const TimelineEvent& event) { return std::holds_alternative<DrainNodes>(event.action); };
  return std::get<GeneratedCluster>(scenario.cluster).nodes >= 2 && std::ranges::any_of(scenario.timeline, is_drain);
}

TEST(Minimise, KeepsWhatItTakesToFail) {
  std::uint64_t seed = 1;
  while (!fails_with_a_drain(plan_of(seed))) ++seed;
  const Scenario plan = plan_of(seed);
  const Minimised small = minimise(plan, fails_with_a_drain, 1'000);
  EXPECT_LT(small.runs, 500U);
  EXPECT_EQ(small.scenario.timeline.size(), 1U);
  EXPECT_EQ(std::get<GeneratedCluster>(small.scenario.cluster).nodes, 2);
  EXPECT_TRUE(std::get<GeneratedCluster>(small.scenario.cluster).workloads.empty());
  EXPECT_EQ(small.scenario.faults, ChanceFaults());
  EXPECT_EQ(small.scenario.control_plane, ServerPlan());
  EXPECT_FALSE(small.scenario.rest);
  EXPECT_LT(small.scenario.duration, plan.duration);
}

/// Pods without a place would be another failure than the one that is made small.
TEST(Minimise, KeepsNodesEnoughForThePods) {
  Scenario plan = plan_of(1);
  GeneratedCluster& cluster = std::get<GeneratedCluster>(plan.cluster);
  cluster.nodes = 8;
  cluster.memory = mebibytes(256);
  cluster.workloads.front().replicas = 30;  // with 20Mi each
  const auto has_30 = [](const Scenario& each) {
    const auto& workloads = std::get<GeneratedCluster>(each.cluster).workloads;
    return std::ranges::any_of(workloads, [](const auto& workload) { return workload.replicas == 30; });
  };
  const Minimised small = minimise(plan, has_30, 1'000);
  EXPECT_EQ(std::get<GeneratedCluster>(small.scenario.cluster).workloads.size(), 1U);
  EXPECT_EQ(std::get<GeneratedCluster>(small.scenario.cluster).nodes, 4);
}

TEST(Minimise, KeepsToItsRuns) {
  const auto always = [](const Scenario&) { return true; };
  EXPECT_LE(minimise(plan_of(1), always, 7).runs, 7U);
  const Minimised none = minimise(plan_of(1), [](const Scenario&) { return false; }, 50);
  EXPECT_EQ(scenario_yaml(none.scenario), scenario_yaml(plan_of(1)));
}

}  // namespace
}  // namespace spillway::sim
