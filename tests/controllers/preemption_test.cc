// A pod of high priority on a full cluster, as the scheduler that ships makes room for it; and everything that may
// happen between the choice and the last deletion.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kAllPods = "/api/v1/namespaces/default/pods";

class SchedulerPreemption : public ::testing::Test {
 protected:
  SchedulerPreemption() : controllers_({}, Rng(3), telemetry::Log(), metrics_) {
    for (const auto& [name, value] : {std::pair("high", 1000), std::pair("middle", 100)}) {
      cluster_.create("/apis/scheduling.k8s.io/v1/priorityclasses",
                      Json::object({{"apiVersion", "scheduling.k8s.io/v1"},
                                    {"kind", "PriorityClass"},
                                    {"metadata", Json::object({{"name", name}})},
                                    {"value", value}}));
    }
    cluster_.add_node("n0");
    cluster_.run(controllers_);
    start_scheduler();
    cluster_.advance(seconds(2));
  }

  ~SchedulerPreemption() override {
    cluster_.stop(controllers_);
    cluster_.stop(*scheduler_);
  }

  void start_scheduler() {
    scheduler_ = std::make_unique<Scheduler>(options_, Rng(4), telemetry::Log(), metrics_);
    cluster_.run(*scheduler_);
  }

  /// Replaces the scheduler, as after the end of its process.
  void restart_scheduler() {
    cluster_.stop(*scheduler_);
    start_scheduler();
    cluster_.run_until_idle();
  }

  static Json pod(std::string_view name, std::string_view memory, std::string_view priority_class = {}) {
    Json out = pod_json(std::string(name));
    Json& container = out.find("spec")->find("containers")->if_array()->front();
    container["resources"] = Json::object({{"requests", Json::object({{"memory", memory}})}});
    out.make({"metadata", "labels"})["app"] = name;
    if (!priority_class.empty()) out.make({"spec"})["priorityClassName"] = priority_class;
    return out;
  }

  void create(const Json& document) {
    cluster_.create(kAllPods, document);
    cluster_.run_until_idle();
  }

  void set_budget(std::string_view app, int allowed) {
    const std::string path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    cluster_.create(
        path,
        Json::object(
            {{"apiVersion", "policy/v1"},
             {"kind", "PodDisruptionBudget"},
             {"metadata", Json::object({{"name", app}})},
             {"spec", Json::object({{"minAvailable", 1 - allowed},
                                    {"selector", Json::object({{"matchLabels", Json::object({{"app", app}})}})}})}}));
    cluster_.run_until_idle();
  }

  std::string at(std::string_view name, std::initializer_list<std::string_view> path) {
    const Json found = cluster_.get(fmt::format("{}/{}", kAllPods, name));
    return std::string(found.string_at(path));
  }

  std::string node_of(std::string_view name) { return at(name, {"spec", "nodeName"}); }

  std::string promised(std::string_view name) { return at(name, {"status", "nominatedNodeName"}); }

  Json condition(std::string_view name, std::string_view type) {
    const Json found = cluster_.get(fmt::format("{}/{}", kAllPods, name));
    const Json* list = found.at({"status", "conditions"});
    if (list == nullptr) return {};
    for (const Json& each : *list->if_array()) {
      if (each.string_at({"type"}) == type) return each;
    }
    return {};
  }

  /// The scheduler's writes to pods, without the bindings and the conditions of waiting pods.
  std::vector<std::string> deletions() {
    std::vector<std::string> found;
    for (const std::string& request : cluster_.requests) {
      if (request.starts_with("DELETE /api/v1/namespaces/default/pods/")) found.push_back(request.substr(39));
    }
    return found;
  }

