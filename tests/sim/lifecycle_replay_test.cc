// Goal: what a controller recorded while nodes were lost and came back replays to the same decisions, from its
// beginning and from the middle; and to others under another configuration.
#include "sim/replay/lifecycle_replay.h"

#include "sim/cluster.h"
#include "sim/replay/recorded_cost.h"

#include "recording/frame.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::sim {
namespace {

class KeptRecording final : public recording::Sink {
 public:
  std::size_t segment_bytes() const override { return std::size_t{3} << 10U; }

  bool begin_segment(std::string bytes) override {
    if (full) return false;
    segments.push_back(std::move(bytes));
    return true;
  }

  bool append(std::string bytes) override {
    if (full) return false;
    segments.back() += bytes;
    return true;
  }

  void keep(std::string_view why) override { kept.emplace_back(why); }

  /// The recording without the first segments.
  std::string file(std::size_t from = 0) const {
    std::string made;
    for (std::size_t i = from; i < segments.size(); ++i)
      EXPECT_TRUE(recording::append_segment(made, segments[i], recording::kControllerKind));
    return made;
  }

  bool full = false;
  std::vector<std::string> segments;
  std::vector<std::string> kept;
};

/// A zone is cut off for four minutes, one more node crashes and comes back; the same night for every seed but for what
/// the network does.
void record_night(KeptRecording& recording, std::uint64_t seed, bool restarts = false) {
  ClusterOptions options;
  options.seed = seed;
  options.nodes = 9;
  options.zones = 3;
  options.controllers.recording = &recording;
  options.controllers.node_lifecycle.monitor.health.node_monitor_grace_period = seconds(40);
  Cluster cluster(std::move(options));
  cluster.run_for(minutes(2));
  for (const std::size_t node : {0U, 3U, 6U}) cluster.partition_node(node);
  cluster.run_for(seconds(30));
  cluster.crash_node(1);
  cluster.run_for(seconds(210));
  if (restarts) {
    cluster.crash_controllers();
    cluster.run_for(seconds(5));
    cluster.restart_controllers();
  }
  for (const std::size_t node : {0U, 3U, 6U}) cluster.heal_node(node);
  cluster.run_for(minutes(1));
  cluster.restart_node(1);
  cluster.run_for(minutes(2));
}

std::string problem_of(const Result<LifecycleReplayReport>& report) {
  if (!report) return report.error().text();
  std::string problem;
  for (const recording::ReplayRow& row : report->rows) {
    if (row.same) continue;
    const auto text = [](const std::optional<recording::ReplayOutcome>& each) {
      return each ? each->subject + " " + each->what + " at " + std::to_string(each->at.mono.time_since_epoch().count())
                  : std::string("nothing");
    };
    problem += "decided " + text(row.decided) + ", would be " + text(row.would_be) + "\n";
  }
  return problem;
}

std::size_t count(const LifecycleReplayReport& report, const std::string& what) {
  return static_cast<std::size_t>(std::ranges::count_if(
      report.rows, [&what](const recording::ReplayRow& row) { return row.decided && row.decided->what == what; }));
}

TEST(LifecycleReplay, ItsOwnConfigurationDecidesTheSame) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    KeptRecording recording;
    record_night(recording, seed);
    const auto report = replay_lifecycle(recording.file());
    EXPECT_EQ(problem_of(report), "") << seed;
    ASSERT_TRUE(report);
    EXPECT_EQ(report->nodes, 9U);
    EXPECT_EQ(report->runs, 1U);
    EXPECT_GT(report->heartbeats, 200U);
    EXPECT_EQ(count(*report, "marked Unknown"), 4U);
    EXPECT_GE(count(*report, "tainted unreachable"), 4U);
    EXPECT_EQ(count(*report, "untainted"), 4U);
    EXPECT_EQ(count(*report, "FullDisruption"), 1U);
    EXPECT_EQ(recording.kept, std::vector<std::string>{"zone-down"});
  }
}

TEST(LifecycleReplay, BeginsWhereTheRingHasForgottenWhatWasBefore) {
  KeptRecording recording;
  record_night(recording, 1);
  ASSERT_GE(recording.segments.size(), 3U);
  for (std::size_t from = 1; from < recording.segments.size(); ++from) {
    const auto report = replay_lifecycle(recording.file(from));
    EXPECT_EQ(problem_of(report), "") << "from segment " << from;
  }
}

TEST(LifecycleReplay, ALeaderThatFollowsAnotherBeginsAnew) {
  KeptRecording recording;
  record_night(recording, 1, true);
  const auto report = replay_lifecycle(recording.file());
  EXPECT_EQ(problem_of(report), "");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->runs, 2U);
}

