// Claims, volumes and the pods that use them: the binder, the protection and the scheduler together, with the real API
// server.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

const std::string kPods = "/api/v1/namespaces/default/pods";
const std::string kClaims = "/api/v1/namespaces/default/persistentvolumeclaims";
const std::string kVolumes = "/api/v1/persistentvolumes";
const std::string kClasses = "/apis/storage.k8s.io/v1/storageclasses";

Json json(const std::string& text) {
  return api::parse_json(text).value();
}

class Volumes : public ::testing::Test {
 protected:
  Volumes() : set({}, Rng(3), telemetry::Log(), metrics), scheduler({}, Rng(4), telemetry::Log(), metrics) {}

  ~Volumes() override {
    cluster.stop(set);
    cluster.stop(scheduler);
  }

  void start(int nodes) {
    for (int i = 0; i < nodes; ++i)
      cluster.add_node(fmt::format("n{}", i), {{"kubernetes.io/hostname", fmt::format("n{}", i)}});
    cluster.run(set);
    cluster.run(scheduler);
    cluster.advance(seconds(2));
  }

  void make_volume(const std::string& name, const std::string& more = {}, const std::string& size = "1Gi") {
    cluster.create(kVolumes, json(R"({"metadata":{"name":")" + name + R"("},"spec":{"capacity":{"storage":")" + size +
                                  R"("},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/srv/x"})" + more + "}}"));
  }

  /// A local volume of class "late" that only one node has.
  void make_local(const std::string& name, const std::string& node) {
    cluster.create(
        kVolumes,
        json(R"({"metadata":{"name":")" + name +
             R"("},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"late",)"
             R"("local":{"path":"/mnt/x"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[)"
             R"({"key":"kubernetes.io/hostname","operator":"In","values":[")" +
             node + R"("]}]}]}}}})"));
  }

  void make_class(const std::string& name, const std::string& mode, const std::string& metadata = {}) {
    cluster.create(kClasses,
                   json(R"({"metadata":{"name":")" + name + "\"" + metadata +
                        R"(},"provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":")" + mode + "\"}"));
  }

  void make_claim(const std::string& name, const std::string& more = R"(,"storageClassName":"")") {
    cluster.create(
        kClaims,
        json(R"({"metadata":{"name":")" + name +
             R"("},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}})" + more + "}}"));
  }

  void make_pod(const std::string& name, const std::string& claim) {
    Json pod = pod_json(name);
    pod["spec"]["volumes"] =
        Json::array({json(R"({"name":"v","persistentVolumeClaim":{"claimName":")" + claim + "\"}}")});
    cluster.create(kPods, pod);
  }

  std::string phase(const std::string& target) {
    const Json found = cluster.get(target);
    return found.is_null() ? "gone" : std::string(found.string_at({"status", "phase"}));
  }

  std::string node_of(const std::string& pod) {
    return std::string(cluster.get(kPods + "/" + pod).string_at({"spec", "nodeName"}));
  }

  std::string why_it_waits(const std::string& pod) {
    const Json found = cluster.get(kPods + "/" + pod);
    const Json* conditions = found.at({"status", "conditions"});
    if (conditions == nullptr) return {};
    for (const Json& condition : *conditions->if_array())
      if (condition.string_at({"type"}) == "PodScheduled") return std::string(condition.string_at({"message"}));
    return {};
  }

  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
  Scheduler scheduler;
};

TEST_F(Volumes, AreBoundReleasedAndKept) {
  start(1);
  make_claim("c");
  cluster.advance(seconds(1));
  EXPECT_EQ(phase(kClaims + "/c"), "Pending");
  EXPECT_THAT(cluster.events_about("c"), Contains(Key("FailedBinding")));
  make_volume("v");
  cluster.advance(seconds(1));
  EXPECT_EQ(phase(kVolumes + "/v"), "Bound");
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
  EXPECT_EQ(cluster.get(kClaims + "/c").string_at({"status", "capacity", "storage"}), "1Gi");
  cluster.remove(kClaims + "/c");
  cluster.advance(seconds(1));
  EXPECT_EQ(phase(kClaims + "/c"), "gone");
  EXPECT_EQ(phase(kVolumes + "/v"), "Released");
  make_claim("c");
  cluster.advance(seconds(5));
  EXPECT_EQ(phase(kClaims + "/c"), "Pending") << "a released volume is nobody's until somebody says so";
  cluster.merge(kVolumes + "/v", json(R"({"spec":{"claimRef":null}})"));
  cluster.advance(seconds(1));
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
}

