// Goal: a resize is admitted by the room that is left, waits if there is none, and never ends another pod.
#include "policy/admission/resize.h"

#include "api/object/pod_requests.h"
#include "api/text/quantity.h"

#include <gtest/gtest.h>

#include <memory>

namespace spillway::admission {
namespace {

constexpr std::int32_t kCritical = 2'000'000'000;

api::Pod pod_of(const std::string& name, std::int64_t cpu_milli) {
  api::Pod pod;
  pod.metadata = {.name = name, .ns = "default", .uid = "uid-" + name};
  api::Container container{.name = "c"};
  container.resources.requests["cpu"] = api::Quantity::of_milli(cpu_milli);
  container.resources.requests["memory"] = api::Quantity::of_bytes(mebibytes(64));
  pod.spec.containers.push_back(std::move(container));
  return pod;
}

class Resize : public ::testing::Test {
 protected:
  Resize() {
    api::Node node;
    node.metadata.name = "n";
    node.status.allocatable["cpu"] = api::Quantity::of_units(2);
    node.status.allocatable["memory"] = api::Quantity::of_bytes(gibibytes(1));
    node.status.allocatable["pods"] = api::Quantity::of_units(10);
    situation_.node = std::make_shared<const api::Node>(std::move(node));
  }

  /// Resizes the pod "a" from 500 to `cpu_milli`; "b" has a core.
  Answer ask(std::int64_t cpu_milli, const ResizeSettings& settings = {}) {
    allocated_.spec.priority = wanted_.spec.priority;
    wanted_.spec.containers.front().resources.requests["cpu"] = api::Quantity::of_milli(cpu_milli);
    const std::vector<const api::Pod*> active = {&allocated_, &other_};
    return admit_resize(situation_, settings, wanted_, allocated_, active);
  }

  static std::string reason(const Answer& answer) { return answer.refusal ? answer.refusal->reason : ""; }

  SysctlAllowlist none_;
  NodeSituation situation_{.node = {},
                           .operating_system = "linux",
                           .conditions = {},
                           .sysctls = none_,
                           .shared_namespaces = {},
                           .network_on_request = false,
                           .app_armor_error = {},
                           .shutting_down = false,
                           .features = {},
                           .allocate = {},
                           .devices_in_use = {}};
  api::Pod allocated_ = pod_of("a", 500);
  api::Pod wanted_ = pod_of("a", 500);
  api::Pod other_ = pod_of("b", 1000);
};

TEST_F(Resize, FitsIntoTheRoomThatOthersLeave) {
  EXPECT_EQ(reason(ask(1000)), "") << "its present request does not count besides";
  const Answer deferred = ask(1001);
  ASSERT_TRUE(deferred.refusal);
  EXPECT_EQ(deferred.refusal->reason, kDeferred);
  EXPECT_EQ(deferred.refusal->message,
            "Node didn't have enough resource: cpu, requested: 1001, used: 1000, capacity: 2000");
}

TEST_F(Resize, CountsForOthersWhatIsStillInForce) {
  api::ContainerStatus& status = other_.status.container_statuses.emplace_back();
  status.name = "c";
  status.resources.emplace().requests["cpu"] = api::Quantity::of_milli(1400);
  EXPECT_EQ(reason(ask(600)), "");
  EXPECT_EQ(reason(ask(601)), kDeferred);
}

TEST_F(Resize, OfACriticalPodEndsNoPod) {
  wanted_.spec.priority = kCritical;
  const Answer answer = ask(1500);
  EXPECT_EQ(reason(answer), kDeferred);
  EXPECT_TRUE(answer.victims.empty());
}

TEST_F(Resize, DevicesAreNotAllocatedAgain) {
  int calls = 0;
  situation_.allocate = [&](const api::Pod&) {
    ++calls;
    return Answer();
  };
  EXPECT_EQ(reason(ask(600)), "");
  EXPECT_EQ(calls, 0);
}

TEST_F(Resize, ExclusiveCpusOfGuaranteedPodsStay) {
  for (api::Pod* pod : {&allocated_, &wanted_}) pod->status.qos_class = "Guaranteed";
  const Answer cpus = ask(600, {.swaps = false, .static_cpus = true, .static_memory = true});
  EXPECT_EQ(reason(cpus), kInfeasible);
  EXPECT_EQ(cpus.refusal->message, "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"");
  EXPECT_EQ(infeasible_detail(cpus), "guaranteed_pod_cpu_manager_static_policy");
  wanted_.spec.containers.front().resources.requests["memory"] = api::Quantity::of_bytes(mebibytes(65));
  const Answer memory = ask(500, {.swaps = false, .static_cpus = true, .static_memory = true});
  EXPECT_EQ(memory.refusal->message,
            "Resize is infeasible for Guaranteed Pods alongside Memory Manager policy \"Static\"");
  for (api::Pod* pod : {&allocated_, &wanted_}) pod->status.qos_class = "Burstable";
  EXPECT_EQ(reason(ask(600, {.swaps = false, .static_cpus = true, .static_memory = true})), "");
}

TEST_F(Resize, MemoryOfContainersThatSwapStays) {
  wanted_.spec.containers.front().resources.requests["memory"] = api::Quantity::of_bytes(mebibytes(65));
  for (api::Pod* pod : {&allocated_, &wanted_}) pod->status.qos_class = "Burstable";
  EXPECT_EQ(reason(ask(500)), "");
  const Answer answer = ask(500, {.swaps = true});
  EXPECT_EQ(reason(answer), kInfeasible);
  EXPECT_EQ(answer.refusal->message, "In-place resize of containers with swap is not supported.");
  EXPECT_EQ(infeasible_detail(answer), "swap_limitation");
}

}  // namespace
}  // namespace spillway::admission
