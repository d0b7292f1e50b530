// ReplicaSets, DaemonSets and the scheduler together, with the real API server.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

const std::string kPods = "/api/v1/namespaces/default/pods";
const std::string kReplicaSets = "/apis/apps/v1/namespaces/default/replicasets";
const std::string kDaemonSets = "/apis/apps/v1/namespaces/default/daemonsets";

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

class Workloads : public ::testing::Test {
 protected:
  Workloads() : set(options, Rng(3), telemetry::Log(), metrics), scheduler({}, Rng(4), telemetry::Log(), metrics) {}

  ~Workloads() override {
    cluster.stop(set);
    cluster.stop(scheduler);
  }

  void start(int nodes, std::string_view memory = "1Gi") {
    for (int i = 0; i < nodes; ++i) cluster.add_node(fmt::format("n{}", i), {}, memory);
    cluster.run(set);
    cluster.run(scheduler);
    cluster.advance(seconds(2));
  }

  std::vector<Json> pods() { return cluster.list(kPods); }

  std::map<std::string, int> pods_by_node() {
    std::map<std::string, int> count;
    for (const Json& pod : pods()) ++count[std::string(pod.string_at({"spec", "nodeName"}))];
    return count;
  }

  std::int64_t status(const std::string& target, std::string_view field) {
    const Json object = cluster.get(target);
    const Json* value = object.at({"status", field});
    return value == nullptr ? 0 : value->if_int64().value_or(-1);
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
  Scheduler scheduler;
};

/// A pod that its node does not start; its request is the smallest.
TEST_F(Workloads, OfSurplusPodsThoseThatDoNotRunGoFirst) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 1));
  cluster.advance(seconds(5));
  ASSERT_THAT(pods(), SizeIs(1));
  const std::string runs(pods()[0].string_at({"metadata", "name"}));
  const std::string other = pods()[0].string_at({"spec", "nodeName"}) == "n0" ? "n1" : "n0";
  cluster.set_up(other, false);
  cluster.merge(kReplicaSets + "/web", json(R"({"spec":{"replicas":2}})"));
  cluster.advance(seconds(3));
  ASSERT_THAT(pods_by_node(), Contains(Pair(other, 1)));
  cluster.merge(kReplicaSets + "/web", json(R"({"spec":{"replicas":1}})"));
  cluster.advance(seconds(3));
  const Json left = cluster.get(kPods + "/" + runs);
  ASSERT_FALSE(left.is_null());
  EXPECT_EQ(left.string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(Workloads, QueuesShowAddedWaitingAndRetriedNames) {
  const auto value = [this](const std::string& series) {
    const std::string text = "\n" + metrics.text();
    const std::size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + series.size() + 2));
  };
  start(1);
  EXPECT_EQ(value(R"(workqueue_adds_total{name="replicaset"})"), 0);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 2));
  cluster.advance(seconds(5));
  const double adds = value(R"(workqueue_adds_total{name="replicaset"})");
  EXPECT_GE(adds, 2);  // the set, and its pods
  EXPECT_EQ(value(R"(workqueue_queue_duration_seconds_count{name="replicaset"})"), adds);
  EXPECT_EQ(value(R"(workqueue_depth{name="replicaset"})"), 0);
  EXPECT_EQ(value(R"(workqueue_adds_total{name="daemonset"})"), 0);
  EXPECT_EQ(value(R"(workqueue_retries_total{name="replicaset"})"), 0);
  Json refused = workload_json("ReplicaSet", "refused", 1);
  refused.make({"spec", "template", "spec", "priorityClassName"}) = "there-is-none";
  cluster.create(kReplicaSets, refused);
  cluster.advance(seconds(5));
  EXPECT_GE(value(R"(workqueue_retries_total{name="replicaset"})"), 3);
}

