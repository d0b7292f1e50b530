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
  SchedulerQueue() : controllers_({}, Rng(3), telemetry::Log(), metrics_), scheduler_({}, Rng(4), telemetry::Log()) {
    cluster_.create("/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 10));
    cluster_.add_node("n0");
    cluster_.run(controllers_);  // takes the taint of a new node away
    cluster_.run(scheduler_);
    cluster_.advance(seconds(2));
  }

  ~SchedulerQueue() override {
    cluster_.stop(controllers_);
    cluster_.stop(scheduler_);
  }

  /// The pods' names in the order of their bindings, once a node takes all of them.
  std::string order_of_bindings(const std::vector<Waiting>& pods) {
    cordon(true);
    int passed = 0;
    for (const Waiting& pod : pods) {
      cluster_.advance(seconds(pod.created - passed));
      passed = pod.created;
      Json document = pod_json(std::string(1, pod.name));
      if (pod.important) document.make({"spec"})["priorityClassName"] = "high";
      cluster_.create(kPods, document);
    }
    cluster_.settle();
    EXPECT_EQ(scheduler_.unschedulable(), pods.size());
    cluster_.requests.clear();
    cordon(false);
    std::string order;
    for (const std::string_view request : cluster_.requests) {
      if (const std::size_t end = request.find("/binding"); end != std::string_view::npos) order += request[end - 1];
    }
    for (const Waiting& pod : pods) cluster_.remove(fmt::format("{}/{}?gracePeriodSeconds=0", kPods, pod.name));
    cluster_.settle();
    return order;
  }

 private:
  void cordon(bool cordoned) {
    cluster_.merge("/api/v1/nodes/n0", Json::object({{"spec", Json::object({{"unschedulable", cordoned}})}}));
    cluster_.settle();
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

}  // namespace
}  // namespace spillway::controllers
