// Goal: a threshold below the point at which the OOM killer acts is reported: at the start, in lint and in explain.
#include "agent/contract/blind_zone.h"

#include "agent/config/config_lint.h"
#include "agent/scripted_cluster.h"
#include "api/json/json.h"
#include "policy/eviction/threshold_parse.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

std::vector<eviction::Threshold> hard(const std::string& memory) {
  return eviction::parse_thresholds({.hard = {{"memory.available", memory}}}).value();
}

EvictionOptions on_a_host(Bytes memory) {
  EvictionOptions options;
  options.blind_zone_ahead = oom_blind_zone(memory);
  return options;
}

TEST(BlindZone, GrowsWithTheMachineUpToAPoint) {
  EXPECT_EQ(oom_blind_zone(mebibytes(256)), mebibytes(55));
  EXPECT_EQ(oom_blind_zone(mebibytes(512)), mebibytes(55));
  EXPECT_EQ(oom_blind_zone(gibibytes(1)), mebibytes(75));
  EXPECT_EQ(oom_blind_zone(mebibytes(1536)), mebibytes(95));
  EXPECT_EQ(oom_blind_zone(gibibytes(64)), mebibytes(95));
}

TEST(BlindZone, FindsHardThresholdsOfMemoryWithinIt) {
  const Bytes memory = gibibytes(4);
  const EvictionOptions options = on_a_host(memory);
  EXPECT_TRUE(thresholds_in_blind_zone(hard("100Mi"), memory, options).empty());
  ASSERT_EQ(thresholds_in_blind_zone(hard("95Mi"), memory, options).size(), 1u);
  ASSERT_EQ(thresholds_in_blind_zone(hard("1%"), memory, options).size(), 1u);
  const auto soft = eviction::parse_thresholds(
      {.soft = {{"memory.available", "50Mi"}}, .soft_grace_period = {{"memory.available", "1m"}}});
  EXPECT_TRUE(thresholds_in_blind_zone(*soft, memory, options).empty()) << "it waits anyway";
}

TEST(BlindZone, ASliceAndMemAvailableHaveNone) {
  const Bytes memory = gibibytes(4);
  EXPECT_TRUE(thresholds_in_blind_zone(hard("10Mi"), memory, {}).empty());
  EvictionOptions options = on_a_host(memory);
  options.memory_watch.estimator = eviction::MemoryEstimator::kAvailable;
  EXPECT_TRUE(thresholds_in_blind_zone(hard("10Mi"), memory, options).empty());
}

TEST(BlindZone, WhatWasMeasuredCountsIfItIsMore) {
  EvictionOptions options = on_a_host(gibibytes(4));
  options.blind_zone = mebibytes(150);
  const auto blind = thresholds_in_blind_zone(hard("120Mi"), gibibytes(4), options);
  ASSERT_EQ(blind.size(), 1u);
  EXPECT_EQ(blind.front().blind_zone, mebibytes(150));
  EXPECT_EQ(blind.front().threshold, mebibytes(120));
}

TEST(BlindZone, TheAgentWarnsAtItsStart) {
  std::vector<std::string> warnings;
  const telemetry::Log log([&](telemetry::Level level, std::string_view event, std::span<const telemetry::Field>) {
    if (level == telemetry::Level::kWarning) warnings.emplace_back(event);
  });
  const auto start = [&](Bytes zone) {
    AgentOptions options = node_options();
    options.eviction.thresholds.hard = {{"memory.available", "50Mi"}};
    options.eviction.blind_zone_ahead = zone;
    warnings.clear();
    const auto agent = Agent::create(options, machine_info(), Rng(1),
                                     {.log = log, .metrics = nullptr, .journal = nullptr, .reaction = nullptr}, {}, {});
    ASSERT_TRUE(agent) << agent.error().text();
  };
  start(Bytes{});
  EXPECT_TRUE(warnings.empty());
  start(mebibytes(55));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings.front().find("OOM killer"), std::string::npos);
}

TEST(BlindZone, ExplainingTheNodeSaysIt) {
  AgentOptions options = node_options();
  options.eviction.blind_zone_ahead = mebibytes(120);
  ScriptedCluster cluster(options);
  cluster.start();
  cluster.run(seconds(2));
  EXPECT_NE(api::to_text(cluster.agent().decisions(cluster.now())).find("in-blind-zone"), std::string::npos);
}

}  // namespace
}  // namespace spillway::agent
