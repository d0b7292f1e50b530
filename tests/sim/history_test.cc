// The recorded course of a run is true, and recording changes nothing in the run.
#include "base/check.h"
#include "cli/text/explanation.h"
#include "sim/cluster.h"
#include "sim/history/recorder.h"
#include "sim/report/page_data.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"
#include "sim/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::sim {
namespace {

std::size_t count_of(const RunHistory& history, EventKind kind) {
  return static_cast<std::size_t>(std::ranges::count(history.events, kind, &Event::kind));
}

/// A zone is silent for ten minutes of twenty.
RunOutcome run_outage(RunObserver* observer) {
  const std::string text =
      "name: outage\n"
      "cluster: {nodes: 9, zones: 3, podsPerNode: 1}\n"
      "duration: 18m\n"
      "timeline:\n"
      "- {at: 0s, partition: {zone: zone-0}, for: 10m}\n";
  const auto none = [](const std::string& file) -> Result<std::string> { return invalid(file, "cannot be read"); };
  const auto outage = parse_scenario("outage.yaml", text, none);
  SPILLWAY_CHECK(outage.has_value());
  return run_scenario(*outage, {.seed = 3, .observer = observer, .should_continue = {}});
}

/// A pod that takes memory until the node has none left.
api::Json hog() {
  const api::Json container =
      api::Json::object({{"name", "main"},
                         {"image", "none"},
                         {"command", api::Json::array({"stress", "--memory", "600Mi", "--rate", "20Mi/s"})}});
  return api::Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", api::Json::object({{"name", "hog"}})},
       {"spec", api::Json::object({{"restartPolicy", "Never"}, {"containers", api::Json::array({container})}})}});
}

TEST(NodeStateBits, EachPartHasItsPlace) {
  EXPECT_EQ(NodeState{}.packed(), 0);
  EXPECT_EQ((NodeState{.ready = Status::kUnknown}).packed(), 3);
  EXPECT_EQ((NodeState{.memory_pressure = Status::kTrue}).packed(), 1 << 2);
  EXPECT_EQ((NodeState{.disk_pressure = Status::kFalse}).packed(), 2 << 4);
  EXPECT_EQ((NodeState{.pid_pressure = Status::kTrue}).packed(), 1 << 6);
  EXPECT_EQ((NodeState{.tainted = true}).packed(), 1 << 8);
  EXPECT_EQ((NodeState{.unschedulable = true}).packed(), 1 << 9);
  EXPECT_EQ((NodeState{.machine = Machine::kCutOff}).packed(), 2 << 10);
}

TEST(Recorder, ChangesNothing) {
  Recorder recorder({.name = "outage", .story = {}, .seed = 3});
  const RunOutcome watched = run_outage(&recorder);
  EXPECT_EQ(watched.trace_hash, run_outage(nullptr).trace_hash);
  EXPECT_EQ(watched.violations, std::vector<std::string>());
}

TEST(Recorder, AZoneOutageFromItsBeginningToItsEnd) {
  Recorder recorder({.name = "outage", .story = {}, .seed = 3});
  static_cast<void>(run_outage(&recorder));
  const RunHistory& history = recorder.history();
  EXPECT_EQ(history.length_ms, (15 + 120 + 18 * 60) * 1000);  // boot, rest, timeline
  EXPECT_EQ(history.timeline_ms, (15 + 120) * 1000);
  EXPECT_EQ(history.sample_ms, 1000);
  ASSERT_EQ(history.nodes.size(), 9U);
  ASSERT_EQ(history.zones.size(), 3U);
  EXPECT_EQ(count_of(history, EventKind::kNotReady), 3U);
  EXPECT_EQ(count_of(history, EventKind::kReady), 3U);
  EXPECT_EQ(count_of(history, EventKind::kTainted), 3U);
  EXPECT_EQ(count_of(history, EventKind::kUntainted), 3U);
  EXPECT_EQ(count_of(history, EventKind::kMachine), 2U);  // the zone fails and recovers
  EXPECT_EQ(count_of(history, EventKind::kEvicted), 0U);
  EXPECT_GT(count_of(history, EventKind::kDeleted), 0U);

  EXPECT_EQ(history.zones[0].name, "zone-0");
  const Series& state = history.zones[0].state;
  const auto fully = static_cast<std::int32_t>(lifecycle::ZoneState::kFullDisruption);
  EXPECT_NE(std::ranges::find(state, fully, &Point::value), state.end());
  EXPECT_EQ(state.back().value, static_cast<std::int32_t>(lifecycle::ZoneState::kNormal));
  EXPECT_EQ(history.zones[1].state.size(), 1U);  // always normal

  ASSERT_EQ(history.thresholds.size(), 1U);
  EXPECT_EQ(history.thresholds[0], (std::vector<MemoryThreshold>{{64 * 1024, 0}}));
  EXPECT_EQ(history.nodes[0].memory_kib, 64 * 1024 * 1024);
  const NodeState well{.ready = Status::kTrue,
                       .memory_pressure = Status::kFalse,
                       .disk_pressure = Status::kFalse,
                       .pid_pressure = Status::kFalse};
  for (const NodeHistory& node : history.nodes) EXPECT_EQ(node.state.back().value, well.packed()) << node.name;
}

