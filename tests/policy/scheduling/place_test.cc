// The choice among several fitting nodes, and its reasons.
#include "policy/scheduling/place.h"

#include "policy/scheduling/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace spillway::scheduling {
namespace {

using ::testing::ElementsAre;

api::Quantity quantity(std::string_view text) {
  return api::parse_quantity(text).value();
}

api::Pod pod_of(const std::string& name, std::string_view cpu, std::string_view memory) {
  api::Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = name;
  api::Container container;
  container.name = "c";
  if (!cpu.empty()) container.resources.requests["cpu"] = quantity(cpu);
  if (!memory.empty()) container.resources.requests["memory"] = quantity(memory);
  pod.spec.containers.push_back(std::move(container));
  return pod;
}

class Place : public ::testing::Test {
 protected:
  policy::NodeLoad& add(const std::string& name, std::string_view cpu = "4", std::string_view memory = "8Gi") {
    auto node = std::make_shared<api::Node>();
    node->metadata.name = name;
    node->status.allocatable = {
        {"cpu", quantity(cpu)}, {"memory", quantity(memory)}, {"pods", api::Quantity::of_units(110)}};
    policy::NodeLoad& load = nodes[name];
    load.set_node(node);
    return load;
  }

  void taint(const std::string& name, std::string_view effect) {
    auto node = std::make_shared<api::Node>(*nodes.at(name).node);
    node->spec.taints.push_back({"dedicated", "x", std::string(effect), {}});
    nodes.at(name).set_node(node);
  }

