// A placer says of every pod what place_pod says over the same nodes, whatever happened to them in between.
#include "policy/scheduling/placer.h"

#include "base/rng.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace spillway::scheduling {
namespace {

constexpr std::size_t kNames = 12;

std::string name_of(std::uint64_t number) {
  return fmt::format("node-{:02}", number);
}

api::Json one_of(std::string_view key, std::string_view value) {
  return api::Json::object(
      {{"key", std::string(key)}, {"operator", "In"}, {"values", api::Json::array({std::string(value)})}});
}

/// Nodes and pods in few sorts each, so that standings, ties and refusals are all frequent.
class Cluster {
 public:
  Cluster(std::uint64_t seed, NodeConditions conditions) : rng_(seed), conditions_(conditions), placer_(conditions) {}

  void change() {
    const std::string node = name_of(rng_.below(kNames));
    switch (rng_.below(8)) {
      case 0:
        return placer_.erase(node);
      case 1:
      case 2:
        return placer_.set_node(draw_node(node));
      case 3:
        return placer_.set_load(node, recounted(node));
      default:
        return placer_.add_pod(node, draw_pod());
    }
  }

  /// The node is taken from then on.
  void place() {
    const api::Pod pod = draw_pod();
    const std::string taboo = name_of(rng_.below(kNames));
    const VolumeFilter volumes = [&](const api::Node& node) {
      return node.metadata.name == taboo ? std::string("not here") : std::string();
    };
    const bool has_claims = rng_.below(6) == 0;
    const Placement plain = place_pod(pod, placer_.nodes(), conditions_, has_claims ? volumes : VolumeFilter());
    const Placement found = placer_.place(pod, has_claims ? volumes : VolumeFilter());
    EXPECT_EQ(found.node, plain.node);
    EXPECT_EQ(found.reasons, plain.reasons);
    EXPECT_EQ(found.message, plain.message);
    EXPECT_EQ(found.resolvable, plain.resolvable);
    (found.node ? placed : refused) += 1;
    if (found.node) placer_.add_pod(*found.node, pod);
  }

  std::size_t placed = 0;
  std::size_t refused = 0;

 private:
  std::shared_ptr<const api::Node> draw_node(const std::string& name) {
    auto node = std::make_shared<api::Node>();
    node->metadata.name = name;
    node->metadata.labels = {{"disk", rng_.below(2) == 0 ? "ssd" : "slow"}};
    node->spec.unschedulable = rng_.below(10) == 0;
    constexpr std::array kEffects{api::kNoSchedule, api::kPreferNoSchedule, api::kPreferNoSchedule};
    for (std::uint64_t left = rng_.below(3); left > 0; --left) {
      node->spec.taints.push_back({fmt::format("taint-{}", left), "", std::string(kEffects[rng_.below(3)]), {}});
    }
    node->status.allocatable = {{"cpu", api::Quantity::of_units(2 + static_cast<std::int64_t>(rng_.below(3)))},
                                {"memory", api::Quantity::of_units(std::int64_t{4} << 30)},
                                {"pods", api::Quantity::of_units(12)}};
    node->status.conditions = {{.type = "Ready", .status = rng_.below(8) == 0 ? "False" : "True"},
                               {.type = "MemoryPressure", .status = rng_.below(4) == 0 ? "True" : "False"}};
    if (rng_.below(3) == 0) node->status.images = {{.names = {"shop/cart:1"}, .size_bytes = 900'000'000}};
    return node;
  }

  policy::NodeLoad recounted(const std::string& node) {
    const auto known = placer_.nodes().find(node);
    if (known == placer_.nodes().end()) return {};
    policy::NodeLoad load(known->second.node);
    for (std::uint64_t left = rng_.below(4); left > 0; --left) load.add(draw_pod());
    return load;
  }

  api::Pod draw_pod() {
    api::Pod pod;
    api::Container container;
    container.name = "c";
    container.image = rng_.below(3) == 0 ? "shop/cart:1" : "shop/till";
    if (rng_.below(2) == 0) container.resources.requests["cpu"] = api::Quantity::of_milli(200);
    if (rng_.below(12) == 0) container.resources.requests["cpu"] = api::Quantity::of_units(64);
    if (rng_.below(6) == 0) container.ports.push_back({.container_port = 80, .host_port = 80, .protocol = "TCP"});
    pod.spec.containers.push_back(std::move(container));
    if (rng_.below(3) == 0) pod.spec.tolerations.push_back({"taint-1", "Exists", "", "", {}});
    if (rng_.below(4) == 0) pod.spec.node_selector = {{"disk", "ssd"}};
    if (rng_.below(3) == 0) pod.spec.affinity = draw_affinity();
    return pod;
  }

  api::Json draw_affinity() {
    if (rng_.below(2) == 0) {
      const api::Json term = api::Json::object(
          {{"matchFields", api::Json::array({one_of("metadata.name", name_of(rng_.below(kNames)))})}});
      return api::Json::object(
          {{"nodeAffinity",
            api::Json::object({{"requiredDuringSchedulingIgnoredDuringExecution",
                                api::Json::object({{"nodeSelectorTerms", api::Json::array({term})}})}})}});
    }
    const api::Json wish = api::Json::object(
        {{"weight", 1 + static_cast<std::int64_t>(rng_.below(2)) * 49},
         {"preference", api::Json::object({{"matchExpressions", api::Json::array({one_of("disk", "slow")})}})}});
    return api::Json::object({{"nodeAffinity", api::Json::object({{"preferredDuringSchedulingIgnoredDuringExecution",
                                                                   api::Json::array({wish})}})}});
  }

  Rng rng_;
  NodeConditions conditions_;
  Placer placer_;
};

TEST(Placer, SaysWhatALookAtAllNodesSays) {
  std::size_t placed = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Cluster cluster(seed, seed % 2 == 0 ? NodeConditions::kByTaints : NodeConditions::kLiterally);
    Rng steps(seed);
    for (int step = 0; step < 150; ++step) {
      if (steps.below(3) == 0) cluster.change();
      cluster.place();
    }
    placed += cluster.placed;
    refused += cluster.refused;
    if (HasFailure()) return;
  }
  EXPECT_GT(placed, 1000U);
  EXPECT_GT(refused, 1000U);
}

TEST(Placer, WithoutNodesThereIsNothingToRefuse) {
  Placer placer;
  api::Pod pod;
  EXPECT_EQ(placer.place(pod).message, "no nodes available to schedule pods");
}

}  // namespace
}  // namespace spillway::scheduling
