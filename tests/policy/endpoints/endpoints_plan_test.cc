// The number of addresses that Endpoints may hold, the cause of their next write, and the time since which they are out
// of date.
#include "policy/endpoints/endpoints_plan.h"

#include "policy/endpoints/trigger_times.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::endpoints {
namespace {

api::Service one_port() {
  api::Service service;
  service.metadata.name = "many";
  service.metadata.ns = "default";
  service.cluster_ip = "10.96.0.7";
  service.selector = {{"app", "many"}};
  service.ports = {{.name = "", .protocol = "TCP", .port = 80, .target_port = std::int64_t{8080}}};
  return service;
}

std::vector<PodPtr> numbered(int ready, int not_ready) {
  std::vector<PodPtr> pods;
  for (int number = 0; number < ready + not_ready; ++number) {
    auto pod = std::make_shared<api::Pod>();
    pod->metadata.name = fmt::format("many-{:04}", number);
    pod->metadata.ns = "default";
    pod->metadata.uid = fmt::format("u{}", number);
    pod->spec.node_name = "node";
    pod->status.pod_ip = fmt::format("10.{}.{}.{}", 1 + number / 40000, number / 200 % 200, number % 200 + 1);
    pod->status.conditions = {{.type = "Ready", .status = number < ready ? "True" : "False"}};
    pods.push_back(pod);
  }
  return pods;
}

struct Shown {
  std::size_t ready = 0;
  std::size_t not_ready = 0;
  bool truncated = false;

  friend bool operator==(const Shown&, const Shown&) = default;
};

Shown shown(int ready, int not_ready) {
  const auto planned = plan_endpoints(one_port(), numbered(ready, not_ready), nullptr, std::nullopt);
  if (!planned || planned->subsets.size() != 1) return {};
  return {planned->subsets.front().addresses.size(), planned->subsets.front().not_ready.size(),
          planned->metadata.annotations.contains(kOverCapacity)};
}

TEST(EndpointsPlans, HoldAThousandAddressesReadyOnesFirst) {
  EXPECT_EQ(shown(1000, 0), (Shown{1000, 0, false}));
  EXPECT_EQ(shown(600, 400), (Shown{600, 400, false}));
  EXPECT_EQ(shown(600, 401), (Shown{600, 400, true}));
  EXPECT_EQ(shown(1001, 0), (Shown{1000, 0, true}));
  EXPECT_EQ(shown(1200, 5), (Shown{1000, 0, true}));
}

TEST(EndpointsPlans, GiveEachSubsetItsShare) {
  std::vector<api::EndpointSubset> subsets(2);
  subsets[0].addresses.resize(900);
  subsets[1].addresses.resize(600);
  EXPECT_TRUE(truncate(subsets));
  EXPECT_EQ(subsets[0].addresses.size(), 600U);
  EXPECT_EQ(subsets[1].addresses.size(), 400U);
}

TEST(EndpointsPlans, AreWrittenOnlyIfTheySaySomethingElse) {
  const auto pods = numbered(2, 1);
  const auto first = plan_endpoints(one_port(), pods, nullptr, std::nullopt);
  ASSERT_TRUE(first);
  EXPECT_FALSE(plan_endpoints(one_port(), pods, &*first, std::nullopt));
  EXPECT_TRUE(plan_endpoints(one_port(), numbered(3, 0), &*first, std::nullopt));
  api::Service labelled = one_port();
  labelled.metadata.labels = {{"team", "a"}};
  EXPECT_TRUE(plan_endpoints(labelled, pods, &*first, std::nullopt));
}

TEST(EndpointsTriggers, ReturnTheFirstChangeSinceTheLastCall) {
  const WallTime start{std::chrono::hours(10)};
  const auto pod_at = [](WallTime time) {
    auto pod = std::make_shared<api::Pod>(*numbered(1, 0).front());
    pod->status.conditions.front().last_transition_time = time;
    return std::vector<PodPtr>{pod};
  };
  TriggerTimes times;
  api::Service service = one_port();
  service.metadata.creation_timestamp = start;
  EXPECT_EQ(times.observe("default/many", service, pod_at(start + seconds(5))), start);
  EXPECT_EQ(times.observe("default/many", service, pod_at(start + seconds(5))), std::nullopt);
  EXPECT_EQ(times.observe("default/many", service, pod_at(start + seconds(9))), start + seconds(9));
  times.forget("default/many");
  EXPECT_EQ(times.observe("default/many", service, pod_at(start + seconds(9))), start);
}

}  // namespace
}  // namespace spillway::endpoints
