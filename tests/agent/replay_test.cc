// Goal: the recorded input of an agent gives the same decisions again, another configuration gives its own, and no file
// makes a replay end otherwise than with an answer. That every input of every test replays alike, ScriptedCluster
// checks itself.
#include "agent/recording/replay.h"

#include "agent/recording/eviction_recorder.h"
#include "agent/scripted_cluster.h"
#include "base/rng.h"

#include "recording/frame.h"
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::agent {
namespace {

/// Memory runs out slowly; the pod "hog" uses most of it.
void run_episode(ScriptedCluster& cluster) {
  cluster.put(pod_document({.name = "hog"}));
  cluster.put(pod_document({.name = "modest", .memory_request = "100Mi"}));
  cluster.host.set_light(true);
  cluster.start();
  cluster.run(seconds(15));
  cluster.host.set_working_set("uid-hog", mebibytes(600));
  cluster.host.set_working_set("uid-modest", mebibytes(50));
  for (std::int64_t left = 400; left >= 90; left -= 10) {
    cluster.host.set_available(mebibytes(left));
    cluster.run(milliseconds(500));
  }
  cluster.run(seconds(1));
  cluster.host.set_available(mebibytes(700));
  cluster.run(seconds(20));
}

/// The recorded configuration with another hard memory threshold.
Replay::Reconfigure with_threshold(const std::string& amount) {
  return [amount](const RecordedNode& node) -> Result<EvictionOptions> {
    EvictionOptions options = node.options;
    options.thresholds.hard["memory.available"] = amount;
    return options;
  };
}

std::vector<const ReplayRow*> evictions(const ReplayReport& report) {
  std::vector<const ReplayRow*> rows;
  for (const ReplayRow& row : report.rows) {
    if ((row.decided ? row.decided : row.would_be)->key.starts_with("evict ")) rows.push_back(&row);
  }
  return rows;
}

TEST(Replays, TheSameConfigurationDecidesTheSame) {
  ScriptedCluster cluster;
  run_episode(cluster);
  const auto report = replay_recording(cluster.recording.file());
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_GT(cluster.recording.segments.size(), 2u) << "more than one segment is joined";
  EXPECT_EQ(report->different(), 0u);
  EXPECT_EQ(report->drifts, 0u);
  EXPECT_EQ(report->runs, 1u);
  EXPECT_EQ(report->gaps, 0u);
  ASSERT_EQ(evictions(*report).size(), 1u);
  const ReplayOutcome& first = *evictions(*report).front()->decided;
  EXPECT_EQ(first.subject, "shop/hog");
  EXPECT_EQ(first.what, "evicted for memory.available, at once");
  EXPECT_EQ(first.line, to_line(cluster.journal.entries.at(0)));
}

TEST(Replays, TheSameConfigurationGivenAsAnotherDecidesTheSame) {
  ScriptedCluster cluster;
  run_episode(cluster);
  const auto report = replay_recording(cluster.recording.file(), with_threshold("100Mi"));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->different(), 0u);
  EXPECT_FALSE(report->rows.empty());
  EXPECT_EQ(report->estimated, 0u) << "whenever it wanted to see everything, everything was seen";
}

TEST(Replays, AHigherThresholdEvictsEarlier) {
  ScriptedCluster cluster;
  run_episode(cluster);
  const auto report = replay_recording(cluster.recording.file(), with_threshold("205Mi"));
  ASSERT_TRUE(report) << report.error().text();
  const ReplayRow& row = *evictions(*report).at(0);
  ASSERT_TRUE(row.decided && row.would_be);
  EXPECT_FALSE(row.same);
  EXPECT_EQ(row.would_be->subject, "shop/hog");
  const Duration earlier = row.decided->at.mono - row.would_be->at.mono;
  EXPECT_GE(earlier, milliseconds(4500)) << "from 200Mi to 90Mi at 20Mi a second";
  EXPECT_LE(earlier, milliseconds(6500));
  EXPECT_GT(report->estimated, 0u) << "nobody looked at the pods then";
}

TEST(Replays, ALowerThresholdEvictsNoPod) {
  ScriptedCluster cluster;
  run_episode(cluster);
  const auto report = replay_recording(cluster.recording.file(), with_threshold("50Mi"));
  ASSERT_TRUE(report) << report.error().text();
  const auto rows = evictions(*report);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows.front()->decided);
  EXPECT_FALSE(rows.front()->would_be);
  EXPECT_GT(report->different(), 0u);
}

TEST(Replays, AConfigurationThatCannotBeIsAnError) {
  ScriptedCluster cluster;
  run_episode(cluster);
  EXPECT_FALSE(replay_recording(cluster.recording.file(), with_threshold("much")));
}

TEST(Replays, BeginAtAnySegment) {
  ScriptedCluster cluster;
  run_episode(cluster);
  const std::vector<std::string> all = cluster.recording.segments;
  ASSERT_GT(all.size(), 3u);
  for (std::size_t first = 1; first < all.size(); ++first) {
    std::string file;
    for (std::size_t i = first; i < all.size(); ++i)
      ASSERT_TRUE(recording::append_segment(file, all[i], recording::kAgentKind));
    const auto report = replay_recording(file);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->different(), 0u) << first;
    EXPECT_EQ(report->drifts, 0u) << first;
  }
}

