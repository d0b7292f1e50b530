// Hints against the plain scan: over drawn histories, a pod that would fit by now was never kept waiting. And the
// answers of the plug-ins one by one.
#include "policy/scheduling/queueing_hints.h"

#include "base/rng.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::scheduling {
namespace {

using NodePtr = std::shared_ptr<const api::Node>;
using Why = QueueingHint::Why;

constexpr std::uint64_t kHintNodes = 5;

std::shared_ptr<api::Node> plain_node(const std::string& name, std::int64_t cpus = 2) {
  auto node = std::make_shared<api::Node>();
  node->metadata.name = name;
  node->metadata.labels = {{"kubernetes.io/hostname", name}};
  node->status.allocatable = {{"cpu", api::Quantity::of_units(cpus)},
                              {"memory", api::Quantity::of_units(std::int64_t{4} << 30)},
                              {"pods", api::Quantity::of_units(4)}};
  return node;
}

api::Pod asking_pod(std::int64_t milli_cpu) {
  api::Pod pod;
  pod.metadata.ns = "shop";
  pod.metadata.name = "p";
  pod.metadata.uid = "u";
  api::Container container;
  container.name = "c";
  container.resources.requests["cpu"] = api::Quantity::of_milli(milli_cpu);
  pod.spec.containers.push_back(std::move(container));
  return pod;
}

api::Json apps(std::string_view app) {
  return api::Json::object({{"matchLabels", api::Json::object({{"app", app}})}});
}

api::Json required_terms(std::string_view kind, std::string_view app, std::string_view key) {
  const api::Json term = api::Json::object({{"labelSelector", apps(app)}, {"topologyKey", key}});
  return api::Json::object(
      {{kind, api::Json::object({{"requiredDuringSchedulingIgnoredDuringExecution", api::Json::array({term})}})}});
}

struct Refused {
  api::Pod pod;
  const Profile* profile = nullptr;
  FilterSet by;
};

/// A small, nearly full cluster, in which single changes let pods in.
class World {
 public:
  explicit World(std::uint64_t seed) : rng_(seed) {
    profiles_[1].conditions = NodeConditions::kLiterally;
    profiles_[2].default_constraints = {{.topology_key = "zone", .required = true}};
    around_.set_namespace("shop", api::StringMap{});
    around_.set_namespace("lab", api::StringMap{});
    for (std::uint64_t i = 0; i < kHintNodes; ++i) {
      nodes_[node_name(i)] = draw_node(node_name(i));
      for (std::uint64_t left = rng_.below(5); left > 0; --left) pods_[node_name(i)].push_back(draw_pod());
    }
    refill();
  }

  void step() {
    refill();
    const std::optional<ClusterChange> change = draw_change();
    reload();
    for (Refused& each : waiting_) {
      const QueueingHint hint =
          change ? hint_for({make_pending(each.pod, *each.profile), each.by}, *change, around_) : QueueingHint();
      const Placement now = place_pod(each.pod, loads_, *each.profile, {}, around_);
      if (!hint.queue) {
        ++skipped;
        ASSERT_FALSE(now.node) << fmt::format("it fits on {} after {}, and was to wait: {}", *now.node,
                                              change ? change->label() : "nothing", to_string(hint.why));
        continue;
      }
      (now.node ? admitted : in_vain) += 1;
      each.by = now.refused_by;
      if (now.node) each.profile = nullptr;
    }
    std::erase_if(waiting_, [](const Refused& each) { return each.profile == nullptr; });
    before_.clear();
  }

  std::size_t skipped = 0;
  std::size_t admitted = 0;
  std::size_t in_vain = 0;

 private:
  static std::string node_name(std::uint64_t number) { return fmt::format("n{}", number); }

  void reload() {
    loads_.clear();
    for (const auto& [name, node] : nodes_) around_.clear(name);
    for (std::uint64_t i = 0; i < kHintNodes; ++i) around_.clear(node_name(i));
    for (const auto& [name, node] : nodes_) {
      policy::NodeLoad load(node);
      for (const api::Pod& pod : pods_[name]) {
        load.add(pod);
        around_.add(name, pod);
      }
      loads_.emplace(name, std::move(load));
    }
  }

