// A placer says of every pod what place_pod says over the same nodes, whatever happened to them in between.
#include "policy/scheduling/placer.h"

#include "base/rng.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
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

/// A profile that leaves something out or weighs it differently, by chance.
Profile draw_profile(Rng rng, std::string scheduler) {
  Profile profile;
  profile.scheduler = std::move(scheduler);
  if (rng.below(2) == 0) profile.conditions = NodeConditions::kLiterally;
  if (rng.below(2) == 0) return profile;
  constexpr std::uint64_t kFilters = 12;
  profile.left_out.insert(static_cast<Filter>(rng.below(kFilters)));
  const auto weight = [&rng] { return static_cast<std::int64_t>(rng.below(4)); };
  profile.weights = {weight(), weight(), weight(), weight(), weight(), weight(), weight()};
  if (rng.below(3) == 0) profile.fit.type = ScoringStrategy::Type::kMostAllocated;
  if (rng.below(3) == 0) profile.balanced = {"cpu"};
  return profile;
}

/// Nodes and pods in few sorts each, so that standings, ties and refusals are all frequent.
class Cluster {
 public:
  explicit Cluster(std::uint64_t seed)
      : rng_(seed),
        profiles_{draw_profile(rng_.fork("one"), "one"), draw_profile(rng_.fork("two"), "two")},
        placer_(profiles_) {
    add_others(placer_.surroundings());
  }

  void change() {
    const std::string node = name_of(rng_.below(kNames));
    switch (rng_.below(9)) {
      case 0:
        pods_.erase(node);
        return placer_.erase(node);
      case 1:
      case 2:
        return placer_.set_node(draw_node(node));
      case 3:
        return set_pods(node);
      case 4:
        return promise(node);
      default:
        return add(node, draw_pod());
    }
  }

  /// The node is taken from then on.
  void place() {
    api::Pod pod = draw_pod();
    const Profile& profile = profiles_[rng_.below(profiles_.size())];
    pod.spec.scheduler_name = profile.scheduler;
    const std::string taboo = name_of(rng_.below(kNames));
    const VolumeFilter volumes = [&](const policy::NodeLoad& node, FilterSet) -> std::optional<Refusal> {
      if (node.node->metadata.name != taboo) return std::nullopt;
      return Refusal{Filter::kVolumeBinding, {{{policy::ReasonCode::kNodeSelectorMismatch, {}}, "not here"}}};
    };
    const bool has_claims = rng_.below(6) == 0;
    Surroundings around;
    add_others(around);
    for (const auto& [to, promised] : promises_) around.nominate(to, promised);
    for (const auto& [node, pods] : pods_) {
      for (const api::Pod& each : pods) around.add(node, each);
    }
    const Placement plain = place_pod(pod, placer_.nodes(), profile, has_claims ? volumes : VolumeFilter(), around);
    const Placement found = placer_.place(pod, has_claims ? volumes : VolumeFilter());
    related += is_related(found) ? 1 : 0;
    EXPECT_EQ(found.node, plain.node);
    EXPECT_EQ(found.reasons, plain.reasons);
    EXPECT_EQ(found.message, plain.message);
    EXPECT_EQ(found.resolvable, plain.resolvable);
    (found.node ? placed : refused) += 1;
    if (found.node) add(*found.node, pod);
  }

  static bool is_related(const Placement& found) {
    const std::vector<policy::Fact>& facts = found.reasons.empty() ? kNoFacts : found.reasons.front().facts;
    return policy::find_fact(facts, "inter_pod_affinity") != nullptr ||
           policy::find_fact(facts, "topology_spread") != nullptr;
  }

  std::size_t placed = 0;
  std::size_t refused = 0;
  std::size_t related = 0;  // placements that depend on scores from other pods

 private:
  inline static const std::vector<policy::Fact> kNoFacts;

  void add(const std::string& node, const api::Pod& pod) {
    if (placer_.nodes().contains(node)) pods_[node].push_back(pod);
    placer_.add_pod(node, pod);
  }

  void set_pods(const std::string& node) {
    std::vector<api::Pod> pods;
    for (std::uint64_t left = rng_.below(4); left > 0; --left) pods.push_back(draw_pod());
    std::vector<const api::Pod*> pointers;
    for (const api::Pod& pod : pods) pointers.push_back(&pod);
    placer_.set_pods(node, pointers);
    if (placer_.nodes().contains(node)) pods_[node] = std::move(pods);
  }

  /// Promises the node to one of two pods, or withdraws the promise.
  void promise(const std::string& node) {
    auto pod = std::make_shared<api::Pod>(draw_pod());
    pod->metadata.uid = rng_.below(2) == 0 ? "u1" : "u2";
    const std::string to = rng_.below(3) == 0 ? node : std::string();
    placer_.surroundings().nominate(to, pod);
    promises_.emplace_back(to, pod);
  }

  static void add_others(Surroundings& around) {
    around.set_namespace("shop", api::StringMap{{"team", "a"}});
    around.set_namespace("lab", api::StringMap{});
    around.set_service("shop", "web", {{"app", "web"}});
    around.set_owner(api::KindId{"apps", "ReplicaSet"}, "lab", "db",
                     api::LabelSelector{{{"app", api::LabelRequirement::Op::kEquals, {"db"}}}});
  }