  Scheduler::Options options_;
  telemetry::Registry metrics_;
  TestCluster cluster_;
  ControllerSet controllers_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerPreemption, ALowerPriorityLeavesForAHigherOne) {
  create(pod("low", "600Mi"));
  ASSERT_EQ(node_of("low"), "n0");
  cluster_.set_up("n0", false);  // the victim does not end yet
  create(pod("important", "600Mi", "high"));
  EXPECT_EQ(promised("important"), "n0");
  EXPECT_EQ(node_of("important"), "");
  EXPECT_EQ(condition("important", "PodScheduled").string_at({"message"}),
            "0/1 nodes are available: 1 Insufficient memory.");
  const Json target = condition("low", "DisruptionTarget");
  EXPECT_EQ(target.string_at({"reason"}), "PreemptionByScheduler");
  EXPECT_EQ(target.string_at({"message"}), "default-scheduler: preempting to accommodate a higher priority pod");
  EXPECT_NE(at("low", {"metadata", "deletionTimestamp"}), "");
  EXPECT_EQ(cluster_.events_about("low")["Preempted"], 1);
  EXPECT_EQ(cluster_.events_about("important")["FailedScheduling"], 1);
  cluster_.advance(seconds(15));
  EXPECT_THAT(deletions(), ElementsAre("low")) << "once is enough";
  cluster_.set_up("n0", true);
  cluster_.advance(seconds(60));
  EXPECT_EQ(node_of("important"), "n0");
  EXPECT_THAT(cluster_.pod_names(), ElementsAre("important"));
  EXPECT_THAT(metrics_.text(), HasSubstr("scheduler_preemption_victims_count 1"));
}

TEST_F(SchedulerPreemption, APromisedNodeThatDiesIsReplacedAtOnce) {
  create(pod("low", "600Mi"));
  ASSERT_EQ(node_of("low"), "n0");
  cluster_.add_node("n1", {}, "1Gi");
  cluster_.advance(seconds(2));
  create(pod("middle", "600Mi", "middle"));
  ASSERT_EQ(node_of("middle"), "n1");
  cluster_.set_up("n0", false);  // low does not end
  create(pod("important", "600Mi", "high"));
  ASSERT_EQ(promised("important"), "n0");
  cluster_.merge(
      "/api/v1/nodes/n0",
      Json::object(
          {{"spec",
            Json::object({{"taints", Json::array({Json::object({{"key", "broken"}, {"effect", "NoSchedule"}})})}})}}));
  cluster_.advance(seconds(15));
  EXPECT_THAT(deletions(), ElementsAre("low", "middle"));
  EXPECT_EQ(node_of("important"), "n1");
}

TEST_F(SchedulerPreemption, AnEqualPriorityStays) {
  create(pod("low", "600Mi", "high"));
  create(pod("important", "600Mi", "high"));
  cluster_.advance(seconds(90));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_EQ(condition("important", "PodScheduled").string_at({"message"}),
            "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 No preemption "
            "victims found for incoming pod.");
}

TEST_F(SchedulerPreemption, OneThatMustNotPreemptWaits) {
  create(pod("low", "600Mi"));
  cluster_.create("/apis/scheduling.k8s.io/v1/priorityclasses",
                  Json::object({{"apiVersion", "scheduling.k8s.io/v1"},
                                {"kind", "PriorityClass"},
                                {"metadata", Json::object({{"name", "patient"}})},
                                {"preemptionPolicy", "Never"},
                                {"value", 1000}}));
  create(pod("important", "600Mi", "patient"));
  cluster_.advance(seconds(90));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_THAT(std::string(condition("important", "PodScheduled").string_at({"message"})),
              HasSubstr("preemption: not eligible due to preemptionPolicy=Never."));
}

TEST_F(SchedulerPreemption, OnlyWhoIsInTheWayLeaves) {
  create(pod("low", "400Mi"));
  create(pod("middle", "400Mi", "middle"));
  create(pod("important", "400Mi", "high"));
  cluster_.advance(seconds(60));
  EXPECT_THAT(deletions(), ElementsAre("low"));
  EXPECT_EQ(node_of("important"), "n0");
  EXPECT_EQ(node_of("middle"), "n0");
}

TEST_F(SchedulerPreemption, ABudgetIsSparedWhereAnotherPodCanBePreempted) {
  create(pod("a", "400Mi"));
  create(pod("b", "400Mi"));
  set_budget("a", 0);
  create(pod("important", "400Mi", "high"));
  cluster_.advance(seconds(60));
  EXPECT_THAT(deletions(), ElementsAre("b"));
}

