// Deployments with the real API server: rollouts that keep their promises, pause, undo, scale, history, and what is
// seen too late.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kPodsOfDefault = "/api/v1/namespaces/default/pods";
const std::string kSets = "/apis/apps/v1/namespaces/default/replicasets";
const std::string kDeployments = "/apis/apps/v1/namespaces/default/deployments";
const std::string kWeb = kDeployments + "/web";

Json parsed(std::string_view text) {
  return api::parse_json(text).value();
}

Json template_change(std::string_view mark) {
  Json patch;
  patch.make({"spec", "template", "metadata", "annotations", "note"}) = mark;
  return patch;
}

class Deployments : public ::testing::Test {
 protected:
  Deployments() : set(options, Rng(3), telemetry::Log(), metrics), scheduler({}, Rng(4), telemetry::Log(), metrics) {}

  ~Deployments() override {
    cluster.stop(set);
    cluster.stop(scheduler);
  }

  void start() {
    for (int i = 0; i < 4; ++i) cluster.add_node(fmt::format("n{}", i), {}, "64Gi");
    cluster.run(set);
    cluster.run(scheduler);
    cluster.advance(seconds(2));
  }

  void create_web(int replicas, const Json& spec = Json::object()) {
    Json web = workload_json("Deployment", "web", replicas);
    for (const auto& [name, value] : *spec.if_object()) web.make({"spec"})[name] = value;
    cluster.create(kDeployments, web);
  }

  std::int64_t status(std::string_view field) {
    const Json object = cluster.get(kWeb);
    const Json* value = object.at({"status", field});
    return value == nullptr ? 0 : value->if_int64().value_or(-1);
  }

  std::string reason(std::string_view condition) {
    const Json object = cluster.get(kWeb);
    const Json* conditions = object.at({"status", "conditions"});
    if (conditions == nullptr || conditions->if_array() == nullptr) return {};
    for (const Json& each : *conditions->if_array()) {
      if (each.string_at({"type"}) == condition) return std::string(each.string_at({"reason"}));
    }
    return {};
  }

  /// The wanted replicas, by the note of the template ("" for none).
  std::map<std::string, std::int64_t> sizes() {
    std::map<std::string, std::int64_t> sizes;
    for (const Json& each : cluster.list(kSets)) {
      sizes[std::string(each.string_at({"spec", "template", "metadata", "annotations", "note"}))] +=
          each.at({"spec", "replicas"})->if_int64().value();
    }
    return sizes;
  }

  struct Counted {
    std::int64_t all = 0;  // pods that are not terminating
    std::int64_t ready = 0;
  };

  Counted pods() {
    Counted counted;
    for (const Json& pod : cluster.list(kPodsOfDefault)) {
      if (!pod.string_at({"metadata", "deletionTimestamp"}).empty()) continue;
      ++counted.all;
      counted.ready +=
          pod.at({"status", "conditions"}) != nullptr &&
                  api::to_text(*pod.at({"status", "conditions"})).find(R"("type":"Ready")") != std::string::npos
              ? 1
              : 0;
    }
    return counted;
  }

  /// Steps of 100 ms; false: `done` did not become true in that time.
  bool until(const std::function<bool()>& done, Duration within = seconds(60)) {
    for (Duration passed{}; passed < within; passed += milliseconds(100)) {
      if (done()) return true;
      cluster.advance(milliseconds(100));
    }
    return done();
  }