TEST(LifecycleReplay, AnotherConfigurationDecidesOtherwise) {
  KeptRecording recording;
  record_night(recording, 1);
  const auto under = [&recording](auto change) {
    return replay_lifecycle(recording.file(), [change](const controllers::RecordedController& was) {
      controllers::RecordedController other = was;
      change(other);
      return Result<controllers::RecordedController>(other);
    });
  };
  const auto patient = under([](auto& other) { other.monitor.health.node_monitor_grace_period = minutes(10); });
  ASSERT_TRUE(patient) << patient.error().text();
  for (const recording::ReplayRow& row : patient->rows)
    EXPECT_FALSE(row.would_be && row.would_be->what == "marked Unknown") << row.would_be->subject;
  EXPECT_GE(patient->different(), 12U);
  const auto earlier = under([](auto& other) { other.monitor.health.node_monitor_grace_period = seconds(20); });
  ASSERT_TRUE(earlier);
  for (const recording::ReplayRow& row : earlier->rows) {
    if (!row.decided || row.decided->what != "marked Unknown") continue;
    ASSERT_TRUE(row.would_be) << row.decided->subject;
    const Duration by = row.decided->at.mono - row.would_be->at.mono;
    EXPECT_GT(by, seconds(18));
    EXPECT_LT(by, seconds(22));
  }
  const auto braked = under([](auto& other) { other.brakes.taint.global = lifecycle::ActLimit{1, minutes(30)}; });
  ASSERT_TRUE(braked);
  const auto held = std::ranges::count_if(braked->rows, [](const recording::ReplayRow& row) {
    return row.would_be && row.would_be->what == "held: taint";
  });
  EXPECT_GE(held, 1);
}

TEST(LifecycleReplay, SaysWhatASettingWouldHaveCost) {
  KeptRecording recording;
  record_night(recording, 1);
  const std::string file = recording.file();
  const auto cost = [&file](const Choice& choice) { return cost_of_recording(file, choice).value_or(Cost()); };
  const Cost as_it_is = cost({});
  EXPECT_EQ((std::vector{as_it_is.runs, as_it_is.recordings, as_it_is.controllers, as_it_is.flips}),
            (std::vector<std::uint64_t>{1, 1, 1, 4}));
  EXPECT_GE(as_it_is.tainted, 4U);
  EXPECT_EQ(as_it_is.evicted, 0U);
  EXPECT_EQ(cost({"500Mi", {}, {}}).tainted, as_it_is.tainted) << "a threshold is the nodes'";
  Choice patient;
  patient.config = ConfigChoice{"patient.yaml", "controllers: {nodeMonitorGracePeriod: 10m}\n", {}};
  EXPECT_EQ(cost(patient).flips, 0U);
  EXPECT_EQ(cost(patient).tainted, 0U);
  Choice braked;
  braked.config = ConfigChoice{"braked.yaml", "brakes: {taint: 1/30m}\n", {}};
  EXPECT_LT(cost(braked).tainted, as_it_is.tainted);
  EXPECT_GE(cost(braked).tainted, 1U);
  const Cost on = cost({{}, {}, true});
  EXPECT_LT(on.tainted, as_it_is.tainted) << "three in five minutes";
  braked.brakes = false;
  EXPECT_EQ(cost(braked).tainted, as_it_is.tainted) << "the flag goes before the file";
}

TEST(LifecycleReplay, WhatFoundNoRoomIsAGap) {
  KeptRecording recording;
  ClusterOptions options;
  options.nodes = 3;
  options.controllers.recording = &recording;
  Cluster cluster(std::move(options));
  cluster.run_for(minutes(1));
  recording.full = true;
  cluster.run_for(minutes(1));
  recording.full = false;
  cluster.run_for(minutes(1));
  const auto report = replay_lifecycle(recording.file());
  EXPECT_EQ(problem_of(report), "");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->gaps, 1U);
}

TEST(LifecycleReplay, RefusesWhatIsNone) {
  KeptRecording recording;
  record_night(recording, 1);
  const std::string file = recording.file();
  EXPECT_EQ(replay_lifecycle("nothing").error().message, "not a recording of a controller, or one of another version");
  EXPECT_EQ(replay_lifecycle(recording::kControllerKind.header).error().message, "the recording holds nothing");
  const auto torn = replay_lifecycle(std::string_view(file).substr(0, file.size() - 3));
  ASSERT_TRUE(torn);
  EXPECT_GT(torn->torn_bytes, 0U);
  std::string strange(recording::kControllerKind.header);
  ASSERT_TRUE(recording::append_frame(strange, "\x09strange"));
  EXPECT_EQ(replay_lifecycle(strange).error().message, "a record that cannot be read");
  // A heartbeat of a node without a name record.
  std::string without(recording::kControllerKind.header);
  controllers::ControllerState state;
  ASSERT_TRUE(recording::append_frame(without, controllers::encode_record(state)));
  EXPECT_EQ(replay_lifecycle(without).error().message,
            "a controller that checks its nodes more often than every 100 ms");
  without = recording::kControllerKind.header;
  state.controller.node_monitor_period = seconds(5);
  ASSERT_TRUE(recording::append_frame(without, controllers::encode_record(state)));
  std::string still = without;
  ASSERT_TRUE(recording::append_frame(
      still, controllers::encode_record(controllers::NodeGone{{Instant(hours(9'000)), WallTime()}, "n"})));
  EXPECT_EQ(replay_lifecycle(still).error().message, "nothing happens in the recording for more than a month");
  controllers::SignsOfLife heartbeats;
  heartbeats.signs.push_back({.node = 7});
  ASSERT_TRUE(recording::append_frame(without, controllers::encode_record(heartbeats)));
  EXPECT_EQ(replay_lifecycle(without).error().message, "a heartbeat of node 7, of 0");
}

}  // namespace
}  // namespace spillway::sim