TEST_F(SchedulerPreemption, NothingIsDeletedBeforeTheNodeIsPromised) {
  create(pod("low", "600Mi"));
  cluster_.fail(api::Method::kPatch, "/pods/important/status", 403, 1);
  create(pod("important", "600Mi", "high"));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_EQ(promised("important"), "");
  cluster_.advance(seconds(40));
  EXPECT_EQ(node_of("important"), "n0") << "it has another turn after its back-off, not after the minute";
}

TEST_F(SchedulerPreemption, TheEndOfTheSchedulerAfterThePromiseLosesNothing) {
  create(pod("low", "600Mi"));
  cluster_.after(api::Method::kPatch, kAllPods + "/important/status", [this] { cluster_.cut(*scheduler_); });
  create(pod("important", "600Mi", "high"));
  EXPECT_EQ(promised("important"), "n0");
  EXPECT_THAT(deletions(), IsEmpty());
  restart_scheduler();
  cluster_.advance(seconds(60));
  EXPECT_THAT(deletions(), ElementsAre("low"));
  EXPECT_EQ(node_of("important"), "n0");
}

TEST_F(SchedulerPreemption, TheEndOfTheSchedulerAfterTheDeletionDeletesNoOtherPod) {
  create(pod("low", "400Mi"));
  create(pod("other", "400Mi"));
  cluster_.set_up("n0", false);
  create(pod("important", "400Mi", "high"));
  ASSERT_EQ(deletions().size(), 1U);
  restart_scheduler();
  cluster_.advance(seconds(20));
  EXPECT_EQ(deletions().size(), 1U) << "a victim that leaves is waited for";
  EXPECT_EQ(promised("important"), "n0");
}

TEST_F(SchedulerPreemption, AVictimThatIsGoneIsNoObstacle) {
  create(pod("low", "600Mi"));
  cluster_.before(api::Method::kPatch, kAllPods + "/low/status",
                  [this] { cluster_.remove(kAllPods + "/low?gracePeriodSeconds=0"); });
  create(pod("important", "600Mi", "high"));
  cluster_.advance(seconds(5));
  EXPECT_EQ(node_of("important"), "n0");
}

TEST_F(SchedulerPreemption, AnotherPodOfTheVictimsNameIsNotTouched) {
  create(pod("low", "600Mi"));
  cluster_.before(api::Method::kDelete, kAllPods + "/low", [this] {
    cluster_.remove(kAllPods + "/low?gracePeriodSeconds=0");
    cluster_.create(kAllPods, pod("low", "1Mi"));
  });
  create(pod("important", "600Mi", "high"));
  cluster_.advance(seconds(30));
  EXPECT_EQ(node_of("important"), "n0");
  EXPECT_EQ(node_of("low"), "n0") << "it fits beside";
  EXPECT_EQ(cluster_.events_about("low")["Preempted"], 0);
}

TEST_F(SchedulerPreemption, RoomThatIsFreedMeanwhileSparesTheVictim) {
  create(pod("low", "400Mi"));
  create(pod("other", "400Mi", "high"));
  cluster_.before(api::Method::kPatch, kAllPods + "/important/status",
                  [this] { cluster_.remove(kAllPods + "/other?gracePeriodSeconds=0"); });
  create(pod("important", "400Mi", "high"));
  cluster_.advance(seconds(30));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_EQ(node_of("important"), "n0");
  EXPECT_EQ(node_of("low"), "n0");
}

TEST_F(SchedulerPreemption, ABudgetThatArrivesInBetweenIsCheckedAgain) {
  create(pod("a", "400Mi"));
  create(pod("b", "400Mi"));
  cluster_.before(api::Method::kPatch, kAllPods + "/important/status", [this] { set_budget("b", 0); });
  create(pod("important", "400Mi", "high"));
  cluster_.advance(seconds(60));
  EXPECT_THAT(deletions(), ElementsAre("a")) << "b was chosen first, by its name";
  EXPECT_EQ(node_of("important"), "n0");
}

TEST_F(SchedulerPreemption, ARefusedDeletionTakesThePromiseBack) {
  create(pod("low", "600Mi"));
  cluster_.fail(api::Method::kDelete, "/pods/low", 403, 1);
  create(pod("important", "600Mi", "high"));
  EXPECT_EQ(promised("important"), "");
  EXPECT_EQ(node_of("low"), "n0");
  EXPECT_EQ(cluster_.events_about("low")["Preempted"], 0);
  cluster_.advance(seconds(60));
  EXPECT_EQ(node_of("important"), "n0") << "the second attempt passes";
}