  void refill() {
    reload();
    for (int tries = 0; tries < 40 && waiting_.size() < 8; ++tries) {
      Refused fresh{draw_pod(), &profiles_[rng_.below(profiles_.size())], {}};
      const Placement placement = place_pod(fresh.pod, loads_, *fresh.profile, {}, around_);
      if (placement.node) continue;
      fresh.by = placement.refused_by;
      waiting_.push_back(std::move(fresh));
    }
  }

  std::shared_ptr<api::Node> draw_node(const std::string& name) {
    auto node = plain_node(name, 1 + static_cast<std::int64_t>(rng_.below(3)));
    node->metadata.labels["disk"] = rng_.below(2) == 0 ? "ssd" : "slow";
    if (rng_.below(4) != 0) node->metadata.labels["zone"] = fmt::format("z{}", rng_.below(2));
    node->spec.unschedulable = rng_.below(5) == 0;
    if (rng_.below(4) == 0) node->spec.taints.push_back({"t", "", std::string(api::kNoSchedule), {}});
    node->status.conditions = {{.type = "Ready", .status = rng_.below(5) == 0 ? "False" : "True"},
                               {.type = "DiskPressure", .status = rng_.below(6) == 0 ? "True" : "False"}};
    return node;
  }

  api::Pod draw_pod() {
    api::Pod pod = asking_pod(rng_.below(3) == 0 ? 1200 : 300);
    pod.metadata.name = fmt::format("p{}", ++drawn_);
    pod.metadata.uid = fmt::format("u{}", drawn_);
    pod.metadata.ns = rng_.below(2) == 0 ? "shop" : "lab";
    pod.metadata.labels = {{"app", rng_.below(2) == 0 ? "web" : "db"}};
    if (rng_.below(5) == 0) {
      pod.spec.containers.front().ports.push_back({.container_port = 80, .host_port = 80, .protocol = "TCP"});
    }
    if (rng_.below(5) == 0) pod.spec.tolerations.push_back({"t", "Exists", "", "", {}});
    if (rng_.below(4) == 0) pod.spec.node_selector = {{"disk", "ssd"}};
    const std::string key = rng_.below(2) == 0 ? "kubernetes.io/hostname" : "zone";
    const std::string app = rng_.below(2) == 0 ? "web" : "db";
    if (rng_.below(3) == 0) {
      pod.spec.affinity = required_terms(rng_.below(2) == 0 ? "podAffinity" : "podAntiAffinity", app, key);
    }
    if (rng_.below(5) == 0) {
      pod.spec.topology_spread = api::Json::array({api::Json::object({{"labelSelector", apps(app)},
                                                                      {"topologyKey", key},
                                                                      {"maxSkew", 1},
                                                                      {"whenUnsatisfiable", "DoNotSchedule"}})});
    }
    pod.spec.priority = static_cast<std::int32_t>(rng_.below(2));
    return pod;
  }

  std::optional<ClusterChange> draw_change() {
    const std::string name = node_name(rng_.below(kHintNodes));
    const auto node = nodes_.find(name);
    switch (rng_.below(9)) {
      case 0:
      case 1:
        return change_node(name);
      case 2:
        return node == nodes_.end() ? change_node(name) : remove_node(name);
      case 3:
        if (node == nodes_.end()) return change_node(name);
        pods_[name].push_back(draw_pod());
        return ClusterChange::pod_added(pods_[name].back());
      case 4:
        return change_pod(name);
      case 5:
        return promise(name);
      case 6:
        around_.set_namespace("lab", api::StringMap{{"team", rng_.below(2) == 0 ? "a" : "b"}});
        return ClusterChange::of_namespace();
      case 7:
        around_.set_service("shop", "web", rng_.below(2) == 0 ? api::StringMap{{"app", "web"}} : api::StringMap());
        return ClusterChange::of_owner();
      default:
        return remove_pod(name);
    }
  }