TEST_F(Workloads, AReplicaSetReachesItsSizeAndSpreads) {
  start(3);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 6));
  cluster.advance(seconds(5));
  EXPECT_THAT(pods_by_node(), ElementsAre(Pair("n0", 2), Pair("n1", 2), Pair("n2", 2)));
  EXPECT_EQ(status(kReplicaSets + "/web", "replicas"), 6);
  EXPECT_EQ(status(kReplicaSets + "/web", "readyReplicas"), 6);
  EXPECT_EQ(status(kReplicaSets + "/web", "availableReplicas"), 6);
  EXPECT_EQ(status(kReplicaSets + "/web", "observedGeneration"), 1);
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("SuccessfulCreate")));
}

TEST_F(Workloads, AReplicaSetReplacesAndShrinks) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 3));
  cluster.advance(seconds(3));
  const std::string victim = *cluster.pod_names().begin();
  cluster.remove(kPods + "/" + victim);
  cluster.advance(seconds(3));
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
  EXPECT_FALSE(cluster.pod_names().contains(victim));
  cluster.merge(kReplicaSets + "/web", json(R"({"spec":{"replicas":1}})"));
  cluster.advance(seconds(3));
  EXPECT_THAT(cluster.pod_names(), SizeIs(1));
  EXPECT_EQ(status(kReplicaSets + "/web", "replicas"), 1);
}

TEST_F(Workloads, AFailedPodIsReplacedAndStays) {
  start(1);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 1));
  cluster.advance(seconds(2));
  const std::string first = *cluster.pod_names().begin();
  cluster.merge(kPods + "/" + first + "/status", json(R"({"status":{"phase":"Failed","reason":"Evicted"}})"));
  cluster.advance(seconds(3));
  EXPECT_THAT(cluster.pod_names(), SizeIs(2));
  EXPECT_TRUE(cluster.pod_names().contains(first));
  EXPECT_EQ(status(kReplicaSets + "/web", "readyReplicas"), 1);
}

TEST_F(Workloads, AReplicaSetAdoptsAndLetsGo) {
  start(1);
  Json orphan = pod_json("orphan");
  orphan.make({"metadata", "labels"})["app"] = "web";
  cluster.create(kPods, orphan);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 2));
  cluster.advance(seconds(3));
  EXPECT_THAT(cluster.pod_names(), SizeIs(2));
  const Json adopted = cluster.get(kPods + "/orphan");
  ASSERT_NE(adopted.at({"metadata", "ownerReferences"}), nullptr);
  EXPECT_THAT(api::to_text(adopted), HasSubstr(R"("controller":true)"));

  cluster.merge(kPods + "/orphan", json(R"({"metadata":{"labels":{"app":"debug"}}})"));
  cluster.advance(seconds(3));
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
  const Json* owners = cluster.get(kPods + "/orphan").at({"metadata", "ownerReferences"});
  EXPECT_TRUE(owners == nullptr || owners->if_array()->empty());
}

TEST_F(Workloads, SlowStartStopsAtARefusal) {
  start(1);
  cluster.fail(api::Method::kPost, "/namespaces/default/pods", 403, 4);
  cluster.requests.clear();
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 10));
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.pod_names(), SizeIs(10));
  EXPECT_EQ(std::ranges::count(cluster.requests, "POST " + kPods), 14);  // one at a time until one succeeded
  EXPECT_THAT(cluster.events_about("web"), Contains(Pair("FailedCreate", 4)));
}

TEST_F(Workloads, RefusedPodsAreTriedWithBackOff) {
  start(1);
  cluster.fail(api::Method::kPost, "/namespaces/default/pods", 403, 100'000);
  cluster.requests.clear();
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 10));
  cluster.advance(seconds(30));
  EXPECT_LE(std::ranges::count(cluster.requests, "POST " + kPods), 15) << "5 ms, twice as long each time";
}

TEST_F(Workloads, DaemonSetsSayThatTheirPodsAreRefused) {
  start(1);
  cluster.fail(api::Method::kPost, "/namespaces/default/pods", 403, 100'000);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "logs"));
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.events_about("logs"), Contains(Key("FailedCreate")));
}

