// Pods whose place depends on other pods, as the scheduler that ships places them.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::HasSubstr;

const std::string kRelatedPods = "/api/v1/namespaces/default/pods";

Json selecting(std::string_view app) {
  return Json::object({{"matchLabels", Json::object({{"app", app}})}});
}

/// Near a pod of that app, or apart from it, in a zone.
Json related(std::string_view kind, std::string_view app) {
  const Json term = Json::object({{"labelSelector", selecting(app)}, {"topologyKey", "topology.kubernetes.io/zone"}});
  return Json::object(
      {{kind, Json::object({{"requiredDuringSchedulingIgnoredDuringExecution", Json::array({term})}})}});
}

class SchedulerRelations : public ::testing::Test {
 protected:
  SchedulerRelations()
      : controllers_({}, Rng(3), telemetry::Log(), metrics_), scheduler_({}, Rng(4), telemetry::Log(), metrics_) {
    for (const std::string_view name : {"n0", "n1", "n2"}) {
      const std::string zone = name == "n0" ? "east" : "west";
      cluster_.add_node(std::string(name),
                        {{"kubernetes.io/hostname", std::string(name)}, {"topology.kubernetes.io/zone", zone}});
    }
    cluster_.run(controllers_);
    cluster_.run(scheduler_);
    cluster_.advance(seconds(2));
  }

  ~SchedulerRelations() override {
    cluster_.stop(controllers_);
    cluster_.stop(scheduler_);
  }

  static Json labelled(std::string_view name, std::string_view app) {
    Json pod = pod_json(std::string(name));
    pod.make({"metadata", "labels"})["app"] = app;
    return pod;
  }

  void create(const Json& pod) {
    cluster_.create(kRelatedPods, pod);
    cluster_.advance(seconds(1));  // the back-off of a refused pod is over
  }

  std::string node_of(std::string_view name) {
    return std::string(cluster_.get(fmt::format("{}/{}", kRelatedPods, name)).string_at({"spec", "nodeName"}));
  }

  /// The scheduler's reason for the pod's wait.
  std::string message(std::string_view name) {
    const Json pod = cluster_.get(fmt::format("{}/{}", kRelatedPods, name));
    const Json* conditions = pod.at({"status", "conditions"});
    if (conditions == nullptr || conditions->if_array() == nullptr) return {};
    for (const Json& each : *conditions->if_array()) {
      if (each.string_at({"type"}) == "PodScheduled") return std::string(each.string_at({"message"}));
    }
    return {};
  }

  telemetry::Registry metrics_;
  TestCluster cluster_;
  ControllerSet controllers_;
  Scheduler scheduler_;
};

TEST_F(SchedulerRelations, APodWaitsForTheOneItMustBeNear) {
  Json follower = labelled("follower", "web");
  follower.make({"spec"})["affinity"] = related("podAffinity", "db");
  create(follower);
  EXPECT_EQ(node_of("follower"), "");
  EXPECT_THAT(message("follower"), HasSubstr("3 node(s) didn't match pod affinity rules"));
  Json leader = labelled("leader", "db");
  leader.make({"spec", "nodeSelector"})["kubernetes.io/hostname"] = "n0";
  create(leader);
  EXPECT_EQ(node_of("leader"), "n0");
  EXPECT_EQ(node_of("follower"), "n0") << "not after a minute: the pod it waited for is its cue";
}

TEST_F(SchedulerRelations, TheFirstOfAGroupDoesNotWait) {
  for (const std::string_view name : {"first", "second"}) {
    Json pod = labelled(name, "web");
    pod.make({"spec"})["affinity"] = related("podAffinity", "web");
    create(pod);
  }
  EXPECT_EQ(node_of("first"), "n0");
  EXPECT_EQ(node_of("second"), "n0") << "n1 and n2 have more room, in another zone";
}

TEST_F(SchedulerRelations, APodKeepsOthersOutOfItsZone) {
  Json hermit = labelled("hermit", "db");
  hermit.make({"spec", "nodeSelector"})["kubernetes.io/hostname"] = "n1";
  hermit.make({"spec"})["affinity"] = related("podAntiAffinity", "web");
  create(hermit);
  create(labelled("web", "web"));
  EXPECT_EQ(node_of("web"), "n0") << "it asks for nothing, and n2 shares the zone";
  Json bound = labelled("other", "web");
  bound.make({"spec", "nodeSelector"})["topology.kubernetes.io/zone"] = "west";
  create(bound);
  EXPECT_THAT(message("other"), HasSubstr("2 node(s) didn't satisfy existing pods anti-affinity rules"));
  cluster_.remove(kRelatedPods + "/hermit?gracePeriodSeconds=0");
  cluster_.run_until_idle();
  EXPECT_NE(node_of("other"), "");
}