  std::optional<ClusterChange> change_node(const std::string& name) {
    const auto known = nodes_.find(name);
    if (known == nodes_.end()) {
      nodes_[name] = draw_node(name);
      return ClusterChange::of_node(nullptr, nodes_[name]);
    }
    const NodePtr before = known->second;
    auto after = std::make_shared<api::Node>(*before);
    const auto other = draw_node(name);
    switch (rng_.below(4)) {
      case 0:
        after->metadata.labels = other->metadata.labels;
        break;
      case 1:
        after->spec = other->spec;
        break;
      case 2:
        after->status.allocatable = other->status.allocatable;
        break;
      default:
        after->status.conditions = other->status.conditions;
    }
    known->second = after;
    return ClusterChange::of_node(before, after);
  }

  std::optional<ClusterChange> remove_node(const std::string& name) {
    const NodePtr before = nodes_.at(name);
    nodes_.erase(name);
    pods_.erase(name);
    around_.forget(name);
    return ClusterChange::of_node(before, nullptr);
  }

  api::Pod* any_pod(const std::string& name) {
    std::vector<api::Pod>& there = pods_[name];
    return there.empty() ? nullptr : &there[rng_.below(there.size())];
  }

  NodePtr node_ptr(const std::string& name) const {
    const auto node = nodes_.find(name);
    return node == nodes_.end() ? nullptr : node->second;
  }

  std::optional<ClusterChange> change_pod(const std::string& name) {
    api::Pod* pod = any_pod(name);
    if (pod == nullptr) return std::nullopt;
    before_.push_back(std::make_unique<api::Pod>(*pod));
    switch (rng_.below(3)) {
      case 0:
        pod->metadata.labels["app"] = rng_.below(2) == 0 ? "web" : "db";
        break;
      case 1:
        pod->metadata.deletion_timestamp = WallTime();
        break;
      default:
        pod->spec.containers.front().resources.requests["cpu"] = api::Quantity::of_milli(100);
    }
    return ClusterChange::pod_changed(*before_.back(), *pod, node_ptr(name));
  }

  std::optional<ClusterChange> remove_pod(const std::string& name) {
    const api::Pod* pod = any_pod(name);
    if (pod == nullptr) return std::nullopt;
    before_.push_back(std::make_unique<api::Pod>(*pod));
    std::erase_if(pods_[name], [&](const api::Pod& each) { return each.metadata.uid == pod->metadata.uid; });
    return ClusterChange::pod_removed(*before_.back(), node_ptr(name));
  }

  /// Promises the node to a pod, or withdraws the promise.
  std::optional<ClusterChange> promise(const std::string& name) {
    if (!promised_) {
      promised_ = std::make_shared<api::Pod>(draw_pod());
      around_.nominate(name, promised_);
      return std::nullopt;
    }
    const std::shared_ptr<const api::Pod> pod = std::exchange(promised_, nullptr);
    const std::string was = around_.nominate({}, pod);
    before_.push_back(std::make_unique<api::Pod>(*pod));
    return ClusterChange::pod_removed(*before_.back(), node_ptr(was));
  }

  Rng rng_;
  std::uint64_t drawn_ = 0;
  std::array<Profile, 3> profiles_;
  std::map<std::string, NodePtr> nodes_;
  std::map<std::string, std::vector<api::Pod>> pods_;
  std::map<std::string, policy::NodeLoad> loads_;
  Surroundings around_;
  std::shared_ptr<const api::Pod> promised_;
  std::vector<Refused> waiting_;
  std::vector<std::unique_ptr<api::Pod>> before_;  // the objects of the change
};

TEST(QueueingHints, NoPodWaitsThatWouldFit) {
  std::size_t skipped = 0;
  std::size_t admitted = 0;
  std::size_t in_vain = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed);
    for (int step = 0; step < 60; ++step) {
      world.step();
      if (HasFatalFailure()) return;
    }
    skipped += world.skipped;
    admitted += world.admitted;
    in_vain += world.in_vain;
  }
  EXPECT_GT(admitted, 1000U);
  EXPECT_GT(skipped, 2 * in_vain) << "most changes are none of a pod's business";
}

