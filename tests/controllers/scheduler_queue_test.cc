// In which order waiting pods are placed: three pods in every order of creation, every choice of
// two priorities, of one age and not.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;

const std::string kPods = "/api/v1/namespaces/default/pods";

struct Waiting {
  char name = 'a';
  bool important = false;
  int created = 0;  // seconds after the first
};

Json priority_class(std::string_view name, int value) {
  return Json::object({{"apiVersion", "scheduling.k8s.io/v1"},
                       {"kind", "PriorityClass"},
                       {"metadata", Json::object({{"name", name}})},
                       {"value", value}});
}

class SchedulerQueue : public ::testing::Test {
 protected:
  SchedulerQueue()
      : controllers_({}, Rng(3), telemetry::Log(), metrics_),
        scheduler_(without_retry(), Rng(4), telemetry::Log(), metrics_) {
    cluster_.create("/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 10));
    cluster_.add_node("n0");
    cluster_.run(controllers_);  // removes the taint of a new node
    cluster_.run(scheduler_);
    cluster_.advance(seconds(2));
  }

  /// Changes of the cluster alone bring a refused pod back.
  static Scheduler::Options without_retry() {
    Scheduler::Options options;
    options.unschedulable_retry = hours(24);
    return options;
  }

  ~SchedulerQueue() override {
    cluster_.stop(controllers_);
    cluster_.stop(scheduler_);
  }

  /// The pods' names in the order of their bindings, once a node takes all of them.
  std::string order_of_bindings(const std::vector<Waiting>& pods) {
    label("disk", nullptr);
    int passed = 0;
    for (const Waiting& pod : pods) {
      cluster_.advance(seconds(pod.created - passed));
      passed = pod.created;
      Json document = pod_json(std::string(1, pod.name));
      if (pod.important) document.make({"spec"})["priorityClassName"] = "high";
      document.make({"spec", "nodeSelector"})["disk"] = "ssd";
      cluster_.create(kPods, document);
    }
    cluster_.run_until_idle();
    EXPECT_EQ(scheduler_.unschedulable(), pods.size());
    cluster_.advance(seconds(1));  // no back-off decides the order
    cluster_.requests.clear();
    label("disk", "ssd");
    std::string order;
    for (const std::string_view request : cluster_.requests) {
      if (const std::size_t end = request.find("/binding"); end != std::string_view::npos) order += request[end - 1];
    }
    for (const Waiting& pod : pods) cluster_.remove(fmt::format("{}/{}?gracePeriodSeconds=0", kPods, pod.name));
    cluster_.run_until_idle();
    return order;
  }

  /// Attempts that ended without a node.
  int refusals() {
    const std::string text = metrics_.text();
    const std::string name =
        "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"unschedulable\"} ";
    const std::size_t found = text.find(name);
    return found == std::string::npos ? -1 : std::stoi(text.substr(found + name.size()));
  }

  void cordon(bool cordoned) {
    cluster_.merge("/api/v1/nodes/n0", Json::object({{"spec", Json::object({{"unschedulable", cordoned}})}}));
    cluster_.run_until_idle();
  }

  void label(std::string_view name, const Json& value) {
    cluster_.merge("/api/v1/nodes/n0",
                   Json::object({{"metadata", Json::object({{"labels", Json::object({{name, value}})}})}}));
    cluster_.run_until_idle();
  }

  /// A pod of high priority that needs a node with the label disk=ssd.
  void create_for_disk(const std::string& name) {
    Json pod = pod_json(name);
    pod.make({"spec"})["priorityClassName"] = "high";
    pod.make({"spec", "nodeSelector"})["disk"] = "ssd";
    cluster_.create(kPods, pod);
    cluster_.run_until_idle();
  }

  std::string node_of(std::string_view name) {
    return std::string(cluster_.get(fmt::format("{}/{}", kPods, name)).string_at({"spec", "nodeName"}));
  }

  telemetry::Registry metrics_;
  TestCluster cluster_;
  ControllerSet controllers_;
  Scheduler scheduler_;
};

TEST_F(SchedulerQueue, PlacesHigherPriorityThenOlderThenByName) {
  std::string names = "abc";
  do {
    for (unsigned important = 0; important < 8; ++important) {
      for (const bool last_is_younger : {false, true}) {
        std::vector<Waiting> pods;
        for (std::size_t i = 0; i < names.size(); ++i) {
          const bool younger = last_is_younger && i == 2;
          pods.push_back({names[i], (important >> i & 1U) != 0, younger ? 1 : 0});
        }
        std::vector<Waiting> sorted = pods;
        std::ranges::sort(sorted, {},
                          [](const Waiting& pod) { return std::tuple(!pod.important, pod.created, pod.name); });
        std::string expected;
        for (const Waiting& pod : sorted) expected += pod.name;
        EXPECT_EQ(order_of_bindings(pods), expected) << fmt::format(
            "created {} with important {:03b}{}", names, important, last_is_younger ? ", the last a second later" : "");
      }
    }
  } while (std::ranges::next_permutation(names).found);
}

TEST_F(SchedulerQueue, ARefusedPodWaitsLongerEachTime) {
  const std::vector<int> waits{1, 2, 4, 8, 10, 10};
  for (std::size_t attempts = 1; attempts <= waits.size(); ++attempts) {
    label("disk", nullptr);
    create_for_disk("a");
    for (std::size_t attempt = 1; attempt < attempts; ++attempt) {
      cluster_.advance(seconds(10));
      cluster_.merge(
          kPods + "/a",
          Json::object(
              {{"metadata",
                Json::object({{"labels", Json::object({{"try", fmt::format("{}-{}", attempts, attempt)}})}})}}));
      cluster_.run_until_idle();
    }
    label("disk", "ssd");
    const Duration wait = seconds(waits[attempts - 1]);
    cluster_.advance(wait - milliseconds(1));
    EXPECT_EQ(node_of("a"), "") << attempts;
    cluster_.advance(milliseconds(1));
    EXPECT_EQ(node_of("a"), "n0") << attempts;
    cluster_.remove(kPods + "/a?gracePeriodSeconds=0");
    cluster_.run_until_idle();
  }
}

TEST_F(SchedulerQueue, AChangeThatDoesNotConcernWhoRefusedItIsNoReasonToTryAgain) {
  create_for_disk("a");
  cluster_.advance(seconds(2));
  EXPECT_EQ(refusals(), 1);
  label("unrelated", "1");
  label("disk", "slow");
  cordon(true);
  cordon(false);
  cluster_.create(kPods, pod_json("b"));
  cluster_.advance(seconds(30));
  cluster_.remove(kPods + "/b?gracePeriodSeconds=0");
  cluster_.advance(seconds(30));
  EXPECT_EQ(refusals(), 1) << "NodeAffinity refused it, and the node has no label that it asks for";
  EXPECT_NE(
      metrics_.text().find("scheduler_unschedulable_pods{plugin=\"NodeAffinity\",profile=\"default-scheduler\"} 1"),
      std::string::npos);
  label("disk", "ssd");
  EXPECT_EQ(node_of("a"), "n0");
  const std::string text = metrics_.text();
  EXPECT_NE(text.find("scheduler_unschedulable_pods{plugin=\"NodeAffinity\",profile=\"default-scheduler\"} 0"),
            std::string::npos);
  EXPECT_NE(text.find("scheduler_queue_incoming_pods_total{event=\"NodeUpdateNodeLabel\",queue=\"backoff\"} 1"),
            std::string::npos);
}

TEST_F(SchedulerQueue, TheWaitingAreShown) {
  create_for_disk("a");
  Json gated = pod_json("g");
  gated.make({"spec"})["schedulingGates"] = Json::array({Json::object({{"name", "example.com/later"}})});
  cluster_.create(kPods, gated);
  cluster_.advance(milliseconds(200));
  const Json all = scheduler_.waiting_document(cluster_.now());
  EXPECT_EQ(all.find("unschedulable")->if_int64(), 1);
  EXPECT_EQ(all.find("gated")->if_int64(), 1);
  EXPECT_EQ(all.find("not_shown")->if_int64(), 0);
  const auto& pods = *all.find("pods")->if_array();
  ASSERT_EQ(pods.size(), 2U);
  EXPECT_EQ(pods[1].string_at({"queue"}), "gated");
  const auto a = scheduler_.waiting_pod_document("default/a", cluster_.now());
  ASSERT_TRUE(a);
  EXPECT_EQ(*a, pods[0]);
  EXPECT_EQ(a->string_at({"queue"}), "unschedulable");
  EXPECT_EQ(a->find("attempts")->if_int64(), 1);
  EXPECT_EQ(a->find("refused_by")->if_array()->front(), Json("NodeAffinity"));
  EXPECT_TRUE(a->string_at({"message"}).starts_with("0/1 nodes are available"));
  ASSERT_NE(a->find("backoff_left_seconds"), nullptr);
  EXPECT_FALSE(scheduler_.waiting_pod_document("default/b", cluster_.now()));
}

TEST_F(SchedulerQueue, ABackoffThatIsOverDelaysNothing) {
  create_for_disk("a");
  cluster_.advance(seconds(1));
  label("disk", "ssd");
  EXPECT_EQ(node_of("a"), "n0");
}

TEST_F(SchedulerQueue, OneThatWaitsForItsBackoffDelaysNoOtherPod) {
  create_for_disk("important");
  label("disk", "ssd");
  cluster_.create(kPods, pod_json("a"));
  cluster_.run_until_idle();
  EXPECT_EQ(node_of("important"), "");
  EXPECT_EQ(node_of("a"), "n0");
  cluster_.advance(seconds(1));
  EXPECT_EQ(node_of("important"), "n0");
}

TEST_F(SchedulerQueue, AFailedBindingIsTriedAgainWithoutAChange) {
  cluster_.fail(api::Method::kPost, "/binding", 500, 2);
  cluster_.create(kPods, pod_json("a"));
  cluster_.advance(seconds(1));
  EXPECT_EQ(node_of("a"), "") << "the second attempt fails as well";
  cluster_.advance(seconds(2) - milliseconds(1));
  EXPECT_EQ(node_of("a"), "");
  cluster_.advance(milliseconds(1));
  EXPECT_EQ(node_of("a"), "n0");
}

TEST_F(SchedulerQueue, APodThatIsReplacedUnderItsNameLeavesItsRoom) {
  cluster_.create(kPods, pod_json("big", "600Mi", "n0"));
  cluster_.create(kPods, pod_json("wants", "600Mi"));
  cluster_.advance(seconds(5));
  ASSERT_EQ(node_of("wants"), "");
  cluster_.swallow_events("fieldSelector=status.phase", 1, "DELETED");
  cluster_.remove(kPods + "/big?gracePeriodSeconds=0");
  cluster_.create(kPods, pod_json("big", "64Mi", "n0"));
  cluster_.advance(seconds(5));
  EXPECT_EQ(node_of("wants"), "n0");
}

TEST_F(SchedulerQueue, APodThatIsPromisedANodeMayLoseTheLabelThatKeptOthersAway) {
  label("zone", "z");
  Json theirs = pod_json("theirs");
  theirs.make({"metadata", "labels"})["app"] = "theirs";
  theirs.make({"spec"})["priorityClassName"] = "high";
  theirs.make({"spec"})["schedulerName"] = "another";
  cluster_.create(kPods, theirs);
  cluster_.merge(kPods + "/theirs/status", Json::object({{"status", Json::object({{"nominatedNodeName", "n0"}})}}));
  Json wants = pod_json("wants");
  wants.make({"spec"})["affinity"] =
      api::parse_json(R"({"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)"
                      R"({"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"theirs"}}}]}})")
          .value();
  cluster_.create(kPods, wants);
  cluster_.advance(seconds(5));
  ASSERT_EQ(node_of("wants"), "");
  cluster_.merge(kPods + "/theirs", api::parse_json(R"({"metadata":{"labels":{"app":"ours"}}})").value());
  cluster_.advance(seconds(5));
  EXPECT_EQ(node_of("wants"), "n0");
}

TEST_F(SchedulerQueue, AnotherPodOfTheNameIsNotTakenForTheFirst) {
  cordon(true);
  cluster_.create(kPods, pod_json("a"));
  cluster_.run_until_idle();
  cluster_.remove(kPods + "/a?gracePeriodSeconds=0");
  cluster_.create(kPods, pod_json("a"));
  cluster_.run_until_idle();
  EXPECT_EQ(scheduler_.unschedulable(), 1U);
  const auto requests = std::ranges::count_if(cluster_.requests,
                                              [](const std::string& each) { return each.ends_with("/pods/a/status"); });
  EXPECT_EQ(requests, 2) << "each is told";
}

}  // namespace
}  // namespace spillway::controllers
