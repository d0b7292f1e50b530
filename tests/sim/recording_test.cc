// Goal: an episode of pressure in the simulated world, with everything an agent does around it, replays to the same
// decisions, and to others under another threshold.
#include "agent/memory_recording.h"
#include "sim/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace spillway::sim {
namespace {

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

struct Episode {
  std::map<std::string, agent::MemoryRecording> recordings;  // by node

  /// Of the node whose memory ran out.
  const agent::MemoryRecording& of_the_hog() const {
    const auto most = std::ranges::max_element(recordings, {}, [](const auto& each) {
      const auto report = agent::replay_recording(each.second.file());
      return report ? report->rows.size() : 0;
    });
    return most->second;
  }
};

Episode play(std::uint64_t seed) {
  Episode episode;
  ClusterOptions options;
  options.seed = seed;
  options.recording = [&episode](const std::string& node) { return &episode.recordings[node]; };
  Cluster cluster(std::move(options));
  cluster.run_for(minutes(1));
  cluster.create("/api/v1/namespaces/default/pods", hog());
  cluster.run_for(minutes(2));
  return episode;
}

TEST(Recordings, OfASimulatedNodeReplayToTheSameDecisions) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Episode episode = play(seed);
    ASSERT_EQ(episode.recordings.size(), 3u);
    for (const auto& [node, recording] : episode.recordings) EXPECT_EQ(recording.replay_problem(), "") << node;
    const auto report = agent::replay_recording(episode.of_the_hog().file());
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->different(), 0u);
    const auto evicted = [](const agent::ReplayRow& row) {
      return row.decided && row.decided->subject == "default/hog";
    };
    EXPECT_TRUE(std::ranges::any_of(report->rows, evicted)) << seed;
  }
}

TEST(Recordings, OfASimulatedNodeSayWhatAnotherThresholdWouldHaveDone) {
  const Episode episode = play(1);
  const auto report = agent::replay_recording(episode.of_the_hog().file(),
                                              [](const agent::RecordedNode& node) -> Result<agent::EvictionOptions> {
                                                agent::EvictionOptions options = node.options;
                                                options.thresholds.hard = {{"memory.available", "200Mi"}};
                                                return options;
                                              });
  ASSERT_TRUE(report) << report.error().text();
  const auto row = std::ranges::find_if(report->rows, [](const agent::ReplayRow& each) {
    return each.decided && each.decided->subject == "default/hog";
  });
  ASSERT_NE(row, report->rows.end());
  ASSERT_TRUE(row->would_be);
  EXPECT_FALSE(row->same);
  const Duration earlier = row->decided->at.mono - row->would_be->at.mono;
  EXPECT_GT(earlier, seconds(5)) << "from 200Mi to 64Mi at 20Mi a second";
  EXPECT_LT(earlier, seconds(9));
}

}  // namespace
}  // namespace spillway::sim