  bool is_complete() {
    const Json web = cluster.get(kWeb);
    const std::int64_t wanted = web.at({"spec", "replicas"})->if_int64().value();
    return status("observedGeneration") == web.at({"metadata", "generation"})->if_int64().value() &&
           status("updatedReplicas") == wanted && status("replicas") == wanted && status("availableReplicas") == wanted;
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
  Scheduler scheduler;
};

TEST_F(Deployments, MakeTheirPodsAndSayHowTheyAre) {
  start();
  create_web(3);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  EXPECT_EQ(pods().ready, 3);
  EXPECT_EQ(reason("Available"), "MinimumReplicasAvailable");
  EXPECT_EQ(reason("Progressing"), "NewReplicaSetAvailable");
  const std::vector<Json> sets = cluster.list(kSets);
  ASSERT_THAT(sets, SizeIs(1));
  const std::string hash(sets[0].string_at({"metadata", "labels", "pod-template-hash"}));
  EXPECT_FALSE(hash.empty());
  EXPECT_EQ(sets[0].string_at({"metadata", "name"}), "web-" + hash);
  EXPECT_EQ(sets[0].string_at({"spec", "selector", "matchLabels", "pod-template-hash"}), hash);
  EXPECT_EQ(sets[0].string_at({"metadata", "annotations", "deployment.kubernetes.io/revision"}), "1");
  EXPECT_EQ(cluster.get(kWeb).string_at({"metadata", "annotations", "deployment.kubernetes.io/revision"}), "1");
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("ScalingReplicaSet")));
  for (const Json& pod : cluster.list(kPodsOfDefault)) {
    EXPECT_EQ(pod.string_at({"metadata", "labels", "pod-template-hash"}), hash);
  }
  cluster.requests.clear();
  cluster.advance(minutes(2));
  EXPECT_THAT(cluster.requests, Not(Contains("PATCH " + kWeb + "/status"))) << "it is at rest";
}

TEST_F(Deployments, RollOutWithinTheirBounds) {
  start();
  create_web(8, parsed(R"({"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2,"maxUnavailable":1}}})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  cluster.merge(kWeb, template_change("two"));
  std::int64_t fewest = 8;
  std::int64_t most = 8;
  ASSERT_TRUE(until([&] {
    const Counted counted = pods();
    fewest = std::min(fewest, counted.ready);
    most = std::max(most, counted.all);
    return is_complete();
  }));
  EXPECT_GE(fewest, 7);
  EXPECT_LE(most, 10);
  EXPECT_GT(most, 8) << "it surges";
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 0}, {"two", 8}}));
  EXPECT_EQ(cluster.get(kWeb).string_at({"metadata", "annotations", "deployment.kubernetes.io/revision"}), "2");
}

TEST_F(Deployments, OfABrokenTemplateTheOldPodsStay) {
  start();
  create_web(4, parsed(R"({"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":1}},
                          "progressDeadlineSeconds":30})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  Json broken = template_change("broken");
  broken.make({"spec", "template", "spec", "nodeSelector", "there-is"}) = "none";
  cluster.merge(kWeb, broken);
  cluster.advance(seconds(20));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 3}, {"broken", 2}}));
  EXPECT_EQ(pods().ready, 3);
  EXPECT_EQ(reason("Progressing"), "ReplicaSetUpdated");
  cluster.advance(seconds(20));
  EXPECT_EQ(reason("Progressing"), "ProgressDeadlineExceeded");
  EXPECT_EQ(reason("Available"), "MinimumReplicasAvailable");
  // Rolled back as kubectl does it: by the former template.
  cluster.merge(kWeb, parsed(R"({"spec":{"template":{"metadata":{"annotations":null},
                                                     "spec":{"nodeSelector":null}}}})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 4}, {"broken", 0}}));
  EXPECT_EQ(reason("Progressing"), "NewReplicaSetAvailable");
  const Json web = cluster.get(kWeb);
  EXPECT_EQ(web.string_at({"metadata", "annotations", "deployment.kubernetes.io/revision"}), "3");
  for (const Json& each : cluster.list(kSets)) {
    const bool is_first = each.string_at({"spec", "template", "metadata", "annotations", "note"}).empty();
    EXPECT_EQ(each.string_at({"metadata", "annotations", "deployment.kubernetes.io/revision"}), is_first ? "3" : "2");
    if (!is_first) continue;
    EXPECT_EQ(each.string_at({"metadata", "annotations", "deployment.kubernetes.io/revision-history"}), "1");
  }
}