TEST(Recorder, WhatTheControllersDecidedAboutANode) {
  Recorder recorder({.name = "outage", .story = {}, .seed = 3});
  static_cast<void>(run_outage(&recorder));
  std::vector<policy::Verdict> verdicts;
  for (const RecordedDecision& each : recorder.history().decisions) {
    if (each.decision.subject.kind == "Node" && each.node == 0) verdicts.push_back(each.decision.verdict);
  }
  ASSERT_FALSE(verdicts.empty());
  EXPECT_NE(std::ranges::find(verdicts, policy::Verdict::kActs), verdicts.end());
  EXPECT_EQ(verdicts.back(), policy::Verdict::kRests);  // after the zone had recovered
  for (const RecordedDecision& each : recorder.history().decisions) EXPECT_NE(each.node, 1) << each.at_ms;
}

TEST(Recorder, AnEvictionWithItsDecisionAndItsMemory) {
  Recorder recorder({.name = "hog", .story = {}, .seed = 1});
  ClusterOptions options;
  options.nodes = 1;
  Cluster cluster(options);
  recorder.on_begin(cluster);
  cluster.run_for(seconds(15));
  cluster.create("/api/v1/namespaces/default/pods", hog());
  cluster.run_for(minutes(2));
  recorder.on_end(cluster);
  const RunHistory& history = recorder.history();
  const auto evicted = std::ranges::find(history.events, EventKind::kEvicted, &Event::kind);
  ASSERT_NE(evicted, history.events.end());
  EXPECT_EQ(evicted->subject, "default/hog");
  EXPECT_EQ(evicted->node, 0);
  const auto decided = std::ranges::find_if(history.decisions, [](const RecordedDecision& each) {
    return each.decision.area == policy::Area::kEviction && each.decision.action == "evict";
  });
  ASSERT_NE(decided, history.decisions.end());
  EXPECT_LE(decided->at_ms, evicted->at_ms);
  EXPECT_EQ(decided->decision.verdict, policy::Verdict::kActs);
  EXPECT_FALSE(decided->decision.candidates.empty());
  const std::string explained = cli::explain(decided->decision, std::nullopt, cli::Paint::kNone);
  EXPECT_NE(explained.find("gone after"), std::string::npos) << explained;  // the outcome is added later
  const Series& available = history.nodes[0].available_kib;
  EXPECT_LT(
      std::ranges::min(available, {}, [](const Point& point) { return point.value < 0 ? 1 << 30 : point.value; }).value,
      110 * 1024);
  EXPECT_GT(available.back().value, 480 * 1024);
}

TEST(Recorder, DecisionsReadAsExplainSaysThem) {
  Recorder recorder({.name = "outage", .story = {}, .seed = 3});
  static_cast<void>(run_outage(&recorder));
  const auto explain = [](const policy::Decision& decision) {
    return cli::explain(decision, std::nullopt, cli::Paint::kNone);
  };
  const std::string data = page_data(std::span(&recorder.history(), 1), explain);
  EXPECT_NE(data.find("node node-00000 is tainted: its last sign of life (lease) is"), std::string::npos);
  EXPECT_NE(data.find("    zone ::zone-0 is "), std::string::npos);
}

TEST(Recorder, SeriesHoldChangesOnly) {
  Recorder recorder({.name = "outage", .story = {}, .seed = 3});
  static_cast<void>(run_outage(&recorder));
  const auto check = [](const Series& series) {
    for (std::size_t i = 1; i < series.size(); ++i) {
      EXPECT_LT(series[i - 1].at_ms, series[i].at_ms);
      EXPECT_NE(series[i - 1].value, series[i].value);
    }
  };
  for (const NodeHistory& node : recorder.history().nodes) {
    check(node.state);
    check(node.available_kib);
    EXPECT_LE(node.available_kib.size(), 4U) << "memory that does not move is one value";
  }
  for (const ZoneHistory& zone : recorder.history().zones) check(zone.waiting);
  check(recorder.history().running);
}

TEST(Recorder, KeepsItsBoundsAndCountsTheRest) {
  Recorder recorder({.name = "outage", .story = {}, .seed = 3, .points_max = 20, .events_max = 5, .decisions_max = 2});
  static_cast<void>(run_outage(&recorder));
  const RunHistory& history = recorder.history();
  EXPECT_EQ(history.events.size(), 5U);
  EXPECT_EQ(history.decisions.size(), 2U);
  EXPECT_GT(history.events_left_out, 0U);
  EXPECT_GT(history.decisions_left_out, 0U);
  EXPECT_GT(history.points_left_out, 0U);
  std::size_t points = history.running.size() + history.pending.size() + history.terminating.size();
  for (const NodeHistory& node : history.nodes) points += node.state.size() + node.available_kib.size();
  for (const ZoneHistory& zone : history.zones) points += zone.state.size() + zone.waiting.size() + zone.brake.size();
  EXPECT_EQ(points, 20U);
}

TEST(Recorder, MayEndBeforeTheCluster) {
  ClusterOptions options;
  options.nodes = 2;
  Cluster cluster(options);
  {
    Recorder recorder({.name = "short", .story = {}, .seed = 1});
    recorder.on_begin(cluster);
    cluster.run_for(seconds(3));
  }
  cluster.run_for(seconds(30));
  EXPECT_EQ(cluster.world().nodes().size(), 2U);
}

}  // namespace
}  // namespace spillway::sim