TEST_F(Volumes, AreGivenToOneClaimEach) {
  start(1);
  for (int i = 0; i < 5; ++i) make_claim(fmt::format("c{}", i));
  for (int i = 0; i < 3; ++i) make_volume(fmt::format("v{}", i));
  cluster.advance(seconds(3));
  std::set<std::string> used;
  int bound = 0;
  for (int i = 0; i < 5; ++i) {
    const Json claim = cluster.get(fmt::format("{}/c{}", kClaims, i));
    if (claim.string_at({"status", "phase"}) != "Bound") continue;
    ++bound;
    EXPECT_TRUE(used.insert(std::string(claim.string_at({"spec", "volumeName"}))).second);
  }
  EXPECT_EQ(bound, 3);
}

TEST_F(Volumes, ConflictsAndLostAnswersAreTriedAgain) {
  start(1);
  cluster.fail(api::Method::kPatch, "persistentvolumes/v", 409, 2);
  cluster.fail(api::Method::kPatch, "persistentvolumeclaims/c", 503, 1);
  cluster.fail(api::Method::kPatch, "persistentvolumeclaims/c/status", TestCluster::kLostAnswer, 1);
  make_claim("c");
  make_volume("v");
  cluster.advance(seconds(30));
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
}

TEST_F(Volumes, WithPolicyDeleteAreLeftWithAWarning) {
  start(1);
  make_volume("v", R"(,"persistentVolumeReclaimPolicy":"Delete")");
  make_claim("c");
  cluster.advance(seconds(1));
  cluster.remove(kClaims + "/c");
  cluster.advance(seconds(1));
  EXPECT_EQ(phase(kVolumes + "/v"), "Failed");
  EXPECT_THAT(cluster.events_about("v"), Contains(Key("VolumeFailedDelete")));
}

TEST_F(Volumes, InUseAreProtected) {
  start(1);
  make_volume("v");
  make_claim("c");
  make_pod("p", "c");
  cluster.advance(seconds(3));
  ASSERT_EQ(node_of("p"), "n0");
  cluster.remove(kClaims + "/c");
  cluster.remove(kVolumes + "/v");
  cluster.advance(seconds(5));
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
  EXPECT_EQ(phase(kVolumes + "/v"), "Bound");
  cluster.remove(kPods + "/p");
  cluster.advance(seconds(5));
  EXPECT_EQ(phase(kClaims + "/c"), "gone");
  EXPECT_EQ(phase(kVolumes + "/v"), "gone");
}

/// The cache of pods lacks a pod that the API server knows.
TEST_F(Volumes, AreProtectedByAPodThatWasNotSeenYet) {
  start(1);
  make_volume("v");
  make_claim("c");
  cluster.advance(seconds(2));
  cluster.delay_events("/api/v1/pods", seconds(8));
  Json pod = pod_json("p", "64Mi", "n0");
  pod["spec"]["volumes"] = Json::array({json(R"({"name":"v","persistentVolumeClaim":{"claimName":"c"}})")});
  cluster.create(kPods, pod);
  cluster.remove(kClaims + "/c");
  cluster.advance(seconds(4));
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
}

/// As above, where lists of pods fail.
TEST_F(Volumes, AreProtectedWhilePodsCannotBeListed) {
  start(1);
  make_volume("v");
  make_claim("c");
  cluster.advance(seconds(2));
  cluster.delay_events("/api/v1/pods", seconds(60));
  Json pod = pod_json("p", "64Mi", "n0");
  pod["spec"]["volumes"] = Json::array({json(R"({"name":"v","persistentVolumeClaim":{"claimName":"c"}})")});
  cluster.create(kPods, pod);
  constexpr int kAnswers = 3;
  cluster.fail(api::Method::kGet, "/namespaces/default/pods", 200, kAnswers, R"({"kind":"PodList"})");
  const auto asked = [this] {
    return std::ranges::count_if(cluster.requests, [](const std::string& each) {
      return each.starts_with("GET ") && each.contains("/namespaces/default/pods");
    });
  };
  const auto before = asked();
  cluster.remove(kClaims + "/c");
  cluster.advance(seconds(30));
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
  EXPECT_GT(asked() - before, kAnswers) << "it is asked again until there is an answer";
}

TEST_F(Volumes, UnboundHoldAPodBack) {
  start(1);
  make_claim("c");
  make_pod("p", "c");
  cluster.advance(seconds(2));
  EXPECT_EQ(why_it_waits("p"),
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/1 nodes are "
            "available: 1 Preemption is not helpful for scheduling.");
  make_volume("v");
  cluster.advance(seconds(3));
  EXPECT_EQ(node_of("p"), "n0");
}