TEST_F(SchedulerPreemption, AVictimThatCouldNotBeDeletedForAConflictIsTriedAgain) {
  create(pod("low", "600Mi"));
  cluster_.fail(api::Method::kDelete, "/pods/low", 409, 1);
  create(pod("important", "600Mi", "high"));
  EXPECT_EQ(cluster_.events_about("low")["Preempted"], 0);
  cluster_.advance(seconds(60));
  EXPECT_EQ(node_of("important"), "n0");
}

TEST_F(SchedulerPreemption, APodThatGoesMeanwhileNeedsNoRoom) {
  create(pod("low", "600Mi"));
  cluster_.after(api::Method::kPatch, kAllPods + "/important/status",
                 [this] { cluster_.remove(kAllPods + "/important?gracePeriodSeconds=0"); });
  create(pod("important", "600Mi", "high"));
  cluster_.advance(seconds(30));
  EXPECT_EQ(node_of("low"), "n0");
}

TEST_F(SchedulerPreemption, AMoreImportantPodTakesThePromiseOver) {
  create(pod("low", "600Mi"));
  cluster_.set_up("n0", false);
  create(pod("middle", "600Mi", "middle"));
  ASSERT_EQ(promised("middle"), "n0");
  create(pod("important", "600Mi", "high"));
  EXPECT_EQ(promised("important"), "n0");
  EXPECT_EQ(promised("middle"), "");
  cluster_.set_up("n0", true);
  cluster_.advance(seconds(90));
  EXPECT_EQ(node_of("important"), "n0");
  EXPECT_EQ(node_of("middle"), "");
}

TEST_F(SchedulerPreemption, TheRoomIsHeldForThePodItIsMadeFor) {
  create(pod("low", "600Mi"));
  cluster_.set_up("n0", false);
  create(pod("important", "600Mi", "high"));
  create(pod("other", "500Mi"));
  cluster_.set_up("n0", true);
  cluster_.advance(seconds(90));
  EXPECT_EQ(node_of("important"), "n0");
  EXPECT_EQ(node_of("other"), "");
}

TEST_F(SchedulerPreemption, TheRoomIsHeldFromTheDecisionOn) {
  create(pod("low", "600Mi"));
  cluster_.set_up("n0", false);
  cluster_.stop(*scheduler_);
  create(pod("important", "600Mi", "high"));
  create(pod("other", "300Mi"));
  start_scheduler();
  cluster_.advance(seconds(5));
  EXPECT_EQ(promised("important"), "n0");
  EXPECT_EQ(node_of("other"), "") << "it fits beside the one that leaves, not beside the one it leaves for";
}

TEST_F(SchedulerPreemption, APromiseThatIsOfNoUseIsTakenBack) {
  create(pod("low", "600Mi", "high"));
  create(pod("important", "600Mi", "high"));
  cluster_.merge(kAllPods + "/important/status",
                 Json::object({{"status", Json::object({{"nominatedNodeName", "n0"}})}}));
  cluster_.advance(minutes(6));
  EXPECT_EQ(promised("important"), "");
}

TEST_F(SchedulerPreemption, WithRespectForBudgetsAPodWaitsRather) {
  options_.respect_budgets = true;
  restart_scheduler();
  create(pod("low", "600Mi"));
  set_budget("low", 0);
  create(pod("important", "600Mi", "high"));
  cluster_.advance(seconds(90));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_EQ(promised("important"), "");
  EXPECT_EQ(condition("important", "PodScheduled").string_at({"message"}),
            "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: "
            "1 Disruption budgets do not allow the preemption.");
  cluster_.remove("/apis/policy/v1/namespaces/default/poddisruptionbudgets/low");
  cluster_.advance(seconds(90));
  EXPECT_EQ(node_of("important"), "n0");
}