TEST_F(Deployments, RecreateStartsWhenTheLastOldPodIsGone) {
  start();
  create_web(3, parsed(R"({"strategy":{"type":"Recreate"}})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  cluster.set_up("n0", false);  // the node's pods do not end
  cluster.merge("/api/v1/nodes/n0", parsed(R"({"spec":{"unschedulable":true}})"));
  std::vector<std::string> stuck;
  for (const Json& pod : cluster.list(kPodsOfDefault)) {
    if (pod.string_at({"spec", "nodeName"}) == "n0") stuck.emplace_back(pod.string_at({"metadata", "name"}));
  }
  ASSERT_THAT(stuck, Not(IsEmpty()));
  cluster.merge(kWeb, template_change("two"));
  cluster.advance(seconds(20));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 0}}));
  EXPECT_EQ(cluster.pod_names(), std::set<std::string>(stuck.begin(), stuck.end()));
  for (const std::string& pod : stuck) cluster.remove(kPodsOfDefault + "/" + pod + "?gracePeriodSeconds=0");
  ASSERT_TRUE(until([this] { return is_complete(); }));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 0}, {"two", 3}}));
}

TEST_F(Deployments, APausedOneScalesAndDoesNotRollOut) {
  start();
  create_web(2);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  Json pause = template_change("two");
  pause.make({"spec"})["paused"] = true;
  cluster.merge(kWeb, pause);
  cluster.advance(seconds(5));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 2}}));
  EXPECT_EQ(reason("Progressing"), "DeploymentPaused");
  cluster.merge(kWeb + "/scale", parsed(R"({"spec":{"replicas":5}})"));
  cluster.advance(seconds(5));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 5}}));
  EXPECT_EQ(status("readyReplicas"), 5);
  cluster.merge(kWeb, parsed(R"({"spec":{"paused":false}})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 0}, {"two", 5}}));
}

TEST_F(Deployments, InTheMiddleOfARolloutBothTemplatesAreScaled) {
  start();
  create_web(10, parsed(R"({"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3,"maxUnavailable":2}}})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  Json broken = template_change("broken");
  broken.make({"spec", "template", "spec", "nodeSelector", "there-is"}) = "none";
  cluster.merge(kWeb, broken);
  cluster.advance(seconds(10));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 8}, {"broken", 5}}));
  cluster.merge(kWeb + "/scale", parsed(R"({"spec":{"replicas":15}})"));
  cluster.advance(seconds(10));
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"", 11}, {"broken", 7}})) << "as the documentation has it";
}