TEST_F(Volumes, AMissingClaimIsNamed) {
  start(1);
  make_pod("p", "c");
  cluster.advance(seconds(2));
  EXPECT_THAT(why_it_waits("p"), HasSubstr("persistentvolumeclaim \"c\" not found"));
}

TEST_F(Volumes, OfAClassThatWaitsAreBoundWhereThePodGoes) {
  start(3);
  make_class("late", "WaitForFirstConsumer");
  make_local("v2", "n2");
  make_claim("c", R"(,"storageClassName":"late")");
  cluster.advance(seconds(2));
  EXPECT_EQ(phase(kClaims + "/c"), "Pending");
  EXPECT_EQ(phase(kVolumes + "/v2"), "Available");
  EXPECT_THAT(cluster.events_about("c"), Contains(Key("WaitForFirstConsumer")));
  make_pod("p", "c");
  cluster.advance(seconds(3));
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
  EXPECT_EQ(node_of("p"), "n2");
  make_pod("q", "c");  // another user of the claim must run on the same node
  cluster.advance(seconds(3));
  EXPECT_EQ(node_of("q"), "n2");
}

TEST_F(Volumes, TwoPodsDoNotGetTheSameVolume) {
  start(2);
  make_class("late", "WaitForFirstConsumer");
  make_local("v", "n0");
  make_claim("a", R"(,"storageClassName":"late")");
  make_claim("b", R"(,"storageClassName":"late")");
  make_pod("pa", "a");
  make_pod("pb", "b");
  cluster.advance(seconds(3));
  EXPECT_NE(node_of("pa").empty(), node_of("pb").empty());
  const std::string waits = node_of("pa").empty() ? "pa" : "pb";
  EXPECT_THAT(why_it_waits(waits), HasSubstr("2 node(s) didn't find available persistent volumes to bind"));
  make_local("w", "n1");
  cluster.advance(seconds(12));  // the pod's back-off is over
  EXPECT_EQ(node_of(waits), "n1");
}

TEST_F(Volumes, APodWhoseVolumeIsTakenByAnotherMeanwhileTriesAgain) {
  start(2);
  make_class("late", "WaitForFirstConsumer");
  make_local("v", "n0");
  make_local("w", "n1");
  make_claim("c", R"(,"storageClassName":"late")");
  cluster.advance(seconds(2));
  cluster.before(api::Method::kPatch, kVolumes + "/v", [this] {
    cluster.merge(kVolumes + "/v", json(R"({"spec":{"claimRef":{"namespace":"other","name":"x"}}})"));
  });
  make_pod("p", "c");
  cluster.advance(seconds(5));
  EXPECT_EQ(node_of("p"), "n1");
  EXPECT_EQ(cluster.get(kClaims + "/c").string_at({"spec", "volumeName"}), "w");
}

TEST_F(Volumes, ABoundOneElsewhereIsAConflict) {
  start(2);
  make_class("late", "WaitForFirstConsumer");
  make_local("v", "n9");
  make_claim("c", R"(,"storageClassName":"late","volumeName":"v")");
  make_pod("p", "c");
  cluster.advance(seconds(3));
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
  EXPECT_THAT(why_it_waits("p"), HasSubstr("2 node(s) had volume node affinity conflict"));
}

TEST_F(Volumes, ALaterDefaultClassIsGivenToClaimsWithoutOne) {
  start(1);
  make_claim("c", "");
  cluster.advance(seconds(1));
  make_class("main", "Immediate", R"(,"annotations":{"storageclass.kubernetes.io/is-default-class":"true"})");
  make_volume("v", R"(,"storageClassName":"main")");
  cluster.advance(seconds(2));
  EXPECT_EQ(cluster.get(kClaims + "/c").string_at({"spec", "storageClassName"}), "main");
  EXPECT_EQ(phase(kClaims + "/c"), "Bound");
}

TEST_F(Volumes, AtRestNothingIsWritten) {
  start(1);
  make_volume("v");
  make_claim("c");
  make_claim("waits");
  make_pod("p", "waits");
  cluster.advance(seconds(5));
  cluster.requests.clear();
  cluster.advance(seconds(20));
  for (const std::string& request : cluster.requests)
    EXPECT_THAT(request, Not(HasSubstr("persistentvolume"))) << request;
}

}  // namespace
}  // namespace spillway::controllers
