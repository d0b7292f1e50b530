// Filters by volumes, in the scheduler with the real API server: limits, claims for one pod, and volumes that are made
// for the node a pod gets. Source: Kubernetes docs, "Node-specific Volume Limits", "Persistent Volumes", "Storage
// Classes".
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"
#include "telemetry/log_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::HasSubstr;

const std::string kPodsHere = "/api/v1/namespaces/default/pods";
const std::string kClaimsHere = "/api/v1/namespaces/default/persistentvolumeclaims";
const std::string kAttachments = "/apis/storage.k8s.io/v1/volumeattachments";

class SchedulerVolumes : public ::testing::Test {
 protected:
  SchedulerVolumes()
      : set_({}, Rng(3), telemetry::Log(), metrics_), scheduler_({}, Rng(4), telemetry::Log(), metrics_) {
    for (const std::string name : {"n0", "n1"}) cluster_.add_node(name, {{"kubernetes.io/hostname", name}});
    cluster_.run(set_);
    cluster_.run(scheduler_);
    cluster_.advance(seconds(2));
  }

  ~SchedulerVolumes() override {
    cluster_.stop(set_);
    cluster_.stop(scheduler_);
  }

  static Json parsed(const std::string& text) { return api::parse_json(text).value(); }

  /// Limits the node's volumes of disk.example.com.
  void limit(const std::string& node, int volumes) {
    cluster_.create(
        "/apis/storage.k8s.io/v1/csinodes",
        parsed(fmt::format(R"({{"metadata":{{"name":"{0}"}},"spec":{{"drivers":[{{"name":"disk.example.com",)"
                           R"("nodeID":"{0}","allocatable":{{"count":{1}}}}}]}}}})",
                           node, volumes)));
  }

  /// A claim with a volume of disk.example.com.
  void make_claim(const std::string& name, const std::string& mode = "ReadWriteOnce") {
    const std::string size = R"("storage":"1Gi")";
    cluster_.create(
        "/api/v1/persistentvolumes",
        parsed(R"({"metadata":{"name":"v-)" + name + R"("},"spec":{"capacity":{)" + size + R"(},"accessModes":[")" +
               mode + R"("],"csi":{"driver":"disk.example.com","volumeHandle":"h-)" + name + R"("}}})"));
    cluster_.create(kClaimsHere, parsed(R"({"metadata":{"name":")" + name + R"("},"spec":{"storageClassName":"",)" +
                                        R"("accessModes":[")" + mode + R"("],"resources":{"requests":{)" + size +
                                        R"(}},"volumeName":"v-)" + name + R"("}})"));
    cluster_.advance(seconds(1));
  }

  void make_pod(const std::string& name, const std::string& claim, const std::string& priority_class = {},
                const std::string& node = {}) {
    Json pod = pod_json(name);
    pod["spec"]["volumes"] =
        Json::array({parsed(R"({"name":"v","persistentVolumeClaim":{"claimName":")" + claim + "\"}}")});
    if (!priority_class.empty()) pod["spec"]["priorityClassName"] = priority_class;
    if (!node.empty()) pod.make({"spec", "nodeSelector"})["kubernetes.io/hostname"] = node;
    cluster_.create(kPodsHere, pod);
    cluster_.advance(seconds(3));
  }

  std::string node_of(const std::string& pod) {
    return std::string(cluster_.get(kPodsHere + "/" + pod).string_at({"spec", "nodeName"}));
  }

  std::string why_it_waits(const std::string& pod) {
    const Json found = cluster_.get(kPodsHere + "/" + pod);
    const Json* conditions = found.at({"status", "conditions"});
    if (conditions == nullptr) return {};
    for (const Json& condition : *conditions->if_array())
      if (condition.string_at({"type"}) == "PodScheduled") return std::string(condition.string_at({"message"}));
    return {};
  }

  std::string annotation(const std::string& name) {
    return std::string(cluster_.get(kClaimsHere + "/c").string_at({"metadata", "annotations", name}));
  }

  /// A class whose volumes are made where they are needed, on n1 alone, and a claim of it.
  void make_late_claim() {
    cluster_.create(
        "/apis/storage.k8s.io/v1/storageclasses",
        parsed(R"({"metadata":{"name":"late"},"provisioner":"disk.example.com",)"
               R"("volumeBindingMode":"WaitForFirstConsumer","allowedTopologies":[{"matchLabelExpressions":)"
               R"([{"key":"kubernetes.io/hostname","values":["n1"]}]}]})"));
    cluster_.create(kClaimsHere, parsed(R"({"metadata":{"name":"c"},"spec":{"storageClassName":"late","accessModes":)"
                                        R"(["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})"));
    cluster_.advance(seconds(1));
  }

  /// A volume for the claim of make_late_claim(), which that node alone reaches.
  void make_volume_for_claim(const std::string& node) {
    const std::string uid(cluster_.get(kClaimsHere + "/c").string_at({"metadata", "uid"}));
    cluster_.create(
        "/api/v1/persistentvolumes",
        parsed(R"({"metadata":{"name":"made"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":)"
               R"(["ReadWriteOnce"],"storageClassName":"late","claimRef":{"kind":"PersistentVolumeClaim",)"
               R"("namespace":"default","name":"c","uid":")" +
               uid + R"("},"csi":{"driver":"disk.example.com","volumeHandle":"h"},"nodeAffinity":)" +
               R"({"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname",)" +
               R"("operator":"In","values":[")" + node + R"("]}]}]}}}})"));
    cluster_.advance(seconds(10));
  }

  telemetry::Registry metrics_;
  TestCluster cluster_;
  ControllerSet set_;
  Scheduler scheduler_;
};