TEST_F(Workloads, ALostAnswerDoesNotMakeOnePodTooMany) {
  start(2);
  cluster.fail(api::Method::kPost, "/namespaces/default/pods", TestCluster::kLostAnswer, 1);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 3));
  cluster.fail(api::Method::kPost, "/binding", TestCluster::kLostAnswer, 1);
  for (int i = 0; i < 40; ++i) {
    cluster.advance(seconds(1));
    ASSERT_LE(cluster.pod_names().size(), 3U);
  }
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
  EXPECT_EQ(status(kReplicaSets + "/web", "readyReplicas"), 3);
  cluster.fail(api::Method::kPost, "/namespaces/default/pods", TestCluster::kLostAnswer, 1);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  for (int i = 0; i < 40; ++i) {
    cluster.advance(seconds(1));
    ASSERT_LE(cluster.pod_names().size(), 5U);
  }
  EXPECT_THAT(cluster.pod_names(), SizeIs(5));
}

TEST_F(Workloads, WatchEventsAheadOfAnswersMakeNoPodTooMany) {
  start(2, "16Gi");
  cluster.delay_answers(api::Method::kPost, "/namespaces/default/pods", milliseconds(300));
  cluster.requests.clear();
  for (const int replicas : {1, 3, 5, 50}) {
    const std::string name = fmt::format("web-{}", replicas);
    cluster.create(kReplicaSets, workload_json("ReplicaSet", name, replicas));
    cluster.advance(seconds(10));
    EXPECT_EQ(status(kReplicaSets + "/" + name, "readyReplicas"), replicas);
  }
  EXPECT_EQ(std::ranges::count(cluster.requests, "POST " + kPods), 1 + 3 + 5 + 50);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(5));
  EXPECT_EQ(std::ranges::count(cluster.requests, "POST " + kPods), 1 + 3 + 5 + 50 + 2);
}

TEST_F(Workloads, WatchEventsAheadOfAnswersMakeNoPodTooManyWhileTheSetStaysAsItIs) {
  start(2, "16Gi");
  cluster.delay_answers(api::Method::kPost, "/namespaces/default/pods", milliseconds(300));
  cluster.fail(api::Method::kPatch, "/replicasets/web/status", 409, 100);
  cluster.requests.clear();
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 20));
  cluster.advance(seconds(10));
  EXPECT_EQ(std::ranges::count(cluster.requests, "POST " + kPods), 20);
}

TEST_F(Workloads, AnAdoptedPodIsNotTakenForOneThatWasMade) {
  start(2, "16Gi");
  cluster.delay_answers(api::Method::kPost, "/namespaces/default/pods", milliseconds(300));
  Json orphan = pod_json("orphan");
  orphan.make({"metadata", "labels"})["app"] = "web";
  cluster.create(kPods, orphan);
  cluster.requests.clear();
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 6));
  cluster.advance(seconds(10));
  EXPECT_EQ(std::ranges::count(cluster.requests, "POST " + kPods), 5);
  EXPECT_THAT(cluster.pod_names(), SizeIs(6));
}

TEST_F(Workloads, AStatusThatConflictedIsWrittenAgainThoughNothingElseChanges) {
  start(1);
  cluster.fail(api::Method::kPatch, "/replicasets/web/status", 409, 3);
  cluster.fail(api::Method::kPatch, "/daemonsets/agent/status", 409, 3);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 0));
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(10));
  EXPECT_EQ(status(kReplicaSets + "/web", "observedGeneration"), 1);
  EXPECT_EQ(status(kDaemonSets + "/agent", "numberReady"), 1);
}

TEST_F(Workloads, AnAdoptionAndAReleaseThatFailAreTriedAgain) {
  constexpr int kFailures = 11;  // more than the number of syncs that other events cause
  start(1);
  for (const int code : {409, 500}) {
    const std::string name = fmt::format("web-{}", code);
    Json orphan = pod_json("orphan-" + name);
    orphan.make({"metadata", "labels"})["app"] = name;
    cluster.create(kPods, orphan);
    cluster.fail(api::Method::kPatch, "/pods/orphan-" + name, code, kFailures);
    cluster.create(kReplicaSets, workload_json("ReplicaSet", name, 1));
    cluster.advance(seconds(30));
    const std::string pod = kPods + "/orphan-" + name;
    EXPECT_THAT(api::to_text(cluster.get(pod)), HasSubstr("ownerReferences")) << code;
    cluster.fail(api::Method::kPatch, "/pods/orphan-" + name, code, kFailures);
    cluster.merge(pod, json(R"({"metadata":{"labels":{"app":"another"}}})"));
    cluster.advance(seconds(30));
    EXPECT_THAT(api::to_text(cluster.get(pod)), Not(HasSubstr("ownerReferences"))) << code;
  }
}

