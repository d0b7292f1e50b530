// Goal: a node that shuts down ends its pods by their priority, each with its grace, and takes no new ones.
#include "agent/node/shutdown_engine.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

AgentOptions graceful(std::int64_t grace, std::int64_t critical) {
  AgentOptions options = node_options();
  options.shutdown = {.grace_seconds = grace, .critical_grace_seconds = critical, .by_priority = {}};
  return options;
}

struct ShuttingDown : ScriptedCluster {
  explicit ShuttingDown(AgentOptions options) : ScriptedCluster(std::move(options)) {
    put(pod_document({.name = "web"}));
    put(pod_document({.name = "dns", .priority = 2'000'000'000}));
    start();
    run(seconds(2));
  }

  bool begin() {
    bool begun = false;
    begun = agent().shut_down([this](Now) { done = true; }, now());
    run(milliseconds(1));
    return begun;
  }

  bool done = false;
};

TEST(Shutdown, WithoutAConfiguredPeriodNothingHappens) {
  ShuttingDown cluster(node_options());
  EXPECT_FALSE(cluster.begin());
  cluster.run(seconds(5));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
}

TEST(Shutdown, OrdinaryPodsFirstThenCriticalOnes) {
  ShuttingDown cluster(graceful(30, 10));
  cluster.host.set_immortal("uid-web");
  ASSERT_TRUE(cluster.begin());
  EXPECT_EQ(cluster.host.last<StopPod>()->uid, "uid-web");
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, seconds(20)) << "30 s less those of the critical pods";
  cluster.run(seconds(19));
  EXPECT_TRUE(cluster.host.is_running("uid-dns", "c"));
  EXPECT_FALSE(cluster.done);
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.host.last<StopPod>()->uid, "uid-dns") << "its turn, although the first does not end";
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, seconds(10));
  cluster.run(seconds(1) + kReportWait);
  EXPECT_TRUE(cluster.done);
}

TEST(Shutdown, IsOverWhenThePodsAre) {
  ShuttingDown cluster(graceful(600, 300));
  ASSERT_TRUE(cluster.begin());
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.done);
  for (const char* name : {"web", "dns"}) {
    EXPECT_EQ(cluster.phase(name), "Failed");
    EXPECT_EQ(cluster.pod(name).string_at({"status", "reason"}), "Terminated");
    EXPECT_EQ(cluster.pod(name).string_at({"status", "message"}),
              "Pod was terminated in response to imminent node shutdown.");
  }
}

TEST(Shutdown, TheNodeIsNotReadyAndTakesNoPods) {
  ShuttingDown cluster(graceful(30, 10));
  cluster.host.set_immortal("uid-web");
  ASSERT_TRUE(cluster.begin());
  cluster.put(pod_document({.name = "late", .priority = 2'000'001'000}));
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.pod("late").string_at({"status", "reason"}), "NodeShutdown");
  EXPECT_EQ(cluster.pod("late").string_at({"status", "message"}),
            "Pod was rejected: Pod was rejected as the node is shutting down.");
  EXPECT_EQ(cluster.node_condition("Ready"), "False");
  EXPECT_EQ(cluster.events("Shutdown").size(), 1U) << "of the node";
  EXPECT_EQ(cluster.events("NodeShutdown").size(), 1U) << "of the pod that was refused";
}

struct Stopping : ShuttingDown {
  explicit Stopping(AgentOptions options = node_options()) : ShuttingDown(std::move(options)) {}

  void stop() {
    agent().report_stop([this](Now) { ++reports; }, now());
    run(milliseconds(1));
  }

  std::string ready_message() const {
    const api::Json* const node = api.find("/api/v1/nodes/" + node_options().node_name);
    for (const api::Json& each : *node->find("status")->find("conditions")->if_array())
      if (each.string_at({"type"}) == "Ready") return std::string(each.string_at({"message"}));
    return {};
  }

  int reports = 0;
};

TEST(Stop, TheNodeSaysAtOnceThatItIsNotReady) {
  Stopping cluster;
  ASSERT_EQ(cluster.node_condition("Ready"), "True");
  cluster.stop();
  cluster.run(milliseconds(100));
  EXPECT_EQ(cluster.reports, 1);
  EXPECT_EQ(cluster.node_condition("Ready"), "False");
  EXPECT_EQ(cluster.ready_message(), "node is shutting down");
  EXPECT_EQ(cluster.recording.kept, std::vector<std::string>{}) << "nothing went wrong";
  cluster.run(kLastReportWait);
  EXPECT_EQ(cluster.reports, 1);
}

TEST(Stop, PodsBoundMeanwhileAreLeftToTheNextStart) {
  Stopping cluster;
  cluster.stop();
  cluster.put(pod_document({.name = "late"}));
  cluster.run(seconds(1));
  EXPECT_NE(cluster.phase("late"), "Failed");
}

TEST(Stop, AServerThatDoesNotAnswerIsNotWaitedForLonger) {
  Stopping cluster;
  cluster.delay_answers([](const api::Request&) { return hours(1); });
  cluster.stop();
  cluster.run(kLastReportWait - milliseconds(2));
  EXPECT_EQ(cluster.reports, 0);
  cluster.run(milliseconds(1));
  EXPECT_EQ(cluster.reports, 1);
}

TEST(Stop, AReportThatFailsIsTriedAgain) {
  Stopping cluster;
  int failures = 2;
  cluster.api.set_fault([&failures](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (!request.target.contains("/status") || failures == 0) return std::nullopt;
    --failures;
    return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "gone"));
  });
  cluster.stop();
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.reports, 1);
  EXPECT_EQ(cluster.node_condition("Ready"), "False");
}

TEST(Stop, AfterAGracefulShutdownThereIsNothingMoreToSay) {
  Stopping cluster(graceful(600, 300));
  ASSERT_TRUE(cluster.begin());
  cluster.run(seconds(2));
  ASSERT_TRUE(cluster.done);
  cluster.stop();
  EXPECT_EQ(cluster.reports, 1);
  EXPECT_EQ(cluster.node_condition("Ready"), "False");
}

}  // namespace
}  // namespace spillway::agent
