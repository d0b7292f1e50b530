// StatefulSets with the real API server: pods in their order, each with its claims, whatever is late, lost or refused.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
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
using ::testing::Pair;
using ::testing::SizeIs;

const std::string kPodsHere = "/api/v1/namespaces/default/pods";
const std::string kClaimsHere = "/api/v1/namespaces/default/persistentvolumeclaims";
const std::string kStatefulSets = "/apis/apps/v1/namespaces/default/statefulsets";
const std::string kRevisionsHere = "/apis/apps/v1/namespaces/default/controllerrevisions";
const std::string kDb = kStatefulSets + "/db";

Json json_of_text(std::string_view text) {
  return api::parse_json(text).value();
}

class StatefulSets : public ::testing::Test {
 protected:
  StatefulSets() : set(options, Rng(3), telemetry::Log(), metrics), scheduler({}, Rng(4), telemetry::Log(), metrics) {}

  ~StatefulSets() override {
    cluster.stop(set);
    cluster.stop(scheduler);
  }

  void start() {
    for (int i = 0; i < 2; ++i) cluster.add_node(fmt::format("n{}", i), {}, "64Gi");
    cluster.run(set);
    cluster.run(scheduler);
    cluster.advance(seconds(2));
  }

  void create_db(int replicas, std::string_view spec = "{}") {
    Json db = workload_json("StatefulSet", "db", replicas);
    db.make({"spec"})["serviceName"] = "db";
    const Json members = json_of_text(spec);
    for (const auto& [name, value] : *members.if_object()) db.make({"spec"})[name] = value;
    cluster.create(kStatefulSets, db);
  }

  void new_template(std::string_view mark) {
    Json patch;
    patch.make({"spec", "template", "metadata", "annotations", "note"}) = mark;
    cluster.merge(kDb, patch);
  }

  std::set<std::string> claims() {
    std::set<std::string> names;
    for (const Json& claim : cluster.list(kClaimsHere)) names.emplace(claim.string_at({"metadata", "name"}));
    return names;
  }

  /// "db-1=new" of every pod, by the note of its template.
  std::set<std::string> marks() {
    std::set<std::string> out;
    for (const Json& pod : cluster.list(kPodsHere)) {
      out.insert(fmt::format("{}={}", pod.string_at({"metadata", "name"}),
                             pod.string_at({"metadata", "annotations", "note"})));
    }
    return out;
  }

  std::int64_t status(std::string_view field) {
    const Json object = cluster.get(kDb);
    const Json* value = object.at({"status", field});
    return value == nullptr ? 0 : value->if_int64().value_or(-1);
  }

  std::string pod_uid(const std::string& name) {
    return std::string(cluster.get(kPodsHere + "/" + name).string_at({"metadata", "uid"}));
  }

  /// The order in which requests of this method named one of the pods.
  std::vector<std::string> deletions() const {
    std::vector<std::string> out;
    const std::string prefix = "DELETE " + kPodsHere + "/";
    for (const std::string& request : cluster.requests) {
      if (request.starts_with(prefix)) out.push_back(request.substr(prefix.size()));
    }
    return out;
  }

  std::int64_t creations() const { return std::ranges::count(cluster.requests, "POST " + kPodsHere); }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
  Scheduler scheduler;
};

constexpr std::string_view kWithClaims = R"("volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{
    "accessModes":["ReadWriteOnce"],"storageClassName":"none","resources":{"requests":{"storage":"1Gi"}}}}])";

std::string with_claims(std::string_view more = {}) {
  return fmt::format("{{{}{}}}", kWithClaims, more);
}

TEST_F(StatefulSets, MakeTheirPodsInOrder) {
  start();
  cluster.fail(api::Method::kPost, "/pods", 500, 1);
  create_db(3);
  cluster.advance(seconds(60));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("db-0", "db-1", "db-2"));
  const Json pod = cluster.get(kPodsHere + "/db-1");
  EXPECT_EQ(pod.string_at({"spec", "hostname"}), "db-1");
  EXPECT_EQ(pod.string_at({"spec", "subdomain"}), "db");
  EXPECT_EQ(pod.string_at({"metadata", "labels", "apps.kubernetes.io/pod-index"}), "1");
  EXPECT_EQ(status("readyReplicas"), 3);
  EXPECT_EQ(status("availableReplicas"), 3);
  EXPECT_THAT(cluster.events_about("db"), Contains(Key("FailedCreate")));
}

TEST_F(StatefulSets, WaitForThoseBeforeUnlessTheyAreParallel) {
  start();
  for (const auto& [policy, pods] : {std::pair("OrderedReady", 1U), std::pair("Parallel", 3U)}) {
    Json db = workload_json("StatefulSet", "db", 3);
    db.make({"spec"})["podManagementPolicy"] = policy;
    db.make({"spec", "template", "spec", "nodeSelector"}) = Json::object({{"there-is", "none"}});
    cluster.create(kStatefulSets, db);
    cluster.advance(minutes(1));
    EXPECT_THAT(cluster.pod_names(), SizeIs(pods)) << policy;
    cluster.remove(kDb);
    cluster.advance(minutes(1));
    EXPECT_THAT(cluster.pod_names(), IsEmpty());
  }
}

