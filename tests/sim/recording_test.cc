// Goal: an episode of pressure in the simulated world, with everything an agent does around it, replays to the same
// decisions, and to others under another threshold.
#include "agent/memory_recording.h"
#include "sim/cluster.h"
#include "sim/replay/recorded_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

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

  /// The recording of the node whose memory ran out.
  const agent::MemoryRecording& of_the_hog() const {
    const auto most = std::ranges::max_element(recordings, {}, [](const auto& each) {
      const auto report = agent::replay_recording(each.second.file());
      return report ? report->rows.size() : 0;
    });
    return most->second;
  }
};

Episode run_episode(std::uint64_t seed) {
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
    const Episode episode = run_episode(seed);
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
  const Episode episode = run_episode(1);
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

Cost cost_of_recorded(const std::string& file, const Choice& choice) {
  const auto cost = cost_of_recording(file, choice);
  EXPECT_TRUE(cost) << cost.error().text();
  return cost.value_or(Cost());
}

ConfigChoice config_of(const std::string& text) {
  return {"new.yaml", text, [](const std::string& name) { return Result<std::string>(invalid(name, "no files")); }};
}

TEST(Recordings, SayWhatASettingWouldHaveCost) {
  const std::string file = run_episode(1).of_the_hog().file();
  ASSERT_TRUE(is_recording(file));
  EXPECT_FALSE(is_recording("name: a scenario\n"));
  const Cost as_it_is = cost_of_recorded(file, {});
  EXPECT_EQ((std::vector{as_it_is.evicted, as_it_is.runs, as_it_is.recordings, as_it_is.controllers}),
            (std::vector<std::uint64_t>{1, 1, 1, 0}));
  EXPECT_EQ(as_it_is.without_evidence, 0u);
  const Cost never = cost_of_recorded(file, {"1Mi", {}, {}});
  EXPECT_EQ(never.evicted, 0u) << "the pod stopped growing above it, or was evicted before";
  EXPECT_EQ(never.kept_free, mebibytes(1));
  EXPECT_EQ(never.without_evidence, 1u) << "what would have followed is not recorded";
  std::vector<Advice> both{{.choice = {}, .cost = as_it_is, .impossible = {}, .worse_than = {}},
                           {.choice = {"1Mi", {}, {}}, .cost = never, .impossible = {}, .worse_than = {}}};
  compare(both);
  EXPECT_FALSE(both[0].worse_than) << "an eviction that would not be may be an OOM kill";
  const Cost early = cost_of_recorded(file, {"200Mi", {}, {}});
  EXPECT_GE(early.evicted, 1u);
  EXPECT_EQ(early.kept_free, mebibytes(200));
  EXPECT_EQ(cost_of_recorded(file, {{}, {}, true}).evicted, 1u) << "brakes are the controllers'";
  Choice config;
  config.config = config_of("agents: {evictionHard: {memory.available: 200Mi}}\n");
  EXPECT_EQ(cost_of_recorded(file, config).kept_free, mebibytes(200));
  config.memory_available = "300Mi";
  EXPECT_EQ(cost_of_recorded(file, config).kept_free, mebibytes(300)) << "the flag goes before the file";
  config = {};
  config.config = config_of("controllers: {nodeMonitorGracePeriod: 5m}\n");
  EXPECT_EQ(cost_of_recorded(file, config).kept_free, as_it_is.kept_free) << "it says nothing of agents";
}

TEST(Recordings, AFileWithAgentsIsAWholeConfigurationOfTheRecordedNode) {
  const std::string file = run_episode(1).of_the_hog().file();
  const auto report = agent::replay_recording(file);
  ASSERT_TRUE(report) << report.error().text();
  ASSERT_LT(report->node.memory, gibibytes(1)) << "its default threshold is another one than that of larger nodes";
  agent::AgentOptions by_default;
  by_default.eviction.thresholds.hard = agent::hard_thresholds_for(report->node.memory);
  Choice config;
  config.config = config_of("agents: {maxPods: 50}\n");
  EXPECT_EQ(cost_of_recorded(file, config).kept_free, *kept_free(by_default, report->node.memory));
  config.config = {"new.yaml", "agents: kubelet.yaml\n", [](const std::string&) {
                     return Result<std::string>(
                         "apiVersion: kubelet.config.k8s.io/v1beta1\n"
                         "kind: KubeletConfiguration\nevictionHard: {memory.available: 25%}\n");
                   }};
  EXPECT_EQ(cost_of_recorded(file, config).kept_free, Bytes(report->node.memory.count() / 4));
}

TEST(Recordings, AReplayThatIsRequestedToStopEnds) {
  const auto stopped =
      cost_of_recording(run_episode(1).of_the_hog().file(), {}, [](std::size_t, std::size_t) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kServiceUnavailable);
}

TEST(Recordings, SayNothingOfReservationsAndOfWhatIsDamaged) {
  const std::string file = run_episode(1).of_the_hog().file();
  const auto reserved = cost_of_recording(file, {{}, "1Gi", {}});
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().text(),
            "--system-reserved: a recording of a node does not say what a reservation would change");
  EXPECT_FALSE(cost_of_recording(file.substr(0, 30), {}));
  std::string damaged = file;
  damaged[file.size() / 2] ^= 1;
  EXPECT_FALSE(cost_of_recording(damaged, {}));
  EXPECT_FALSE(cost_of_recording("something else", {}));
}

}  // namespace
}  // namespace spillway::sim
