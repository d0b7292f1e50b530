// Replacements of pods that a node evicts again and again, with the real API server: who waits, and who does not.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::SizeIs;

const std::string kPods = "/api/v1/namespaces/default/pods";
const std::string kReplicaSets = "/apis/apps/v1/namespaces/default/replicasets";
const std::string kDaemonSets = "/apis/apps/v1/namespaces/default/daemonsets";

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

class WithEvictionBackoff : public ::testing::Test {
 protected:
  WithEvictionBackoff()
      : holding({.eviction_backoff = true}, Rng(3), telemetry::Log(), metrics),
        scheduler({}, Rng(4), telemetry::Log(), metrics) {}

  ~WithEvictionBackoff() override {
    cluster.stop(holding);
    cluster.stop(scheduler);
  }

  void start_holding(int nodes) {
    for (int i = 0; i < nodes; ++i) cluster.add_node(fmt::format("n{}", i));
    cluster.run(holding);
    cluster.run(scheduler);
    cluster.advance(seconds(2));
  }

  std::vector<Json> pods() { return cluster.list(kPods); }

  std::map<std::string, int> pods_by_node() {
    std::map<std::string, int> count;
    for (const Json& pod : pods()) ++count[std::string(pod.string_at({"spec", "nodeName"}))];
    return count;
  }

  /// Evicts all pods that run on that node.
  void evict(const std::string& node) {
    for (const Json& pod : pods()) {
      if (pod.string_at({"spec", "nodeName"}) != node || pod.string_at({"status", "phase"}) == "Failed") continue;
      cluster.merge(kPods + "/" + std::string(pod.string_at({"metadata", "name"})) + "/status",
                    json(R"({"status":{"phase":"Failed","reason":"Evicted"}})"));
    }
  }

  std::int64_t alive() {
    const std::vector<Json> all = pods();
    return std::ranges::count_if(all, [](const Json& pod) { return pod.string_at({"status", "phase"}) != "Failed"; });
  }

  policy::Decision explained(const std::string& resource, const std::string& name) {
    const auto decision = holding.explain_evictions(resource, "default/" + name, cluster.now());
    return decision.value_or(policy::Decision());
  }

  TestCluster cluster;
  telemetry::Registry metrics;
  ControllerSet holding;
  Scheduler scheduler;
};

TEST_F(WithEvictionBackoff, AReplicaSetWaitsLongerEachTimeForEvictedPodsOnly) {
  start_holding(1);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 2));
  cluster.advance(seconds(2));
  EXPECT_EQ(explained("replicasets", "web").verdict, policy::Verdict::kRests);
  evict("n0");
  cluster.advance(seconds(2));
  EXPECT_EQ(alive(), 2) << "the first time costs nothing";
  for (const int wait : {10, 20, 40}) {
    evict("n0");
    cluster.advance(seconds(wait - 2));
    ASSERT_EQ(alive(), 0) << wait;
    const policy::Decision waits = explained("replicasets", "web");
    EXPECT_EQ(waits.verdict, policy::Verdict::kWaits);
    ASSERT_THAT(waits.reasons, SizeIs(1));
    EXPECT_EQ(policy::render(waits.reasons[0]).find("evicted-in-a-row node=n0"), 0U)
        << policy::render(waits.reasons[0]);
    cluster.advance(seconds(5));
    ASSERT_EQ(alive(), 2) << wait;
  }
  evict("n0");
  cluster.merge(kReplicaSets + "/web", json(R"({"spec":{"replicas":3}})"));
  cluster.advance(seconds(3));
  EXPECT_EQ(alive(), 1) << "what the set grows by does not wait";
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("EvictionBackOff")));
  EXPECT_FALSE(holding.explain_evictions("replicasets", "default/none", cluster.now()));
}

/// Creation times are whole seconds.
TEST_F(WithEvictionBackoff, WhatWasMadeInTheSecondOfAnEvictionWasNotThereBefore) {
  start_holding(1);
  Json pinned = workload_json("ReplicaSet", "web", 1);
  pinned.make({"spec", "template", "spec"})["nodeName"] = "n0";
  cluster.create(kReplicaSets, pinned);
  cluster.advance(seconds(2));
  const auto begun = cluster.now().wall.time_since_epoch();
  cluster.advance(std::chrono::ceil<std::chrono::seconds>(begun) - begun + milliseconds(500));
  evict("n0");
  cluster.advance(milliseconds(400));
  ASSERT_EQ(alive(), 1);
  evict("n0");
  cluster.advance(milliseconds(100));
  EXPECT_EQ(explained("replicasets", "web").verdict, policy::Verdict::kWaits) << "a loop, however fast";
}

TEST_F(WithEvictionBackoff, OtherNodesOfADaemonSetDoNotWait) {
  start_holding(2);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(2));
  evict("n0");
  cluster.advance(seconds(5));
  evict("n0");
  cluster.advance(seconds(6));  // the pod's own back-off is over after 2 s
  EXPECT_EQ(pods_by_node(), (std::map<std::string, int>{{"n1", 1}}));
  evict("n1");
  cluster.advance(seconds(3));
  EXPECT_EQ(pods_by_node(), (std::map<std::string, int>{{"n1", 1}}));
  cluster.advance(seconds(4));
  EXPECT_EQ(pods_by_node(), (std::map<std::string, int>{{"n0", 1}, {"n1", 1}}));
}

TEST_F(WithEvictionBackoff, AStatefulSetWaitsWithThePodThatWasEvicted) {
  start_holding(1);
  Json set = workload_json("StatefulSet", "db", 2);
  set.make({"spec"})["serviceName"] = "db";
  set.make({"spec"})["podManagementPolicy"] = "Parallel";
  cluster.create("/apis/apps/v1/namespaces/default/statefulsets", set);
  cluster.advance(seconds(5));
  ASSERT_EQ(alive(), 2);
  const auto evict_first = [this] {
    cluster.merge(kPods + "/db-0/status", json(R"({"status":{"phase":"Failed","reason":"Evicted"}})"));
  };
  evict_first();
  cluster.advance(seconds(4));
  ASSERT_THAT(cluster.pod_names(), ElementsAre("db-0", "db-1"));
  evict_first();
  cluster.advance(seconds(8));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("db-1"));
  EXPECT_EQ(explained("statefulsets", "db").verdict, policy::Verdict::kWaits);
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("db-0", "db-1"));
}

}  // namespace
}  // namespace spillway::controllers