TEST_F(SchedulerRelations, PodsOfAServiceAreSpreadOverZones) {
  cluster_.create("/api/v1/namespaces/default/services",
                  Json::object({{"apiVersion", "v1"},
                                {"kind", "Service"},
                                {"metadata", Json::object({{"name", "web"}})},
                                {"spec", Json::object({{"selector", Json::object({{"app", "web"}})},
                                                       {"ports", Json::array({Json::object({{"port", 80}})})}})}}));
  cluster_.run_until_idle();
  for (const std::string_view name : {"db-0", "db-1"}) {
    Json other = labelled(name, "db");
    other.make({"spec", "nodeSelector"})["kubernetes.io/hostname"] = "n0";
    create(other);
  }
  create(labelled("web-0", "web"));
  create(labelled("web-1", "web"));
  EXPECT_EQ(node_of("web-0"), "n1");
  EXPECT_EQ(node_of("web-1"), "n0") << "n2 has more room, and a pod of the service in its zone";
}

TEST_F(SchedulerRelations, PodsOfAReplicationControllerAreSpreadOverZones) {
  for (const std::string_view name : {"db-0", "db-1"}) {
    Json other = labelled(name, "db");
    other.make({"spec", "nodeSelector"})["kubernetes.io/hostname"] = "n0";
    create(other);
  }
  cluster_.create("/api/v1/namespaces/default/replicationcontrollers",
                  Json::object({{"apiVersion", "v1"},
                                {"kind", "ReplicationController"},
                                {"metadata", Json::object({{"name", "web"}})},
                                {"spec", Json::object({{"replicas", 2},
                                                       {"selector", Json::object({{"app", "web"}})},
                                                       {"template", labelled("web", "web")}})}}));
  cluster_.advance(seconds(5));
  std::set<std::string> nodes;
  for (const std::string& name : cluster_.pod_names()) {
    if (name.starts_with("web-")) nodes.insert(node_of(name));
  }
  EXPECT_EQ(nodes, (std::set<std::string>{"n0", "n1"})) << "n2 has more room, and a pod of the controller in its zone";
}

TEST_F(SchedulerRelations, ASkewThatIsRequiredHolds) {
  const Json spread = Json::array({Json::object({{"labelSelector", selecting("web")},
                                                 {"topologyKey", "topology.kubernetes.io/zone"},
                                                 {"maxSkew", 1},
                                                 {"nodeAffinityPolicy", "Ignore"},
                                                 {"whenUnsatisfiable", "DoNotSchedule"}})});
  for (int i = 0; i < 3; ++i) {
    Json pod = labelled(fmt::format("web-{}", i), "web");
    pod.make({"spec"})["topologySpreadConstraints"] = spread;
    if (i < 2) pod.make({"spec", "nodeSelector"})["kubernetes.io/hostname"] = "n0";
    create(pod);
  }
  EXPECT_EQ(node_of("web-0"), "n0");
  EXPECT_NE(node_of("web-2"), "n0");
  EXPECT_EQ(node_of("web-1"), "n0") << "it was let in as soon as the other zone had one";
}

TEST_F(SchedulerRelations, AGatedPodIsNotPlacedBeforeItsGatesAreGone) {
  Json pod = labelled("gated", "web");
  pod.make({"spec"})["schedulingGates"] = Json::array({Json::object({{"name", "example.com/quota"}})});
  create(pod);
  cluster_.advance(seconds(120));
  EXPECT_EQ(node_of("gated"), "");
  EXPECT_EQ(message("gated"), "Scheduling is blocked due to non-empty scheduling gates");
  EXPECT_EQ(scheduler_.waiting() + scheduler_.unschedulable(), 0U);
  cluster_.merge(kRelatedPods + "/gated", Json::object({{"spec", Json::object({{"schedulingGates", Json::array()}})}}));
  cluster_.run_until_idle();
  EXPECT_NE(node_of("gated"), "");
}

}  // namespace
}  // namespace spillway::controllers