TEST_F(SchedulerPreemption, ABudgetThatAllowsNoMoreWakesNoPod) {
  options_.respect_budgets = true;
  restart_scheduler();
  create(pod("low", "600Mi"));
  set_budget("low", 0);
  create(pod("important", "600Mi", "high"));
  cluster_.advance(seconds(30));
  const std::string attempts =
      R"(scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1)";
  ASSERT_THAT(metrics_.text(), HasSubstr(attempts));
  const std::string budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/low";
  cluster_.merge(budget, Json::object({{"metadata", Json::object({{"annotations", Json::object({{"a", "b"}})}})}}));
  set_budget("another", 0);
  cluster_.advance(seconds(30));
  EXPECT_THAT(metrics_.text(), HasSubstr(attempts));
  cluster_.merge(budget, Json::object({{"spec", Json::object({{"minAvailable", 0}})}}));
  cluster_.advance(seconds(60));
  EXPECT_EQ(node_of("important"), "n0");
}

TEST_F(SchedulerPreemption, DeletionsAreLimitedAllOrNone) {
  options_.brakes.delete_pod.global = lifecycle::ActLimit{1, minutes(10)};
  restart_scheduler();
  create(pod("low-a", "300Mi"));
  create(pod("low-b", "300Mi"));
  create(pod("both", "900Mi", "high"));
  EXPECT_THAT(deletions(), IsEmpty()) << "not one of the two";
  EXPECT_EQ(promised("both"), "");
  EXPECT_THAT(condition("both", "PodScheduled").string_at({"message"}),
              HasSubstr("0/1 nodes are available: 1 Insufficient memory. preemption: held back: act-limit-reached"));
  create(pod("one", "600Mi", "high"));
  EXPECT_THAT(deletions(), testing::SizeIs(1)) << "what was held back has used up nothing";
  EXPECT_THAT(metrics_.text(),
              HasSubstr("spillway_lifecycle_held_acts_total{act=\"delete-pod\",brake=\"act-limit-reached\"} 1"));
}

TEST_F(SchedulerPreemption, ALimitByOwnerIsForOneGroupOfAKind) {
  options_.brakes.delete_pod.per_owner = lifecycle::ActLimit{1, minutes(10)};
  restart_scheduler();
  const auto owned_by = [](Json victim, std::string_view api_version) {
    victim.make({"metadata", "ownerReferences"}) = Json::array({Json::object({{"apiVersion", api_version},
                                                                              {"kind", "Rollout"},
                                                                              {"name", "web"},
                                                                              {"uid", api_version},
                                                                              {"controller", true}})});
    return victim;
  };
  create(owned_by(pod("low-a", "300Mi"), "one.example.com/v1"));
  create(owned_by(pod("low-b", "300Mi"), "two.example.com/v1"));
  create(pod("both", "900Mi", "high"));
  EXPECT_THAT(deletions(), testing::SizeIs(2)) << "each of the two owners loses one pod";
}

TEST_F(SchedulerPreemption, WhatIsHeldOnOneNodeIsDoneOnTheNext) {
  options_.brakes.delete_pod.global = lifecycle::ActLimit{1, minutes(10)};
  restart_scheduler();
  create(pod("low-a", "300Mi"));
  create(pod("low-b", "300Mi"));
  cluster_.add_node("n1");
  cluster_.advance(seconds(2));
  create(pod("middle", "900Mi", "middle"));
  ASSERT_EQ(node_of("middle"), "n1");
  create(pod("big", "900Mi", "high"));
  EXPECT_EQ(promised("big"), "n1") << "on n0, which costs less, two would have to leave";
}

TEST_F(SchedulerPreemption, WhatWasHeldBackIsTriedAgain) {
  options_.brakes.delete_pod.global = lifecycle::ActLimit{1, minutes(10)};
  restart_scheduler();
  create(pod("low-a", "400Mi"));
  create(pod("low-b", "400Mi"));
  create(pod("first", "500Mi", "high"));
  cluster_.advance(seconds(30));
  EXPECT_EQ(node_of("first"), "n0");
  create(pod("second", "500Mi", "high"));
  cluster_.advance(seconds(60));
  EXPECT_EQ(node_of("second"), "");
  cluster_.advance(minutes(12));
  EXPECT_EQ(node_of("second"), "n0");
}

}  // namespace
}  // namespace spillway::controllers