TEST_F(Workloads, ARefusedPodHasItsConditionThoughTheFirstWritesFail) {
  start(1);
  for (const int code : {409, 500}) {
    const std::string name = fmt::format("large-{}", code);
    cluster.fail(api::Method::kPatch, "/pods/" + name + "/status", code, 2);
    cluster.create(kPods, pod_json(name, "64Gi"));
    cluster.advance(seconds(10));
    EXPECT_THAT(api::to_text(cluster.get(kPods + "/" + name)), HasSubstr("Insufficient memory")) << code;
    EXPECT_EQ(cluster.events_about(name)["FailedScheduling"], 1) << code;
  }
}

TEST_F(Workloads, ASetThatShrinksWhileItGrowsMakesNoMore) {
  start(2, "16Gi");
  cluster.delay_answers(api::Method::kPost, "/namespaces/default/pods", milliseconds(300));
  cluster.requests.clear();
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 40));
  cluster.advance(milliseconds(400));  // one answer has arrived, two are under way
  cluster.merge(kReplicaSets + "/web", json(R"({"spec":{"replicas":4}})"));
  cluster.advance(seconds(10));
  EXPECT_EQ(std::ranges::count(cluster.requests, "POST " + kPods), 4);
  EXPECT_THAT(cluster.pod_names(), SizeIs(4));
}

TEST_F(Workloads, PodsOfADeadNodeAreReplacedElsewhere) {
  start(3);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 3));
  cluster.advance(seconds(5));
  cluster.set_up("n1", false);
  cluster.advance(minutes(7));
  int elsewhere = 0;
  for (const Json& pod : pods()) {
    const bool terminating = !pod.string_at({"metadata", "deletionTimestamp"}).empty();
    if (!terminating) elsewhere += static_cast<int>(pod.string_at({"spec", "nodeName"}) != "n1");
  }
  EXPECT_EQ(elsewhere, 3);
  EXPECT_EQ(status(kReplicaSets + "/web", "readyReplicas"), 3);
}

TEST_F(Workloads, ADaemonSetRunsOnEveryNodeAndStaysOnAFailedOne) {
  start(3);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(5));
  EXPECT_THAT(pods_by_node(), ElementsAre(Pair("n0", 1), Pair("n1", 1), Pair("n2", 1)));
  EXPECT_EQ(status(kDaemonSets + "/agent", "desiredNumberScheduled"), 3);
  EXPECT_EQ(status(kDaemonSets + "/agent", "numberReady"), 3);
  const auto before = cluster.pod_names();
  cluster.set_up("n1", false);
  cluster.advance(minutes(8));
  EXPECT_EQ(cluster.pod_names(), before);
  for (const Json& pod : pods()) EXPECT_EQ(pod.string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(Workloads, ADaemonSetFollowsTheNodes) {
  start(2);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(3));
  cluster.add_node("n9");
  cluster.advance(seconds(5));
  EXPECT_THAT(pods_by_node(), Contains(Pair("n9", 1)));
  cluster.remove("/api/v1/nodes/n0");
  cluster.advance(seconds(90));
  EXPECT_THAT(pods_by_node(), ElementsAre(Pair("n1", 1), Pair("n9", 1)));
  cluster.merge("/api/v1/nodes/n1", json(R"({"spec":{"taints":[{"key":"keep","effect":"NoSchedule"}]}})"));
  cluster.advance(seconds(3));
  EXPECT_THAT(pods_by_node(), Contains(Pair("n1", 1)));  // the pod may stay
}