TEST_F(StatefulSets, ScaleDownFromTheLastAndKeepClaims) {
  start();
  create_db(3, with_claims(R"(,"podManagementPolicy":"Parallel")"));
  cluster.advance(seconds(10));
  EXPECT_THAT(claims(), ElementsAre("data-db-0", "data-db-1", "data-db-2"));
  cluster.requests.clear();
  cluster.merge(kDb, json_of_text(R"({"spec":{"replicas":1}})"));
  cluster.advance(seconds(60));
  EXPECT_THAT(deletions(), ElementsAre("db-2", "db-1"));
  EXPECT_THAT(claims(), SizeIs(3));
}

TEST_F(StatefulSets, AreBroughtUpToDateFromTheLastDown) {
  start();
  create_db(3);
  cluster.advance(seconds(30));
  cluster.requests.clear();
  new_template("new");
  cluster.advance(minutes(2));
  EXPECT_THAT(marks(), ElementsAre("db-0=new", "db-1=new", "db-2=new"));
  EXPECT_THAT(deletions(), ElementsAre("db-2", "db-1", "db-0"));
  EXPECT_EQ(cluster.get(kDb).string_at({"status", "currentRevision"}),
            cluster.get(kDb).string_at({"status", "updateRevision"}));
  EXPECT_THAT(cluster.list(kRevisionsHere), SizeIs(2));
  // Rolled back: there is no third revision.
  cluster.merge(kDb, json_of_text(R"({"spec":{"template":{"metadata":{"annotations":null}}}})"));
  cluster.advance(minutes(2));
  EXPECT_THAT(marks(), ElementsAre("db-0=", "db-1=", "db-2="));
  EXPECT_THAT(cluster.list(kRevisionsHere), SizeIs(2));
}

TEST_F(StatefulSets, KeepWhatIsBelowThePartitionOld) {
  start();
  create_db(3, R"({"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}})");
  cluster.advance(seconds(30));
  new_template("new");
  cluster.advance(minutes(1));
  EXPECT_THAT(marks(), ElementsAre("db-0=", "db-1=", "db-2=new"));
  // A deleted pod is created again with its claims.
  cluster.remove(kPodsHere + "/db-1");
  cluster.advance(minutes(1));
  EXPECT_THAT(marks(), ElementsAre("db-0=", "db-1=", "db-2=new"));
  EXPECT_EQ(status("currentReplicas"), 2);
  EXPECT_EQ(status("updatedReplicas"), 1);
}

TEST_F(StatefulSets, AnUpdateStopsAtAPodThatIsNotReady) {
  start();
  create_db(3);
  cluster.advance(seconds(30));
  Json patch;
  patch.make({"spec", "template", "spec", "nodeSelector"}) = Json::object({{"there-is", "none"}});
  cluster.merge(kDb, patch);
  cluster.advance(minutes(3));
  EXPECT_EQ(status("readyReplicas"), 2);
  EXPECT_EQ(status("updatedReplicas"), 1);
}

TEST_F(StatefulSets, MakeNoPodTwiceWhateverIsLost) {
  start();
  cluster.fail(api::Method::kPost, "/pods", TestCluster::kLostAnswer, 2);
  cluster.fail(api::Method::kPost, "/controllerrevisions", TestCluster::kLostAnswer, 1);
  cluster.fail(api::Method::kPost, "/persistentvolumeclaims", TestCluster::kLostAnswer, 1);
  cluster.fail(api::Method::kPatch, "/statefulsets/db/status", TestCluster::kLostAnswer, 2);
  cluster.delay_events("/pods", seconds(3));
  cluster.delay_events("/statefulsets", seconds(2));
  cluster.delay_events("/persistentvolumeclaims", seconds(4));
  cluster.delay_events("/controllerrevisions", seconds(20));
  create_db(3, with_claims(R"(,"podManagementPolicy":"Parallel")"));
  cluster.advance(minutes(5));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("db-0", "db-1", "db-2"));
  EXPECT_THAT(claims(), SizeIs(3));
  EXPECT_THAT(cluster.list(kRevisionsHere), SizeIs(1));
  EXPECT_EQ(status("replicas"), 3);
  EXPECT_EQ(status("collisionCount"), 0);
}

