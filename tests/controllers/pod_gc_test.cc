// Pods that only the garbage collector deletes, with the real API server: of nodes that are gone, and finished ones
// beyond the threshold.
#include "controllers/controller_set.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::string kPods = "/api/v1/namespaces/default/pods";

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

class PodGarbageCollection : public ::testing::Test {
 protected:
  ~PodGarbageCollection() override {
    if (set) cluster.stop(*set);
  }

  void start(const ControllerSet::Options& options, int nodes) {
    for (int i = 0; i < nodes; ++i) cluster.add_node(fmt::format("n{}", i));
    set.emplace(options, Rng(3), telemetry::Log(), metrics);
    cluster.run(*set);
    cluster.advance(seconds(2));
  }

  /// A finished pod with an owner that no controller here handles.
  void add_evicted(const std::string& name, const std::string& owner) {
    Json pod = pod_json(name, "64Mi", "n0");
    pod.make({"metadata", "ownerReferences"}) = Json::array({Json::object({{"apiVersion", "example.com/v1"},
                                                                           {"kind", "Runner"},
                                                                           {"name", owner},
                                                                           {"uid", owner + "-uid"},
                                                                           {"controller", true}})});
    cluster.create(kPods, pod);
    cluster.merge(kPods + "/" + name + "/status", json(R"({"status": {"phase": "Failed", "reason": "Evicted"}})"));
  }

  /// One pod of the quiet owner, then four of the loud one, on a node that starts nothing.
  void let_two_owners_end() {
    cluster.set_up("n0", false);
    add_evicted("quiet-1", "quiet");
    for (int pod = 1; pod <= 4; ++pod) {
      cluster.advance(seconds(1));
      add_evicted(fmt::format("loud-{}", pod), "loud");
    }
    cluster.advance(seconds(25));
  }

  telemetry::Registry metrics;
  TestCluster cluster;
  std::optional<ControllerSet> set;
};

TEST_F(PodGarbageCollection, PodsOfAVanishedNodeAreCollected) {
  start({}, 2);
  cluster.create(kPods, pod_json("lost", "64Mi", "n1"));
  cluster.advance(seconds(5));
  cluster.set_up("n1", false);
  cluster.remove("/api/v1/nodes/n1");
  cluster.advance(seconds(35));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("lost"));  // quarantine
  cluster.advance(seconds(50));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
}

TEST_F(PodGarbageCollection, TerminatingPodsOfAnOutOfServiceNodeAreCollected) {
  start({}, 3);
  cluster.create(kPods, pod_json("stuck", "64Mi", "n1"));
  cluster.advance(seconds(5));
  cluster.set_up("n1", false);
  cluster.remove(kPods + "/stuck");
  cluster.advance(seconds(90));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("stuck"));
  cluster.merge("/api/v1/nodes/n1",
                json(R"({"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}})"));
  cluster.advance(seconds(25));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
}

TEST_F(PodGarbageCollection, AnOwnerOfManyFinishedPodsDoesNotPushOutThoseOfOthers) {
  ControllerSet::Options options;
  options.pod_gc.finished = {.threshold = 3, .order = lifecycle::FinishedOrder::kFair};
  start(options, 1);
  let_two_owners_end();
  EXPECT_THAT(cluster.pod_names(), ElementsAre("loud-3", "loud-4", "quiet-1"));
  EXPECT_THAT(cluster.events_about("loud"), ElementsAre(Pair("FinishedPodsCollected", 1)));
  EXPECT_THAT(cluster.events_about("quiet"), IsEmpty());
}

TEST_F(PodGarbageCollection, AnOwnerGetsAnEventAboutCollectedPods) {
  ControllerSet::Options options;
  options.pod_gc.finished = {.threshold = 1, .order = lifecycle::FinishedOrder::kFair};
  start(options, 1);
  cluster.set_up("n0", false);
  for (int pod = 1; pod <= 3; ++pod) add_evicted(fmt::format("loud-{}", pod), "loud");
  cluster.fail(api::Method::kDelete, "/pods/loud-1", 403, 1);
  cluster.advance(seconds(25));
  ASSERT_THAT(cluster.pod_names(), ElementsAre("loud-1", "loud-3"));
  const auto messages = [this] {
    std::vector<std::string> all;
    for (const Json& event : cluster.list("/api/v1/namespaces/default/events"))
      if (event.string_at({"reason"}) == "FinishedPodsCollected") all.emplace_back(event.string_at({"message"}));
    return all;
  };
  EXPECT_THAT(messages(), ElementsAre("1 finished pod was collected: 1 Evicted. The last was loud-2 on node n0"));
}

TEST_F(PodGarbageCollection, ByDefaultTheOldestAreDeletedWithoutAnEvent) {
  ControllerSet::Options options;
  options.pod_gc.finished.threshold = 3;
  start(options, 1);
  let_two_owners_end();
  EXPECT_THAT(cluster.pod_names(), ElementsAre("loud-2", "loud-3", "loud-4"));
  EXPECT_THAT(cluster.events_about("loud"), IsEmpty());
}

}  // namespace
}  // namespace spillway::controllers