TEST_F(Workloads, ADaemonSetReplacesFailedPodsWithBackOff) {
  start(1);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(3));
  std::set<std::string> seen = cluster.pod_names();
  for (int i = 0; i < 3; ++i) {
    const std::string pod = *cluster.pod_names().begin();
    cluster.merge(kPods + "/" + pod + "/status", json(R"({"status":{"phase":"Failed","reason":"Evicted"}})"));
    cluster.advance(seconds(12));
    ASSERT_THAT(cluster.pod_names(), SizeIs(1));
    seen.merge(cluster.pod_names());
  }
  EXPECT_THAT(seen, SizeIs(4));
  cluster.merge(kPods + "/" + *cluster.pod_names().begin() + "/status", json(R"({"status":{"phase":"Failed"}})"));
  cluster.advance(milliseconds(500));
  ASSERT_THAT(cluster.pod_names(), IsEmpty());
  cluster.merge(kDaemonSets + "/agent", json(R"({"spec":{"template":{"metadata":{"annotations":{"mended":"now"}}}}})"));
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.pod_names(), SizeIs(1)) << "another template has not failed yet";
}

TEST_F(Workloads, ADaemonSetIsRolledOutAFewNodesAtATime) {
  start(4);
  Json set_json = workload_json("DaemonSet", "agent");
  set_json.make({"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}) = 2;
  cluster.create(kDaemonSets, set_json);
  cluster.advance(seconds(5));
  const std::string target = kDaemonSets + "/agent";
  EXPECT_EQ(status(target, "updatedNumberScheduled"), 4);
  const std::set<std::string> before = cluster.pod_names();
  cluster.merge(target, json(R"({"spec":{"template":{"metadata":{"annotations":{"restarted":"now"}}}}})"));
  std::int64_t fewest = 4;
  bool waited = false;
  for (int i = 0; i < 300; ++i) {
    cluster.advance(milliseconds(100));
    if (status(target, "observedGeneration") < 2) continue;
    fewest = std::min(fewest, status(target, "numberAvailable"));
    waited = waited || status(target, "updatedNumberScheduled") < 4;
  }
  EXPECT_TRUE(waited) << "a success that is none";
  EXPECT_GE(fewest, 2);
  EXPECT_EQ(status(target, "updatedNumberScheduled"), 4);
  EXPECT_EQ(status(target, "numberAvailable"), 4);
  for (const std::string& name : cluster.pod_names()) EXPECT_FALSE(before.contains(name)) << name;
  for (const Json& pod : pods()) EXPECT_EQ(pod.string_at({"metadata", "annotations", "restarted"}), "now");
}

TEST_F(Workloads, ADaemonSetWithASurgeServesOnEveryNodeThroughout) {
  start(4);
  Json set_json = workload_json("DaemonSet", "agent");
  set_json.make({"spec"})["minReadySeconds"] = 3;
  set_json.make({"spec", "updateStrategy", "rollingUpdate"}) = json(R"({"maxSurge":2,"maxUnavailable":0})");
  cluster.create(kDaemonSets, set_json);
  cluster.advance(seconds(15));
  const std::string target = kDaemonSets + "/agent";
  ASSERT_EQ(status(target, "numberAvailable"), 4);
  const std::set<std::string> before = cluster.pod_names();
  cluster.merge(target, json(R"({"spec":{"template":{"metadata":{"annotations":{"restarted":"now"}}}}})"));
  std::int64_t fewest = 4;
  std::size_t most = 0;
  for (int i = 0; i < 400; ++i) {
    cluster.advance(milliseconds(100));
    fewest = std::min(fewest, status(target, "numberAvailable"));
    std::size_t running = 0;
    for (const Json& pod : pods()) running += pod.string_at({"metadata", "deletionTimestamp"}).empty() ? 1 : 0;
    most = std::max(most, running);
  }
  EXPECT_EQ(fewest, 4);
  EXPECT_EQ(most, 6U);
  EXPECT_EQ(status(target, "updatedNumberScheduled"), 4);
  EXPECT_THAT(pods_by_node(), ElementsAre(Pair("n0", 1), Pair("n1", 1), Pair("n2", 1), Pair("n3", 1)));
  for (const std::string& name : cluster.pod_names()) EXPECT_FALSE(before.contains(name)) << name;
}

TEST_F(Workloads, ADaemonSetOnDeleteWaitsForTheDeletion) {
  start(2);
  Json set_json = workload_json("DaemonSet", "agent");
  set_json.make({"spec", "updateStrategy", "type"}) = "OnDelete";
  cluster.create(kDaemonSets, set_json);
  cluster.advance(seconds(5));
  const std::set<std::string> before = cluster.pod_names();
  const std::string target = kDaemonSets + "/agent";
  cluster.merge(target, json(R"({"spec":{"template":{"metadata":{"annotations":{"restarted":"now"}}}}})"));
  cluster.advance(seconds(30));
  EXPECT_EQ(cluster.pod_names(), before);
  EXPECT_EQ(status(target, "updatedNumberScheduled"), 0);
  cluster.remove(kPods + "/" + *before.begin());
  cluster.advance(seconds(10));
  EXPECT_EQ(status(target, "updatedNumberScheduled"), 1);
}

/// Reads and rolls back as kubectl does: by the revisions and the patches in them.
TEST_F(Workloads, ADaemonSetKeepsItsRevisions) {
  start(2);
  Json set_json = workload_json("DaemonSet", "agent");
  set_json.make({"spec"})["revisionHistoryLimit"] = 2;
  cluster.create(kDaemonSets, set_json);
  cluster.advance(seconds(5));
  const std::string revisions_path = "/apis/apps/v1/namespaces/default/controllerrevisions";
  const std::string target = kDaemonSets + "/agent";
  const auto revisions = [&] {
    std::map<std::int64_t, Json> by_number;
    for (const Json& each : cluster.list(revisions_path)) by_number.emplace(*each.find("revision")->if_int64(), each);
    return by_number;
  };
  ASSERT_THAT(revisions(), ElementsAre(Key(1)));
  const Json first = revisions().at(1);
  const std::string hash(first.string_at({"metadata", "labels", "controller-revision-hash"}));
  EXPECT_EQ(first.string_at({"metadata", "name"}), "agent-" + hash);
  EXPECT_EQ(first.string_at({"metadata", "labels", "app"}), "agent");
  for (const Json& pod : pods()) EXPECT_EQ(pod.string_at({"metadata", "labels", "controller-revision-hash"}), hash);
  const auto change = [&](std::string_view mark) {
    Json patch;
    patch.make({"spec", "template", "metadata", "annotations", "note"}) = mark;
    cluster.merge(target, patch);
    cluster.advance(seconds(20));
  };
  change("two");
  EXPECT_THAT(revisions(), ElementsAre(Key(1), Key(2)));
  // Rolled back: the first template is the latest again, under the same revision.
  cluster.merge(target, json(R"({"spec":{"template":{"metadata":{"annotations":null}}}})"));
  cluster.advance(seconds(20));
  ASSERT_THAT(revisions(), ElementsAre(Key(2), Key(3)));
  EXPECT_EQ(revisions().at(3).string_at({"metadata", "name"}), first.string_at({"metadata", "name"}));
  for (const Json& pod : pods()) EXPECT_EQ(pod.string_at({"metadata", "labels", "controller-revision-hash"}), hash);
  EXPECT_EQ(status(target, "updatedNumberScheduled"), 2);
  change("four");
  change("five");
  EXPECT_THAT(revisions(), ElementsAre(Key(3), Key(4), Key(5))) << "two old ones are kept";
  for (const Json& pod : pods()) EXPECT_EQ(pod.string_at({"metadata", "annotations", "note"}), "five");
}

TEST_F(Workloads, ALostAnswerMakesNoSecondRevision) {
  start(1);
  cluster.fail(api::Method::kPost, "/controllerrevisions", TestCluster::kLostAnswer, 1);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(20));
  EXPECT_THAT(cluster.list("/apis/apps/v1/namespaces/default/controllerrevisions"), SizeIs(1));
  EXPECT_THAT(pods(), SizeIs(1));
}

TEST_F(Workloads, APodThatFitsNowhereSaysWhyAndWaitsForRoom) {
  start(2, "256Mi");
  cluster.create(kPods, pod_json("big", "512Mi"));
  cluster.advance(seconds(2));
  const Json pod = cluster.get(kPods + "/big");
  EXPECT_EQ(pod.string_at({"spec", "nodeName"}), "");
  EXPECT_THAT(api::to_text(pod),
              HasSubstr("0/2 nodes are available: 2 Insufficient memory. preemption: 0/2 nodes are available: "
                        "2 No preemption victims found for incoming pod."));
  EXPECT_THAT(api::to_text(pod), HasSubstr("Unschedulable"));
  EXPECT_THAT(cluster.events_about("big"), Contains(Pair("FailedScheduling", 1)));
  cluster.add_node("large", {}, "1Gi");
  cluster.advance(seconds(2));
  EXPECT_EQ(cluster.get(kPods + "/big").string_at({"spec", "nodeName"}), "large");
  EXPECT_THAT(cluster.events_about("big"), Contains(Pair("Scheduled", 1)));
}

TEST_F(Workloads, TheImportantPodGoesFirst) {
  start(0);
  cluster.create("/apis/scheduling.k8s.io/v1/priorityclasses",
                 json(R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},
                          "value":1000})"));
  cluster.create(kPods, pod_json("common", "200Mi"));
  cluster.advance(seconds(1));
  Json important = pod_json("important", "200Mi");
  important.make({"spec"})["priorityClassName"] = "high";
  cluster.create(kPods, important);
  cluster.advance(seconds(1));
  cluster.add_node("small", {}, "256Mi");
  cluster.advance(seconds(3));
  EXPECT_EQ(cluster.get(kPods + "/important").string_at({"spec", "nodeName"}), "small");
  EXPECT_EQ(cluster.get(kPods + "/common").string_at({"spec", "nodeName"}), "");
}