  std::shared_ptr<const api::Node> draw_node(const std::string& name) {
    auto node = std::make_shared<api::Node>();
    node->metadata.name = name;
    node->metadata.labels = {{"disk", rng_.below(2) == 0 ? "ssd" : "slow"}, {"kubernetes.io/hostname", name}};
    if (rng_.below(8) != 0) node->metadata.labels["topology.kubernetes.io/zone"] = fmt::format("z{}", rng_.below(3));
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
    pod.metadata.ns = rng_.below(2) == 0 ? "shop" : "lab";
    pod.metadata.labels = {{"app", rng_.below(2) == 0 ? "web" : "db"}};
    if (rng_.below(4) == 0) pod.metadata.owner_references.push_back({"apps/v1", "ReplicaSet", "db", "u", true, true});
    if (rng_.below(8) == 0) pod.metadata.deletion_timestamp = WallTime();
    if (rng_.below(4) == 0) pod.spec.affinity = draw_pod_affinity();
    if (rng_.below(5) == 0) pod.spec.topology_spread = draw_spread();
    if (rng_.below(40) == 0) pod.status.nominated_node_name = name_of(rng_.below(kNames));
    return pod;
  }

  api::Json draw_label_selector() {
    return api::Json::object({{"matchLabels", api::Json::object({{"app", rng_.below(2) == 0 ? "web" : "db"}})}});
  }

  std::string draw_topology_key() {
    return rng_.below(2) == 0 ? "kubernetes.io/hostname" : "topology.kubernetes.io/zone";
  }

  api::Json draw_pod_affinity() {
    api::Json term =
        api::Json::object({{"labelSelector", draw_label_selector()}, {"topologyKey", draw_topology_key()}});
    if (rng_.below(3) == 0) term["namespaceSelector"] = api::Json::object();
    const std::string kind = rng_.below(2) == 0 ? "podAffinity" : "podAntiAffinity";
    if (rng_.below(3) != 0) {
      const api::Json wish = api::Json::object(
          {{"weight", 1 + static_cast<std::int64_t>(rng_.below(100))}, {"podAffinityTerm", std::move(term)}});
      return api::Json::object(
          {{kind, api::Json::object({{"preferredDuringSchedulingIgnoredDuringExecution", api::Json::array({wish})}})}});
    }
    return api::Json::object(
        {{kind, api::Json::object({{"requiredDuringSchedulingIgnoredDuringExecution", api::Json::array({term})}})}});
  }

  api::Json draw_spread() {
    return api::Json::array(
        {api::Json::object({{"labelSelector", draw_label_selector()},
                            {"topologyKey", draw_topology_key()},
                            {"maxSkew", 1 + static_cast<std::int64_t>(rng_.below(2))},
                            {"whenUnsatisfiable", rng_.below(2) == 0 ? "DoNotSchedule" : "ScheduleAnyway"}})});
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
  std::vector<Profile> profiles_;
  Placer placer_;
  std::vector<std::pair<std::string, std::shared_ptr<const api::Pod>>> promises_;  // in order
  std::map<std::string, std::vector<api::Pod>> pods_;                              // by node
};

TEST(Placer, SaysWhatASearchOfAllNodesSays) {
  std::size_t placed = 0;
  std::size_t refused = 0;
  std::size_t related = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Cluster cluster(seed);
    Rng steps(seed);
    for (int step = 0; step < 150; ++step) {
      if (steps.below(3) == 0) cluster.change();
      cluster.place();
    }
    placed += cluster.placed;
    refused += cluster.refused;
    related += cluster.related;
    if (HasFailure()) return;
  }
  EXPECT_GT(placed, 1000U);
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(related, 500U);
}

TEST(Placer, WithoutNodesThereIsNothingToRefuse) {
  Placer placer;
  api::Pod pod;
  EXPECT_EQ(placer.place(pod).message, "no nodes available to schedule pods");
}

TEST(Surroundings, AnOwnerIsFoundByItsGroupToo) {
  const api::LabelSelector of_web{{{"app", api::LabelRequirement::Op::kEquals, {"web"}}}};
  Surroundings around;
  around.set_owner(api::KindId{"apps", "ReplicaSet"}, "lab", "web", of_web);
  api::Pod pod;
  pod.metadata.ns = "lab";
  pod.metadata.owner_references = {{"apps/v1beta2", "ReplicaSet", "web", "u1", true, true}};
  ASSERT_TRUE(around.selector_for(pod));
  EXPECT_EQ(*around.selector_for(pod), of_web) << "in any version";
  pod.metadata.owner_references.front().api_version = "example.com/v1";
  EXPECT_FALSE(around.selector_for(pod)) << "a custom kind of that name";
  around.set_owner(api::KindId{"example.com", "ReplicaSet"}, "lab", "web", std::nullopt);
  pod.metadata.owner_references.front().api_version = "apps/v1";
  EXPECT_TRUE(around.selector_for(pod)) << "whose end is not that of another";
}

}  // namespace
}  // namespace spillway::scheduling