  std::map<std::string, policy::NodeLoad> nodes;
};

TEST_F(Place, PrefersTheNodeWithMoreRoom) {
  add("a").add(pod_of("old", "2", "4Gi"));
  add("b");
  EXPECT_EQ(place_pod(pod_of("new", "1", "1Gi"), nodes).node, "b");
}

TEST_F(Place, BreaksTiesByPodCountThenName) {
  add("a");
  add("b");
  EXPECT_EQ(place_pod(pod_of("new", "1", "1Gi"), nodes).node, "a");
  nodes.at("a").pod_count = 1;
  EXPECT_EQ(place_pod(pod_of("new", "1", "1Gi"), nodes).node, "b");
}

TEST_F(Place, AvoidsSoftTaintsBeforeItComparesRoom) {
  add("a");
  add("b").add(pod_of("old", "2", "4Gi"));
  taint("a", api::kPreferNoSchedule);
  EXPECT_EQ(place_pod(pod_of("new", "1", "1Gi"), nodes).node, "b");
}

TEST_F(Place, SpreadsPodsWithoutRequests) {
  add("a");
  add("b");
  std::vector<std::string> order;
  for (const std::string name : {"p0", "p1", "p2", "p3"}) {
    const api::Pod pod = pod_of(name, "", "");
    order.push_back(place_pod(pod, nodes).node.value());
    nodes.at(order.back()).add(pod);
  }
  EXPECT_THAT(order, ElementsAre("a", "b", "a", "b"));
}

TEST_F(Place, SaysWhyEveryNodeWasRefused) {
  add("a", "1", "8Gi");
  add("b", "4", "1Gi");
  taint("b", api::kNoSchedule);
  const Placement placement = place_pod(pod_of("new", "2", "2Gi"), nodes);
  EXPECT_FALSE(placement.node);
  EXPECT_EQ(placement.message, "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).");
  ASSERT_EQ(placement.reasons.size(), 2U);
  EXPECT_EQ(policy::render(placement.reasons[0]),
            "insufficient-resource node=a resource=cpu requested=2000 used=0 allocatable=1000");
}

TEST_F(Place, KeepsPodsAwayFromNodesThatLackAFeature) {
  add("a");
  api::Pod pod = pod_of("new", "1", "1Gi");
  pod.spec.containers[0].restart_policy = "Never";
  pod.spec.containers[0].restart_rules.push_back(
      {.action = "RestartAllContainers", .exit_codes = api::ExitCodeRequirement{.op = "In", .values = {1}}});
  const Placement refused = place_pod(pod, nodes);
  EXPECT_FALSE(refused.node);
  EXPECT_EQ(refused.message, "0/1 nodes are available: 1 node(s) didn't match Pod's required features.");
  EXPECT_TRUE(refused.refused_by.contains(Filter::kNodeDeclaredFeatures));
  auto node = std::make_shared<api::Node>(*add("b").node);
  node->status.declared_features = {"RestartAllContainersOnContainerExits"};
  nodes.at("b").set_node(node);
  EXPECT_EQ(place_pod(pod, nodes).node, "b");
}

TEST_F(Place, PrefersTheNodeThatHoldsTheImage) {
  add("a");
  add("b");
  auto node = std::make_shared<api::Node>(*nodes.at("b").node);
  node->status.images = {{.names = {"registry/shop/cart:latest"}, .size_bytes = 2'000'000'000}};
  nodes.at("b").set_node(node);
  api::Pod pod = pod_of("new", "1", "1Gi");
  pod.spec.containers[0].image = "registry/shop/cart";
  EXPECT_EQ(place_pod(pod, nodes).node, "b");
  pod.spec.containers[0].image = "registry/shop/cart:2";
  EXPECT_EQ(place_pod(pod, nodes).node, "a");
}

/// In any order of nodes and pods, and with any number of equal nodes, one node is first.
TEST_F(Place, IsATotalOrder) {
  const std::array<std::string, 3> names{"a", "b", "c"};
  constexpr int kLoads = 3;
  for (int combination = 0; combination < kLoads * kLoads * kLoads; ++combination) {
    nodes.clear();
    for (int i = 0, rest = combination; i < 3; ++i, rest /= kLoads) {
      policy::NodeLoad& load = add(names[static_cast<std::size_t>(i)]);
      for (int pod = 0; pod < rest % kLoads; ++pod) load.add(pod_of("old", "1", "1Gi"));
    }
    const auto best = place_pod(pod_of("new", "1", "1Gi"), nodes).node;
    ASSERT_TRUE(best) << combination;
    auto others = nodes;
    for (const std::string& name : names) {
      if (name == *best) continue;
      others = nodes;
      others.erase(name);
      EXPECT_EQ(place_pod(pod_of("new", "1", "1Gi"), others).node, best) << "a loser's absence changes nothing";
    }
    others = nodes;
    others.erase(*best);
    EXPECT_NE(place_pod(pod_of("new", "1", "1Gi"), others).node, best) << combination;
  }
}

class Promised : public Place {
 protected:
  /// A pod that is to have 3 of the 4 processors of `a`.
  void promise(std::int32_t priority) {
    api::Pod pod = pod_of("first", "3", "1Gi");
    pod.metadata.uid = "u-first";
    pod.spec.priority = priority;
    around.nominate("a", std::make_shared<const api::Pod>(std::move(pod)));
  }

  std::optional<std::string> node_for(const api::Pod& pod) {
    return place_pod(pod, nodes, default_profile(), {}, around).node;
  }

  Surroundings around;
};

TEST_F(Promised, RoomIsKeptForEqualAndHigherPriorities) {
  add("a");
  const api::Pod pod = pod_of("new", "2", "1Gi");
  promise(-1);
  EXPECT_EQ(node_for(pod), "a");
  promise(0);
  EXPECT_EQ(node_for(pod), std::nullopt);
  add("b");
  EXPECT_EQ(node_for(pod), "b");
}

TEST_F(Promised, ThePodItselfFindsItsRoom) {
  add("a").add(pod_of("old", "1", "1Gi"));
  add("b");
  promise(0);
  api::Pod pod = pod_of("first", "3", "1Gi");
  pod.metadata.uid = "u-first";
  pod.status.nominated_node_name = "a";
  EXPECT_EQ(node_for(pod), "a") << "b has more room, and is not asked";
  nodes.at("a").add(pod_of("late", "1", "1Gi"));
  EXPECT_EQ(node_for(pod), "b");
}

class LiteralConditions : public Place {
 protected:
  /// The message with the condition set on the only node.
  std::string refusal(const api::Pod& pod, const std::string& type, const std::string& status) {
    nodes.clear();
    add("a");
    auto node = std::make_shared<api::Node>(*nodes.at("a").node);
    node->status.conditions = {{.type = "Ready", .status = "True"}};
    if (type == "Ready") node->status.conditions.clear();
    node->status.conditions.push_back({.type = type, .status = status});
    nodes.at("a").set_node(node);
    EXPECT_TRUE(place_pod(pod, nodes).node) << "taints alone keep pods away";
    Profile literally;
    literally.conditions = NodeConditions::kLiterally;
    return place_pod(pod, nodes, literally).message;
  }
};

TEST_F(LiteralConditions, KeepPodsAway) {
  const api::Pod burstable = pod_of("burstable", "1", "1Gi");
  const api::Pod best_effort = pod_of("best-effort", "", "");
  EXPECT_EQ(refusal(best_effort, "MemoryPressure", "True"), "0/1 nodes are available: 1 node(s) had memory pressure.");
  EXPECT_EQ(refusal(burstable, "MemoryPressure", "True"), "");
  EXPECT_EQ(refusal(burstable, "DiskPressure", "True"), "0/1 nodes are available: 1 node(s) had disk pressure.");
  EXPECT_EQ(refusal(burstable, "PIDPressure", "True"), "0/1 nodes are available: 1 node(s) had pid pressure.");
  EXPECT_EQ(refusal(burstable, "Ready", "Unknown"), "0/1 nodes are available: 1 node(s) were not ready.");
  EXPECT_EQ(refusal(burstable, "NetworkUnavailable", "True"),
            "0/1 nodes are available: 1 node(s) had unavailable network.");
  EXPECT_EQ(refusal(burstable, "NetworkUnavailable", "False"), "");
}

TEST_F(Place, WithoutNodesThereIsNothingToRefuse) {
  EXPECT_EQ(place_pod(pod_of("new", "1", "1Gi"), nodes).message, "no nodes available to schedule pods");
}

TEST(Score, ProportionsFollowTheCandidates) {
  const Score clean{.resources = 50, .balanced = 90, .soft_taints = 0, .affinity = 10};
  const Score tainted{.resources = 60, .balanced = 90, .soft_taints = 2, .affinity = 5};
  ScoreBounds most;
  most.include(clean);
  most.include(tainted);
  EXPECT_EQ(total_score(clean, most, {}), 50 + 90 + 300 + 200);
  EXPECT_EQ(total_score(tainted, most, {}), 60 + 90 + 0 + 100);
  ScoreBounds alone;
  alone.include(tainted);
  EXPECT_EQ(total_score(tainted, alone, {}), 60 + 90 + 0 + 200);
}

TEST(Score, AFullNodeScoresNothingForRoom) {
  auto node = std::make_shared<api::Node>();
  node->status.allocatable = {{"cpu", quantity("1")}, {"memory", quantity("1Gi")}};
  const policy::NodeLoad load(node);
  const api::Pod pod = pod_of("p", "1500m", "512Mi");
  const Score score = score_node(make_pending(pod), load);
  EXPECT_EQ(score.resources, 25);  // (0 + 50) / 2
  EXPECT_EQ(score.balanced, 62);   // balance 75 (shares 100 % and 50 %) after 100
}

}  // namespace
}  // namespace spillway::scheduling