FilterSet only(Filter filter) {
  FilterSet set;
  set.insert(filter);
  return set;
}

class HintsOfOne : public ::testing::Test {
 protected:
  QueueingHint ask(Filter by, const std::optional<ClusterChange>& change) {
    return change ? hint_for({make_pending(pod_), only(by)}, *change, around_) : QueueingHint();
  }

  api::Pod pod_ = asking_pod(500);
  std::shared_ptr<api::Node> node_ = plain_node("n");
  std::shared_ptr<api::Node> other_ = plain_node("n");
  Surroundings around_;
};

TEST_F(HintsOfOne, AHeartbeatIsNoChange) {
  other_->status.conditions = node_->status.conditions = {{.type = "Ready", .status = "True"}};
  other_->status.conditions.front().last_heartbeat_time = WallTime() + seconds(10);
  other_->metadata.annotations["a"] = "b";
  EXPECT_FALSE(ClusterChange::of_node(node_, other_));
  other_->status.allocatable["cpu"] = api::Quantity::of_units(1);
  EXPECT_FALSE(ClusterChange::of_node(node_, other_)) << "less of something lets nobody in";
}

TEST_F(HintsOfOne, ATaintThatGoesConcernsTaints) {
  node_->spec.taints.push_back({"t", "", std::string(api::kNoSchedule), {}});
  const auto change = ClusterChange::of_node(node_, other_);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->label(), "NodeUpdateNodeTaint");
  EXPECT_EQ(ask(Filter::kTaintToleration, change), (QueueingHint{true, Why::kNodeMayTakeIt, Filter::kTaintToleration}));
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, change),
            (QueueingHint{false, Why::kNotAffected, Filter::kNodeResourcesFit}));
  EXPECT_EQ(ask(Filter::kNodeUnschedulable, change).why, Why::kNotAffected) << "it was not in the way";
  pod_.spec.tolerations.push_back({"t", "Exists", "", "", {}});
  EXPECT_EQ(ask(Filter::kTaintToleration, change).why, Why::kNotAffected) << "it was no reason before";
}

TEST_F(HintsOfOne, ALabelThatDoesNotMatchIsNone) {
  pod_.spec.node_selector = {{"disk", "ssd"}};
  other_->metadata.labels["disk"] = "slow";
  EXPECT_EQ(ask(Filter::kNodeAffinity, ClusterChange::of_node(node_, other_)).why, Why::kNodeStillRefuses);
  other_->metadata.labels["disk"] = "ssd";
  EXPECT_TRUE(ask(Filter::kNodeAffinity, ClusterChange::of_node(node_, other_)).queue);
}

TEST_F(HintsOfOne, RoomOnANodeThatIsTooSmallIsNone) {
  const api::Pod gone = asking_pod(500);
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, ClusterChange::pod_removed(gone, node_)).why, Why::kRoomMade);
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, ClusterChange::pod_removed(gone, nullptr)).why, Why::kRoomMade);
  pod_ = asking_pod(3000);
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, ClusterChange::pod_removed(gone, node_)).why, Why::kNodeTooSmall);
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, ClusterChange::of_node(nullptr, node_)).why, Why::kNodeTooSmall);
}

TEST_F(HintsOfOne, APodThatAsksForLessMakesRoom) {
  const api::Pod before = asking_pod(500);
  const api::Pod after = asking_pod(100);
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, ClusterChange::pod_changed(before, after, node_)).why, Why::kRoomMade);
  EXPECT_FALSE(ask(Filter::kNodeResourcesFit, ClusterChange::pod_changed(after, before, node_)).queue);
}