TEST_F(Workloads, ARefusedBindingIsTriedAgain) {
  start(1);
  cluster.fail(api::Method::kPost, "/binding", 500, 2);
  cluster.create(kPods, pod_json("web"));
  cluster.advance(seconds(5));
  EXPECT_EQ(cluster.get(kPods + "/web").string_at({"spec", "nodeName"}), "n0");
}

TEST_F(Workloads, TheSchedulerAvoidsTaintedAndCordonedNodes) {
  start(3);
  cluster.merge("/api/v1/nodes/n0", json(R"({"spec":{"unschedulable":true}})"));
  cluster.set_pressure("n1", "DiskPressure", true);
  cluster.advance(seconds(1));
  cluster.create(kPods, pod_json("web"));
  cluster.advance(seconds(2));
  EXPECT_EQ(cluster.get(kPods + "/web").string_at({"spec", "nodeName"}), "n2");
}

/// Documented for 1.32, and done in it by a plug-in that is off by default.
TEST_F(Workloads, MemoryPressureKeepsOnlyBestEffortPodsAway) {
  start(1);
  cluster.set_pressure("n0", "MemoryPressure", true);
  cluster.advance(seconds(2));
  cluster.create(kPods, pod_json("asks"));
  cluster.create(kPods, pod_json("asks-not", ""));
  Json tolerant = pod_json("tolerates-all");
  tolerant.make({"spec"})["tolerations"] = json(R"([{"operator":"Exists"}])");
  cluster.create(kPods, tolerant);
  cluster.advance(seconds(3));
  EXPECT_EQ(cluster.get(kPods + "/asks").string_at({"spec", "nodeName"}), "n0");
  EXPECT_EQ(cluster.get(kPods + "/asks-not").string_at({"spec", "nodeName"}), "");
  const auto tolerations = [this](const std::string& pod) {
    return api::to_text(*cluster.get(kPods + "/" + pod).at({"spec", "tolerations"}));
  };
  EXPECT_THAT(tolerations("asks"), HasSubstr(R"("key":"node.kubernetes.io/memory-pressure")"));
  EXPECT_THAT(tolerations("asks-not"), ::testing::Not(HasSubstr("memory-pressure")));
  EXPECT_THAT(tolerations("tolerates-all"), ::testing::Not(HasSubstr("memory-pressure")));
}

}  // namespace
}  // namespace spillway::controllers