TEST(Replays, AMissingSegmentIsAGap) {
  ScriptedCluster cluster;
  run_episode(cluster);
  std::string file;
  for (std::size_t i = 0; i < cluster.recording.segments.size(); ++i) {
    if (i != 1) ASSERT_TRUE(recording::append_segment(file, cluster.recording.segments[i], recording::kAgentKind));
  }
  const auto report = replay_recording(file);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->gaps, 1u);
  EXPECT_EQ(report->different(), 0u);
}

TEST(Replays, WhatASinkHasNoRoomForIsAGapAndNothingElse) {
  ScriptedCluster cluster;
  cluster.put(pod_document({.name = "hog"}));
  cluster.start();
  cluster.run(seconds(5));
  const std::size_t before = cluster.recording.segments.size();
  cluster.recording.full = true;
  cluster.run(seconds(25));
  EXPECT_EQ(cluster.recording.segments.size(), before);
  cluster.recording.full = false;
  cluster.run(seconds(25));
  EXPECT_GT(cluster.recording.segments.size(), before) << "tried again";
  const auto report = replay_recording(cluster.recording.file());
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->gaps, 1u);
}

TEST(Replays, AnEvictionAloneKeepsNothingAside) {
  ScriptedCluster cluster;
  run_episode(cluster);
  EXPECT_EQ(cluster.recording.kept, std::vector<std::string>()) << "nothing was killed for want of memory";
}

TEST(Replays, AnOomKillKeepsTheRecordingAside) {
  ScriptedCluster cluster;
  cluster.put(pod_document({.name = "web"}));
  cluster.start();
  cluster.run(seconds(5));
  cluster.send(ContainerExited{.uid = "uid-web", .name = "c", .exit_code = 137, .signal = 9, .oom_killed = true});
  EXPECT_EQ(cluster.recording.kept, std::vector<std::string>{"oom-kill"});
}

TEST(Replays, ANodeThatIsNotReadyAnyMoreKeepsTheRecordingAside) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(15));
  EXPECT_TRUE(cluster.recording.kept.empty()) << "a node that begins is not ready either";
  api::Json node = *cluster.api.find("/api/v1/nodes/n1");
  for (api::Json& each : *node.make({"status", "conditions"}).if_array()) {
    if (each.string_at({"type"}) == "Ready") each["status"] = "Unknown";
  }
  cluster.put(std::move(node));
  cluster.run(milliseconds(50));
  EXPECT_EQ(cluster.recording.kept, std::vector<std::string>{"not-ready"});
}

/// Cuts the file at every byte: an incomplete record at the end is left out, and the rest is replayed.
TEST(Replays, ACutFileIsReplayedAsFarAsItGoes) {
  ScriptedCluster cluster;
  cluster.put(pod_document({.name = "hog"}));
  cluster.start();
  cluster.run(seconds(3));
  const std::string file = cluster.recording.file();
  ASSERT_LT(file.size(), 200'000u);
  int replayed = 0;
  for (std::size_t size = 0; size < file.size(); size += size < 1000 ? 1 : 13) {
    const auto report = replay_recording(std::string_view(file).substr(0, size));
    if (!report) continue;
    ++replayed;
    EXPECT_EQ(report->drifts, 0u);
  }
  EXPECT_GT(replayed, 10);
}

TEST(Replays, AChangedByteIsAnErrorOrACutTail) {
  ScriptedCluster cluster;
  cluster.put(pod_document({.name = "hog"}));
  cluster.start();
  cluster.run(seconds(2));
  const std::string file = cluster.recording.file();
  int refused = 0;
  for (std::size_t at = 0; at < file.size(); at += file.size() > 20'000 ? 7 : 1) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    const auto report = replay_recording(changed);
    if (!report) ++refused;
    if (report) EXPECT_GT(report->torn_bytes, 0u) << at;
  }
  EXPECT_GT(refused, 100);
}

/// Frames with right checksums around anything: an answer or an error, whatever they say.
TEST(Replays, HostileRecordsWithRightChecksumsEndWithAnAnswer) {
  ScriptedCluster cluster;
  cluster.put(pod_document({.name = "hog"}));
  cluster.start();
  cluster.run(seconds(2));
  const std::string file = cluster.recording.file();
  const auto frames = recording::read_frames(file, recording::kAgentKind);
  ASSERT_TRUE(frames);
  Rng rng(5);
  int refused = 0;
  int answered = 0;
  for (int i = 0; i < 600; ++i) {
    std::string hostile(recording::kAgentKind.header);
    for (const std::string_view record : frames->records) {
      std::string changed(record);
      if (rng.below(8) == 0) changed[rng.below(changed.size())] = static_cast<char>(rng.below(256));
      if (rng.below(20) == 0) continue;
      ASSERT_TRUE(recording::append_frame(hostile, changed));
    }
    const Replay::Reconfigure other = rng.below(2) == 0 ? with_threshold("300Mi") : Replay::Reconfigure();
    replay_recording(hostile, other) ? ++answered : ++refused;
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(answered, 5);
}

TEST(Replays, AFileOfSomethingElseIsRefusedInOneLine) {
  const auto report = replay_recording("apiVersion: v1\n");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().text(), "not a recording of an agent, or one of another version");
  EXPECT_FALSE(replay_recording(recording::kAgentKind.header)) << "it holds nothing";
}

}  // namespace
}  // namespace spillway::agent