TEST_F(HintsOfOne, PortsAreFreedByWhoHadThem) {
  pod_.spec.containers.front().ports.push_back({.container_port = 80, .host_port = 80, .protocol = "TCP"});
  api::Pod gone = asking_pod(100);
  gone.metadata.uid = "other";
  EXPECT_EQ(ask(Filter::kNodePorts, ClusterChange::pod_removed(gone, node_)).why, Why::kOtherPorts);
  gone.spec.containers.front().ports = pod_.spec.containers.front().ports;
  EXPECT_EQ(ask(Filter::kNodePorts, ClusterChange::pod_removed(gone, node_)).why, Why::kPortsFreed);
}

TEST_F(HintsOfOne, WhoUsedAClaimForOnePodMayGoWithItsNode) {
  const auto gone = ClusterChange::of_node(node_, nullptr);
  EXPECT_EQ(ask(Filter::kVolumeRestrictions, gone).why, Why::kVolumesFreed);
  EXPECT_EQ(ask(Filter::kNodeVolumeLimits, gone).why, Why::kNotAffected);
}

TEST_F(HintsOfOne, APromisedNodeThatIsLostLetsThePodTryOthers) {
  pod_.status.nominated_node_name = "n";
  other_->spec.taints.push_back({"node.kubernetes.io/unreachable", "", std::string(api::kNoSchedule), {}});
  const auto tainted = ClusterChange::of_node(node_, other_);
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, tainted),
            (QueueingHint{true, Why::kPromiseBroken, Filter::kTaintToleration}));
  EXPECT_EQ(ask(Filter::kNodeResourcesFit, ClusterChange::of_node(node_, nullptr)),
            (QueueingHint{true, Why::kPromiseBroken, Filter::kNodeName}));
  auto still_tainted = std::make_shared<api::Node>(*other_);
  still_tainted->metadata.labels["a"] = "b";
  EXPECT_FALSE(ask(Filter::kNodeResourcesFit, ClusterChange::of_node(other_, still_tainted)).queue) << "told once";
  pod_.status.nominated_node_name = "m";
  EXPECT_FALSE(ask(Filter::kNodeResourcesFit, tainted).queue);
  pod_.status.nominated_node_name = "n";
  pod_.spec.tolerations.push_back({"", "Exists", "", "", {}});
  EXPECT_FALSE(ask(Filter::kNodeResourcesFit, tainted).queue) << "the pod may still go there";
}

TEST_F(HintsOfOne, TermsAskWhetherThePodIsMeant) {
  pod_.spec.affinity = required_terms("podAntiAffinity", "web", "zone");
  api::Pod gone = asking_pod(100);
  EXPECT_EQ(ask(Filter::kInterPodAffinity, ClusterChange::pod_removed(gone, node_)).why, Why::kOtherPods);
  gone.metadata.labels["app"] = "web";
  EXPECT_EQ(ask(Filter::kInterPodAffinity, ClusterChange::pod_removed(gone, node_)).why, Why::kOthersMoved);
  EXPECT_FALSE(ask(Filter::kInterPodAffinity, ClusterChange::pod_added(gone)).queue) << "one more is no help";
  pod_.spec.affinity = api::Json();
  pod_.metadata.labels["app"] = "db";
  gone.spec.affinity = required_terms("podAntiAffinity", "db", "zone");
  EXPECT_TRUE(ask(Filter::kInterPodAffinity, ClusterChange::pod_removed(gone, node_)).queue) << "it kept the pod away";
}

TEST_F(HintsOfOne, TheFirstFilterThatQueuesDecides) {
  FilterSet two = only(Filter::kNodeAffinity);
  two.insert(Filter::kNodeResourcesFit);
  const api::Pod gone = asking_pod(500);
  const auto change = ClusterChange::pod_removed(gone, node_);
  EXPECT_EQ(hint_for({make_pending(pod_), two}, change, around_).by, Filter::kNodeResourcesFit);
  EXPECT_EQ(hint_for({make_pending(pod_), {}}, change, around_), (QueueingHint{true, Why::kPluginsUnknown, {}}));
  EXPECT_TRUE(hint_for({make_pending(pod_), only(Filter::kExtender)}, change, around_).queue);
}

}  // namespace
}  // namespace spillway::scheduling