TEST_F(Deployments, KeepAsMuchHistoryAsTheyAreAskedFor) {
  start();
  create_web(1, parsed(R"({"revisionHistoryLimit":2})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  for (const std::string_view mark : {"b", "c", "d", "e"}) {
    cluster.merge(kWeb, template_change(mark));
    ASSERT_TRUE(until([this] { return is_complete(); })) << mark;
    cluster.advance(seconds(2));
  }
  EXPECT_EQ(sizes(), (std::map<std::string, std::int64_t>{{"c", 0}, {"d", 0}, {"e", 1}}));
}

TEST_F(Deployments, OrphansAreAdoptedAndStrangersLetGo) {
  start();
  create_web(2);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  cluster.remove(kWeb + "?propagationPolicy=Orphan");
  cluster.advance(seconds(5));
  const std::set<std::string> before = cluster.pod_names();
  ASSERT_THAT(before, SizeIs(2));
  create_web(2);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  cluster.advance(seconds(5));
  EXPECT_EQ(cluster.pod_names(), before) << "the pods of the adopted ReplicaSet serve on";
  std::vector<Json> sets = cluster.list(kSets);
  ASSERT_THAT(sets, SizeIs(1));
  const std::string name(sets[0].string_at({"metadata", "name"}));
  const std::string uid(cluster.get(kWeb).string_at({"metadata", "uid"}));
  EXPECT_NE(api::to_text(sets[0]).find(uid), std::string::npos);
  cluster.merge(kSets + "/" + name, parsed(R"({"metadata":{"labels":{"app":"mine"}}})"));
  cluster.advance(seconds(10));
  EXPECT_EQ(api::to_text(cluster.get(kSets + "/" + name)).find(uid), std::string::npos) << "it is let go";
}

TEST_F(Deployments, ATakenNameLeadsToAnotherOne) {
  start();
  create_web(1);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  Json stranger = cluster.list(kSets).front();
  cluster.remove(kWeb + "?propagationPolicy=Background");
  cluster.advance(seconds(20));
  ASSERT_THAT(cluster.list(kSets), IsEmpty());
  const std::string name(stranger.string_at({"metadata", "name"}));
  Json squatter = workload_json("ReplicaSet", name, 0);
  cluster.create(kSets, squatter);
  create_web(1);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  EXPECT_EQ(status("collisionCount"), 1);
  EXPECT_THAT(cluster.list(kSets), SizeIs(2));
}

TEST_F(Deployments, AnAnswerThatIsLostMakesNoSecondReplicaSet) {
  start();
  cluster.fail(api::Method::kPost, "/replicasets", TestCluster::kLostAnswer, 1);
  create_web(2);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  EXPECT_THAT(cluster.list(kSets), SizeIs(1));
  EXPECT_EQ(pods().all, 2);
  EXPECT_EQ(status("collisionCount"), 0);
}

TEST_F(Deployments, WhatIsSeenLateIsNotDoneTwice) {
  start();
  create_web(6, parsed(R"({"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  cluster.delay_events("/replicasets", milliseconds(700));
  cluster.merge(kWeb, template_change("two"));
  std::int64_t fewest = 6;
  std::int64_t most = 6;
  ASSERT_TRUE(until(
      [&] {
        fewest = std::min(fewest, pods().ready);
        most = std::max(most, pods().all);
        return is_complete();
      },
      minutes(3)));
  EXPECT_GE(fewest, 5);
  EXPECT_LE(most, 7);
  EXPECT_THAT(cluster.list(kSets), SizeIs(2));
}

TEST_F(Deployments, AWriteOfAnotherClientIsNotOverwritten) {
  start();
  create_web(3);
  ASSERT_TRUE(until([this] { return is_complete(); }));
  const std::string web_set = kSets + "/" + std::string(cluster.list(kSets)[0].string_at({"metadata", "name"}));
  cluster.before(api::Method::kPatch, web_set, [&] {
    cluster.merge(web_set, parsed(R"({"metadata":{"annotations":{"by":"somebody"}},"spec":{"replicas":9}})"));
  });
  cluster.merge(kWeb, parsed(R"({"spec":{"replicas":4}})"));
  ASSERT_TRUE(until([this] { return is_complete() && pods().ready == 4; }));
  EXPECT_EQ(cluster.get(web_set).string_at({"metadata", "annotations", "by"}), "somebody");
  // The event reports the real change: from 9, not from 3, which the controller had read.
  std::string said;
  for (const Json& event : cluster.list("/api/v1/namespaces/default/events")) said += event.string_at({"message"});
  EXPECT_NE(said.find("from 9 to 4"), std::string::npos);
  EXPECT_EQ(said.find("from 3 to 4"), std::string::npos);
}

TEST_F(Deployments, PodsCountWhenTheyHaveBeenReadyForLongEnough) {
  start();
  create_web(2, parsed(R"({"minReadySeconds":20})"));
  cluster.advance(seconds(10));
  EXPECT_EQ(status("readyReplicas"), 2);
  EXPECT_EQ(status("availableReplicas"), 0);
  EXPECT_EQ(reason("Available"), "MinimumReplicasUnavailable");
  cluster.advance(seconds(15));
  EXPECT_EQ(status("availableReplicas"), 2);
  EXPECT_EQ(reason("Available"), "MinimumReplicasAvailable");
}

TEST_F(Deployments, PodsThatAreRefusedAreSpokenOf) {
  start();
  create_web(2, parsed(R"({"progressDeadlineSeconds":60})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  Json refused = template_change("refused");
  refused.make({"spec", "template", "spec", "priorityClassName"}) = "there-is-none";
  cluster.merge(kWeb, refused);
  cluster.advance(seconds(10));
  EXPECT_EQ(reason("ReplicaFailure"), "FailedCreate");
  EXPECT_EQ(pods().ready, 2);
  cluster.merge(kWeb, parsed(R"({"spec":{"template":{"spec":{"priorityClassName":null}}}})"));
  ASSERT_TRUE(until([this] { return is_complete(); }));
  cluster.advance(seconds(5));
  EXPECT_EQ(reason("ReplicaFailure"), "");
}

}  // namespace
}  // namespace spillway::controllers