TEST_F(SchedulerVolumes, ANodeTakesNoMoreThanItsDriverAttaches) {
  limit("n0", 1);
  limit("n1", 1);
  for (const std::string name : {"a", "b", "c"}) make_claim(name);
  make_pod("a", "a");
  make_pod("b", "b");
  make_pod("c", "c");
  EXPECT_NE(node_of("a"), "");
  EXPECT_NE(node_of("b"), "");
  EXPECT_NE(node_of("a"), node_of("b"));
  EXPECT_EQ(node_of("c"), "");
  EXPECT_THAT(why_it_waits("c"), HasSubstr("0/2 nodes are available: 2 node(s) exceed max volume count."));
}

TEST_F(SchedulerVolumes, AVolumeThatIsStillAttachedTakesItsPlace) {
  limit("n0", 1);
  make_claim("a");
  make_claim("b");
  cluster_.create(kAttachments,
                  parsed(R"({"metadata":{"name":"at"},"spec":{"attacher":"disk.example.com","nodeName":"n0",)"
                         R"("source":{"persistentVolumeName":"v-a"}}})"));
  cluster_.run_until_idle();
  make_pod("b", "b", {}, "n0");
  EXPECT_EQ(node_of("b"), "");
  EXPECT_THAT(why_it_waits("b"), HasSubstr("1 node(s) exceed max volume count"));
  cluster_.remove(kAttachments + "/at");
  cluster_.advance(seconds(5));
  EXPECT_EQ(node_of("b"), "n0") << "what is detached makes room at once";
}

TEST_F(SchedulerVolumes, AVolumeThatIsGivenTheClassAndTheModesIsTakenAtOnce) {
  cluster_.create("/apis/storage.k8s.io/v1/storageclasses",
                  parsed(R"({"metadata":{"name":"local"},"provisioner":"kubernetes.io/no-provisioner",)"
                         R"("volumeBindingMode":"WaitForFirstConsumer"})"));
  const std::string volume = "/api/v1/persistentvolumes/free";
  cluster_.create("/api/v1/persistentvolumes",
                  parsed(R"({"metadata":{"name":"free"},"spec":{"capacity":{"storage":"1Gi"},"storageClassName":)"
                         R"("other","accessModes":["ReadOnlyMany"],"hostPath":{"path":"/d"}}})"));
  cluster_.create(kClaimsHere, parsed(R"({"metadata":{"name":"c"},"spec":{"storageClassName":"local","accessModes":)"
                                      R"(["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})"));
  make_pod("p", "c");
  cluster_.merge(volume, parsed(R"({"spec":{"storageClassName":"local"}})"));
  cluster_.advance(seconds(30));
  EXPECT_EQ(node_of("p"), "");
  cluster_.merge(volume, parsed(R"({"spec":{"accessModes":["ReadWriteOnce"]}})"));
  cluster_.advance(seconds(30));
  EXPECT_NE(node_of("p"), "");
  EXPECT_THAT(metrics_.text(),
              HasSubstr(R"(scheduler_queue_incoming_pods_total{event="PersistentVolumeUpdate",queue="backoff"} 3)"))
      << "by its phase, its class and its modes";
}