TEST_F(StatefulSets, TryAnotherNameForARevisionThatIsNotTheirs) {
  start();
  create_db(1);
  cluster.advance(seconds(10));
  const std::string name(cluster.get(kDb).string_at({"status", "updateRevision"}));
  cluster.remove(kDb);
  cluster.advance(minutes(1));
  ASSERT_THAT(cluster.list(kRevisionsHere), IsEmpty());
  cluster.create(kRevisionsHere, Json::object({{"apiVersion", "apps/v1"},
                                               {"kind", "ControllerRevision"},
                                               {"metadata", Json::object({{"name", name}})},
                                               {"data", Json::object({{"spec", "another"}})},
                                               {"revision", 1}}));
  create_db(1);
  cluster.advance(seconds(30));
  EXPECT_EQ(status("readyReplicas"), 1);
  EXPECT_EQ(status("collisionCount"), 1);
  EXPECT_NE(cluster.get(kDb).string_at({"status", "updateRevision"}), name);
}

TEST_F(StatefulSets, AskForEachPodOnceThoughTheyAreSeenLate) {
  start();
  cluster.delay_events("/pods", seconds(3));
  cluster.requests.clear();
  create_db(3, R"({"podManagementPolicy":"Parallel"})");
  cluster.advance(minutes(1));
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
  EXPECT_EQ(creations(), 3);
  cluster.requests.clear();
  cluster.merge(kDb, json_of_text(R"({"spec":{"replicas":0}})"));
  cluster.advance(minutes(1));
  EXPECT_THAT(deletions(), ElementsAre("db-2", "db-1", "db-0"));
}

TEST_F(StatefulSets, ClaimsGoAsTheirPolicySays) {
  start();
  create_db(2, with_claims(R"(,"podManagementPolicy":"Parallel","persistentVolumeClaimRetentionPolicy":{
      "whenDeleted":"Delete","whenScaled":"Delete"})"));
  cluster.advance(seconds(30));
  const auto owner_of = [this](const std::string& claim) {
    const Json found = cluster.get(kClaimsHere + "/" + claim);
    const Json* owners = found.at({"metadata", "ownerReferences"});
    return owners == nullptr ? std::string() : std::string(owners->if_array()->front().string_at({"kind"}));
  };
  EXPECT_EQ(owner_of("data-db-1"), "StatefulSet");
  cluster.merge(kDb, json_of_text(R"({"spec":{"replicas":1}})"));
  cluster.advance(minutes(2));
  EXPECT_THAT(claims(), ElementsAre("data-db-0"));  // the other claim was deleted with its pod
  cluster.remove(kDb);
  cluster.advance(minutes(2));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
  EXPECT_THAT(claims(), IsEmpty());
}

TEST_F(StatefulSets, AFailedPodIsMadeAgain) {
  start();
  create_db(2);
  cluster.advance(seconds(30));
  const std::string before = pod_uid("db-0");
  cluster.merge(kPodsHere + "/db-0/status", json_of_text(R"({"status":{"phase":"Failed"}})"));
  cluster.advance(seconds(60));
  EXPECT_NE(pod_uid("db-0"), before);
  EXPECT_EQ(status("readyReplicas"), 2);
  EXPECT_THAT(cluster.events_about("db"), Contains(Pair("RecreatingFailedPod", 1)));
  EXPECT_THAT(cluster.events_about("db"), Not(Contains(Key("RecreatingTerminatedPod"))));
}

TEST_F(StatefulSets, ASucceededPodIsMadeAgain) {
  start();
  create_db(1);
  cluster.advance(seconds(30));
  const std::string before = pod_uid("db-0");
  cluster.merge(kPodsHere + "/db-0/status", json_of_text(R"({"status":{"phase":"Succeeded"}})"));
  cluster.advance(seconds(60));
  EXPECT_NE(pod_uid("db-0"), before);
  EXPECT_THAT(cluster.events_about("db"), Contains(Pair("RecreatingTerminatedPod", 1)));
}

TEST_F(StatefulSets, TakeOverPodsOfTheirNameAndNoOthers) {
  start();
  for (const std::string name : {"db-0", "other-0"}) {
    Json pod = pod_json(name);
    pod.make({"metadata", "labels", "app"}) = "db";
    cluster.create(kPodsHere, pod);
  }
  create_db(2);
  cluster.advance(seconds(60));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("db-0", "db-1", "other-0"));
  const auto is_owned = [this](const std::string& pod) {
    return cluster.get(kPodsHere + "/" + pod).at({"metadata", "ownerReferences"}) != nullptr;
  };
  EXPECT_TRUE(is_owned("db-0"));
  EXPECT_FALSE(is_owned("other-0"));
}

TEST_F(StatefulSets, ABudgetKnowsHowManyThereAreToBe) {
  start();
  create_db(4, R"({"podManagementPolicy":"Parallel"})");
  cluster.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                 json_of_text(R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"half"},
      "spec":{"maxUnavailable":"50%","selector":{"matchLabels":{"app":"db"}}}})"));
  cluster.advance(seconds(30));
  const Json budget = cluster.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/half");
  EXPECT_EQ(budget.at({"status", "expectedPods"})->if_int64(), 4);
  EXPECT_EQ(budget.at({"status", "disruptionsAllowed"})->if_int64(), 2);
}

}  // namespace
}  // namespace spillway::controllers
