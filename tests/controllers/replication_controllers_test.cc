// ReplicationControllers with the real API server: the engine of ReplicaSets on owners of the older kind.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::Key;
using ::testing::SizeIs;

const std::string kReplicationPods = "/api/v1/namespaces/default/pods";
const std::string kReplications = "/api/v1/namespaces/default/replicationcontrollers";

Json parsed(std::string_view text) {
  return api::parse_json(text).value();
}

Json replication(const std::string& name, int replicas) {
  return parsed(fmt::format(R"({{"apiVersion":"v1","kind":"ReplicationController","metadata":{{"name":"{0}"}},
    "spec":{{"replicas":{1},"template":{{"metadata":{{"labels":{{"app":"{0}"}}}},
      "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}})",
                            name, replicas));
}

class Replication : public ::testing::Test {
 protected:
  ~Replication() override {
    if (set) cluster.stop(*set);
    cluster.stop(scheduler);
  }

  void start(ControllerSet::Options options = {}) {
    for (const char* node : {"n0", "n1"}) cluster.add_node(node);
    set.emplace(options, Rng(3), telemetry::Log(), metrics);
    cluster.run(*set);
    cluster.run(scheduler);
    cluster.advance(seconds(2));
  }

  std::vector<Json> pods() { return cluster.list(kReplicationPods); }

  std::int64_t status(std::string_view field) {
    const Json object = cluster.get(kReplications + "/web");
    const Json* value = object.at({"status", field});
    return value == nullptr ? 0 : value->if_int64().value_or(-1);
  }

  telemetry::Registry metrics;
  TestCluster cluster;
  std::optional<ControllerSet> set;
  Scheduler scheduler{{}, Rng(4), telemetry::Log(), metrics};
};

TEST_F(Replication, ReachesItsSizeAndSaysSo) {
  start();
  cluster.create(kReplications, replication("web", 3));
  cluster.advance(seconds(5));
  ASSERT_THAT(pods(), SizeIs(3));
  for (const Json& pod : pods()) {
    const Json owner = pod.at({"metadata", "ownerReferences"})->if_array()->front();
    EXPECT_EQ(owner.string_at({"apiVersion"}), "v1");
    EXPECT_EQ(owner.string_at({"kind"}), "ReplicationController");
    EXPECT_TRUE(owner.find("controller")->if_bool().value_or(false));
    EXPECT_TRUE(pod.string_at({"metadata", "name"}).starts_with("web-"));
  }
  for (const char* field : {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"}) {
    EXPECT_EQ(status(field), 3) << field;
  }
  EXPECT_EQ(status("observedGeneration"), 1);
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("SuccessfulCreate")));
  EXPECT_NE(metrics.text().find(R"(workqueue_adds_total{name="replicationmanager"})"), std::string::npos);
}

TEST_F(Replication, ReplacesGrowsAndShrinks) {
  start();
  cluster.create(kReplications, replication("web", 2));
  cluster.advance(seconds(5));
  cluster.remove(kReplicationPods + "/" + *cluster.pod_names().begin());
  cluster.advance(seconds(40));
  EXPECT_EQ(status("readyReplicas"), 2);
  cluster.merge(kReplications + "/web", parsed(R"({"spec":{"replicas":4}})"));
  cluster.advance(seconds(5));
  EXPECT_THAT(pods(), SizeIs(4));
  cluster.merge(kReplications + "/web", parsed(R"({"spec":{"replicas":0}})"));
  cluster.advance(seconds(40));
  EXPECT_THAT(pods(), SizeIs(0));
  EXPECT_EQ(status("replicas"), 0);
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("SuccessfulDelete")));
}

TEST_F(Replication, AdoptsAndLetsGo) {
  start();
  cluster.create(kReplicationPods, parsed(R"({"metadata":{"name":"stray","labels":{"app":"web"}},
    "spec":{"containers":[{"name":"c","image":"i"}]}})"));
  cluster.create(kReplications, replication("web", 2));
  cluster.advance(seconds(5));
  ASSERT_THAT(pods(), SizeIs(2));
  const Json stray = cluster.get(kReplicationPods + "/stray");
  ASSERT_NE(stray.at({"metadata", "ownerReferences"}), nullptr);
  EXPECT_EQ(stray.at({"metadata", "ownerReferences"})->if_array()->front().string_at({"name"}), "web");
  cluster.merge(kReplicationPods + "/stray", parsed(R"({"metadata":{"labels":{"app":"other"}}})"));
  cluster.advance(seconds(5));
  EXPECT_EQ(cluster.get(kReplicationPods + "/stray").at({"metadata", "ownerReferences"}), nullptr);
  EXPECT_THAT(pods(), SizeIs(3));
}

/// A ReplicaSet and a ReplicationController that select the same pods keep to their own.
TEST_F(Replication, IgnoresPodsOfAReplicaSet) {
  start();
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", workload_json("ReplicaSet", "web", 2));
  cluster.create(kReplications, replication("web", 2));
  cluster.advance(seconds(10));
  EXPECT_THAT(pods(), SizeIs(4));
  const auto of = [this](std::string_view kind) {
    const std::vector<Json> all = pods();
    return std::ranges::count_if(all, [kind](const Json& pod) {
      return pod.at({"metadata", "ownerReferences"})->if_array()->front().string_at({"kind"}) == kind;
    });
  };
  EXPECT_EQ(of("ReplicaSet"), 2);
  EXPECT_EQ(of("ReplicationController"), 2);
}

/// Two controllers want the same orphan: the one that does not get it neither deletes it nor counts on it.
TEST_F(Replication, AnOrphanIsOneOwnersOnly) {
  cluster.create(kReplicationPods, parsed(R"({"metadata":{"name":"stray","labels":{"app":"web"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}})"));
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", workload_json("ReplicaSet", "web", 1));
  cluster.create(kReplications, replication("web", 0));
  start();
  cluster.advance(seconds(30));
  ASSERT_THAT(pods(), SizeIs(1));
  EXPECT_EQ(cluster.get(kReplicationPods + "/stray")
                .at({"metadata", "ownerReferences"})
                ->if_array()
                ->front()
                .string_at({"kind"}),
            "ReplicaSet");
  cluster.merge(kReplications + "/web", parsed(R"({"spec":{"replicas":1}})"));
  cluster.merge("/apis/apps/v1/namespaces/default/replicasets/web", parsed(R"({"spec":{"replicas":2}})"));
  cluster.advance(seconds(30));
  EXPECT_THAT(pods(), SizeIs(3));
}

TEST_F(Replication, BothReachTheirSizeWithAnOrphanForEither) {
  cluster.create(kReplicationPods, parsed(R"({"metadata":{"name":"stray","labels":{"app":"web"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}})"));
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", workload_json("ReplicaSet", "web", 1));
  cluster.create(kReplications, replication("web", 1));
  start();
  cluster.advance(minutes(1));
  EXPECT_THAT(pods(), SizeIs(2));
}

/// Pods that are about to be deleted must not count as available in the status.
TEST_F(Replication, DoesNotCallPodsAvailableThatItHasAskedToGo) {
  start();
  cluster.create(kReplications, replication("web", 3));
  cluster.advance(seconds(5));
  ASSERT_EQ(status("availableReplicas"), 3);
  cluster.delay_events("/pods", seconds(30));
  cluster.merge(kReplications + "/web", parsed(R"({"spec":{"replicas":1}})"));
  cluster.advance(seconds(5));
  EXPECT_EQ(status("observedGeneration"), 2);
  EXPECT_EQ(status("availableReplicas"), 1) << "its cache shows three";
}

TEST_F(Replication, SaysWhyPodsAreNotMade) {
  start();
  Json refused = replication("web", 1);
  refused.make({"spec", "template", "spec", "priorityClassName"}) = "there-is-none";
  cluster.create(kReplications, refused);
  cluster.advance(seconds(5));
  const Json conditions = *cluster.get(kReplications + "/web").at({"status", "conditions"});
  EXPECT_EQ(conditions.if_array()->front().string_at({"type"}), "ReplicaFailure");
  EXPECT_EQ(conditions.if_array()->front().string_at({"reason"}), "FailedCreate");
}

TEST_F(Replication, IsLeftAloneWhereItIsSwitchedOff) {
  ControllerSet::Options options;
  options.enabled.replication = false;
  start(options);
  cluster.create(kReplications, replication("web", 2));
  cluster.advance(seconds(10));
  EXPECT_THAT(pods(), SizeIs(0));
}

}  // namespace
}  // namespace spillway::controllers