TEST_F(SchedulerVolumes, WhoUsesAClaimForOnePodLeavesForAHigherPriority) {
  cluster_.create("/apis/scheduling.k8s.io/v1/priorityclasses", parsed(R"({"metadata":{"name":"high"},"value":1000})"));
  make_claim("one", "ReadWriteOncePod");
  make_pod("low", "one");
  EXPECT_NE(node_of("low"), "");
  make_pod("equal", "one");
  EXPECT_EQ(node_of("equal"), "");
  EXPECT_THAT(why_it_waits("equal"),
              HasSubstr("2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod "
                        "access mode already in-use by another pod"));
  make_pod("high", "one", "high");
  cluster_.advance(seconds(10));
  EXPECT_TRUE(cluster_.get(kPodsHere + "/low").is_null())
      << "its choice is looked at again before anybody leaves, with the volumes";
  EXPECT_NE(node_of("high"), "");
}

TEST_F(SchedulerVolumes, AreMadeForTheNodeOfThePod) {
  make_late_claim();
  make_pod("p", "c");
  EXPECT_EQ(annotation("volume.kubernetes.io/selected-node"), "n1");
  EXPECT_EQ(annotation("volume.kubernetes.io/storage-provisioner"), "disk.example.com");
  EXPECT_EQ(annotation("volume.beta.kubernetes.io/storage-provisioner"), "disk.example.com");
  EXPECT_EQ(node_of("p"), "") << "nothing is there yet";
  const std::string uid(cluster_.get(kClaimsHere + "/c").string_at({"metadata", "uid"}));
  cluster_.create("/api/v1/persistentvolumes",
                  parsed(R"({"metadata":{"name":"made"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":)"
                         R"(["ReadWriteOnce"],"storageClassName":"late","claimRef":{"kind":"PersistentVolumeClaim",)"
                         R"("namespace":"default","name":"c","uid":")" +
                         uid + R"("},"csi":{"driver":"disk.example.com","volumeHandle":"h"}}})"));
  cluster_.advance(seconds(3));
  EXPECT_EQ(cluster_.get(kClaimsHere + "/c").string_at({"spec", "volumeName"}), "made");
  EXPECT_EQ(node_of("p"), "n1");
}

TEST_F(SchedulerVolumes, WhoCannotMakeOneSendsThePodBack) {
  make_late_claim();
  make_pod("p", "c");
  ASSERT_EQ(annotation("volume.kubernetes.io/selected-node"), "n1");
  cluster_.merge(kClaimsHere + "/c",
                 parsed(R"({"metadata":{"annotations":{"volume.kubernetes.io/selected-node":null}}})"));
  EXPECT_EQ(annotation("volume.kubernetes.io/selected-node"), "");
  cluster_.advance(seconds(3));
  EXPECT_EQ(annotation("volume.kubernetes.io/selected-node"), "n1") << "it is placed anew, and asks again";
  EXPECT_EQ(node_of("p"), "");
}

TEST_F(SchedulerVolumes, AVolumeOutOfTheNodesReachSendsThePodBack) {
  make_late_claim();
  make_pod("p", "c");
  ASSERT_EQ(annotation("volume.kubernetes.io/selected-node"), "n1");
  make_volume_for_claim("n0");
  EXPECT_EQ(node_of("p"), "n0") << "where its volume is, whoever made it";
}

TEST_F(SchedulerVolumes, ANodeThatGoesSendsThePodBack) {
  make_late_claim();
  make_pod("p", "c");
  ASSERT_EQ(annotation("volume.kubernetes.io/selected-node"), "n1");
  cluster_.remove("/api/v1/nodes/n1");
  cluster_.run_until_idle();
  EXPECT_THAT(why_it_waits("p"), HasSubstr(R"(running PreBind plugin "VolumeBinding": node "n1" not found)"));
  make_volume_for_claim("n1");
  EXPECT_EQ(node_of("p"), "");
}

TEST_F(SchedulerVolumes, APodThatAnotherSchedulerBindsWaitsForNothing) {
  make_late_claim();
  make_pod("p", "c");
  ASSERT_EQ(annotation("volume.kubernetes.io/selected-node"), "n1");
  cluster_.create(kPodsHere + "/p/binding", parsed(R"({"target":{"kind":"Node","name":"n0"}})"));
  cluster_.advance(minutes(11));
  EXPECT_EQ(node_of("p"), "n0");
  EXPECT_EQ(cluster_.events_about("p")["FailedScheduling"], 0);
  EXPECT_THAT(metrics_.text(), ::testing::Not(HasSubstr(R"(result="error"} 1)")));
}

TEST_F(SchedulerVolumes, WhoMakesNoneInTimeSendsThePodBackAndItIsSaid) {
  make_late_claim();
  make_pod("p", "c");
  EXPECT_EQ(why_it_waits("p"), "");
  cluster_.advance(minutes(11));
  EXPECT_THAT(why_it_waits("p"),
              HasSubstr(R"(running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded)"));
  EXPECT_THAT(metrics_.text(),
              HasSubstr(R"(scheduler_framework_extension_point_duration_seconds_sum{extension_point="PreBind",)"
                        R"(profile="default-scheduler",status="Error"} 600)"));
  EXPECT_EQ(cluster_.events_about("p")["FailedScheduling"], 1);
  EXPECT_THAT(metrics_.text(),
              HasSubstr(R"(scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1)"));
}

/// A cluster whose API server is older than the scheduler: its role lacks what only volumes and scores need.
TEST(SchedulerLists, ThatAreRefusedHoldNoPodBackUnlessTheyAreNeeded) {
  telemetry::Registry metrics;
  TestCluster cluster;
  cluster.add_node("n0");
  std::vector<std::string> said;
  const telemetry::Log log([&said](telemetry::Level, std::string_view event, std::span<const telemetry::Field> fields) {
    said.push_back(telemetry::render_logfmt(telemetry::Level::kWarning, event, fields));
  });
  for (const std::string part : {"csinodes", "volumeattachments", "replicationcontrollers", "persistentvolumeclaims"})
    cluster.fail(api::Method::kGet, part, 403, part == "persistentvolumeclaims" ? 3 : part == "csinodes" ? 6 : 1000);
  cluster.fail(api::Method::kGet, "csinodes", 503, 1000);  // read before: the failure changes nothing
  Scheduler scheduler({}, Rng(4), log, metrics);
  cluster.run(scheduler);
  Json pod = pod_json("p");  // the node is Ready, but no controller here removes its taint
  pod["spec"]["tolerations"] = Json::array({api::parse_json(R"({"operator":"Exists"})").value()});
  cluster.create(kPodsHere, pod);
  cluster.advance(milliseconds(200));
  EXPECT_EQ(cluster.get(kPodsHere + "/p").string_at({"spec", "nodeName"}), "");
  EXPECT_THAT(said, ::testing::Contains(::testing::AllOf(HasSubstr("no pod is placed without it"),
                                                         HasSubstr("persistentvolumeclaims"))));
  cluster.advance(minutes(1));
  EXPECT_EQ(cluster.get(kPodsHere + "/p").string_at({"spec", "nodeName"}), "n0");
  cluster.advance(minutes(2));
  pod["metadata"]["name"] = "q";
  cluster.create(kPodsHere, pod);
  cluster.advance(seconds(1));
  EXPECT_EQ(cluster.get(kPodsHere + "/q").string_at({"spec", "nodeName"}), "n0");
  EXPECT_EQ(std::ranges::count_if(said, [](const std::string& line) { return line.contains("it counts as empty"); }), 3)
      << "once each";
  cluster.stop(scheduler);
}

}  // namespace
}  // namespace spillway::controllers
