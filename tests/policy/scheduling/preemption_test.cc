// The victims for a pod: the dry run that takes pods away and puts them back against one that builds the whole cluster
// anew for every question; and the messages.
#include "policy/scheduling/preemption.h"

#include "base/rng.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace spillway::scheduling {
namespace {

using api::Json;

constexpr std::string_view kZone = "topology.kubernetes.io/zone";

Json app_selector(std::string_view app) {
  return Json::object({{"matchLabels", Json::object({{"app", app}})}});
}

api::Pod asking(const std::string& name, int cpu, std::int32_t priority) {
  api::Pod pod;
  pod.metadata.ns = "shop";
  pod.metadata.name = name;
  pod.metadata.uid = "uid-" + name;
  pod.spec.priority = priority;
  api::Container container;
  container.name = "c";
  container.resources.requests["cpu"] = api::Quantity::of_units(cpu);
  pod.spec.containers.push_back(std::move(container));
  return pod;
}

/// Nodes of four processors, with their pods and promises.
struct SmallCluster {
  std::vector<std::shared_ptr<const api::Node>> nodes;
  std::map<std::string, std::vector<PodPtr>> pods;
  std::vector<PodPtr> promised;
  BudgetsByNamespace budgets;

  void add_node(const std::string& name, const std::string& zone) {
    auto node = std::make_shared<api::Node>();
    node->metadata.name = name;
    node->metadata.labels = {{std::string(kZone), zone}, {"kubernetes.io/hostname", name}};
    node->status.allocatable = {{"cpu", api::Quantity::of_units(4)}, {"pods", api::Quantity::of_units(110)}};
    nodes.push_back(node);
  }

  void put(const std::string& node, api::Pod pod) {
    pod.spec.node_name = node;
    pods[node].push_back(std::make_shared<const api::Pod>(std::move(pod)));
  }

  /// The loads without these pods.
  std::map<std::string, policy::NodeLoad> loads(Surroundings& around, const std::set<PodPtr>& without) const {
    std::map<std::string, policy::NodeLoad> found;
    for (const auto& node : nodes) found[node->metadata.name].set_node(node);
    for (const auto& [node, there] : pods) {
      for (const PodPtr& pod : there) {
        if (without.contains(pod)) continue;
        found.at(node).add(*pod);
        around.add(node, *pod);
      }
    }
    for (const PodPtr& pod : promised) around.nominate(pod->status.nominated_node_name, pod);
    return found;
  }

  bool takes(const std::string& node, const api::Pod& pod, const std::set<PodPtr>& without) const {
    Surroundings around;
    const auto found = loads(around, without);
    const Survey survey = survey_nodes(pod, found, default_profile(), {}, around);
    return std::ranges::any_of(survey.fitting, [&](const FittingNode& each) { return *each.name == node; });
  }

  Preemption decide(const api::Pod& pod, CandidateShare share = {}, std::size_t first_node = 0) const {
    Surroundings around;
    const auto found = loads(around, {});
    const VolumeFilter volumes;
    Profile profile;
    profile.preemption = share;
    const Placement refused = place_pod(pod, found, default_profile(), volumes, around);
    if (refused.node) return {};
    const PodsOn pods_on = [this](const std::string& node) {
      const auto there = pods.find(node);
      return there == pods.end() ? std::vector<PodPtr>() : there->second;
    };
    return decide_preemption(pod, refused,
                             {.nodes = found,
                              .pods_on = pods_on,
                              .budgets = budgets,
                              .around = around,
                              .volumes = volumes,
                              .profile = profile,
                              .first_node = first_node});
  }
};

std::vector<std::string> names_in(const std::vector<PodPtr>& pods) {
  std::vector<std::string> names;
  for (const PodPtr& pod : pods) names.push_back(pod->metadata.name);
  return names;
}

auto plain_importance(const PodPtr& pod) {
  return std::tuple(-pod->spec.priority.value_or(0), pod->status.start_time.value_or(WallTime::max()),
                    pod->metadata.name);
}

/// The rule as it is written down: all pods of lower priority are removed, and put back one by one if the pod still
/// fits.
std::optional<std::pair<std::vector<std::string>, std::size_t>> plain_victims(const SmallCluster& cluster,
                                                                              const std::string& node,
                                                                              const api::Pod& pod) {
  const auto there = cluster.pods.find(node);
  if (there == cluster.pods.end()) return std::nullopt;
  std::vector<PodPtr> lower;
  for (const PodPtr& other : there->second) {
    if (other->spec.priority < pod.spec.priority) lower.push_back(other);
  }
  std::ranges::sort(lower, {}, plain_importance);
  std::set<PodPtr> away(lower.begin(), lower.end());
  if (lower.empty() || !cluster.takes(node, pod, away)) return std::nullopt;
  std::map<std::string, std::int64_t> left;
  std::set<PodPtr> violating;
  for (const PodPtr& other : lower) {
    const auto budgets = cluster.budgets.find("shop");
    if (budgets == cluster.budgets.end()) break;
    for (const auto& budget : budgets->second) {
      if (!budget->selector.matches(other->metadata.labels)) continue;
      const auto entry = left.try_emplace(budget->metadata.name, budget->status.disruptions_allowed).first;
      if (--entry->second < 0) violating.insert(other);
    }
  }
  std::size_t violations = 0;
  for (const bool now : {true, false}) {
    for (const PodPtr& other : lower) {
      if (violating.contains(other) != now) continue;
      away.erase(other);
      if (cluster.takes(node, pod, away)) continue;
      away.insert(other);
      violations += now ? 1 : 0;
    }
  }
  std::vector<PodPtr> victims(away.begin(), away.end());
  std::ranges::sort(victims, {}, plain_importance);
  return std::pair(names_in(victims), violations);
}

SmallCluster drawn_cluster(Rng& rng) {
  SmallCluster cluster;
  const std::size_t count = 1 + rng.below(4);
  for (std::size_t i = 0; i < count; ++i) cluster.add_node(fmt::format("n{}", i), rng.below(2) == 0 ? "east" : "west");
  const std::size_t pods = 2 + rng.below(9);
  for (std::size_t i = 0; i < pods; ++i) {
    api::Pod pod =
        asking(fmt::format("p{}", i), static_cast<int>(rng.below(3)), static_cast<std::int32_t>(rng.below(4)));
    pod.metadata.labels["app"] = rng.below(2) == 0 ? "web" : "db";
    if (rng.below(3) != 0) {
      pod.status.start_time = WallTime(microseconds(1'000'000 * static_cast<std::int64_t>(rng.below(4))));
    }
    if (rng.below(5) == 0) {
      pod.spec.affinity.make({"podAntiAffinity"})["requiredDuringSchedulingIgnoredDuringExecution"] =
          Json::array({Json::object({{"labelSelector", app_selector("web")},
                                     {"topologyKey", rng.below(2) == 0 ? kZone : "kubernetes.io/hostname"}})});
    }
    cluster.put(fmt::format("n{}", rng.below(count)), std::move(pod));
  }
  if (rng.below(3) == 0) {
    api::Pod other = asking("promised", 2, static_cast<std::int32_t>(rng.below(5)));
    other.status.nominated_node_name = "n0";
    cluster.promised.push_back(std::make_shared<const api::Pod>(std::move(other)));
  }
  for (const std::string_view app : {"web", "db"}) {
    if (rng.below(2) == 0) continue;
    api::PodDisruptionBudget budget;
    budget.metadata.name = app;
    budget.selector = api::label_selector_from_json(&static_cast<const Json&>(app_selector(app))).value();
    budget.status.disruptions_allowed = static_cast<std::int64_t>(rng.below(3));
    cluster.budgets["shop"].push_back(std::make_shared<const api::PodDisruptionBudget>(std::move(budget)));
  }
  return cluster;
}

api::Pod drawn_newcomer(Rng& rng) {
  api::Pod pod = asking("new", 1 + static_cast<int>(rng.below(4)), static_cast<std::int32_t>(rng.below(4)));
  pod.metadata.labels["app"] = "web";
  if (rng.below(3) == 0) {
    pod.spec.topology_spread = Json::array({Json::object({{"labelSelector", app_selector("web")},
                                                          {"topologyKey", kZone},
                                                          {"maxSkew", 1},
                                                          {"whenUnsatisfiable", "DoNotSchedule"}})});
  }
  if (rng.below(3) == 0) {
    pod.spec.affinity.make({"podAntiAffinity"})["requiredDuringSchedulingIgnoredDuringExecution"] =
        Json::array({Json::object({{"labelSelector", app_selector("db")}, {"topologyKey", kZone}})});
  }
  return pod;
}

TEST(Preemption, TakingPodsAwayAndPuttingThemBackEqualsAClusterWithoutThem) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Rng rng(seed);
    const SmallCluster cluster = drawn_cluster(rng);
    const api::Pod pod = drawn_newcomer(rng);
    const Preemption decided = cluster.decide(pod);
    for (const PreemptionCandidate& candidate : decided.candidates) {
      const auto plain = plain_victims(cluster, candidate.node, pod);
      ASSERT_TRUE(plain) << seed;
      ASSERT_THAT(names_in(candidate.victims), ::testing::UnorderedElementsAreArray(plain->first)) << seed;
      ASSERT_TRUE(std::ranges::is_sorted(candidate.victims, {}, [](const PodPtr& victim) {
        return std::pair(-victim->spec.priority.value_or(0), victim->status.start_time.value_or(WallTime::max()));
      })) << seed;
      ASSERT_EQ(candidate.budget_violations, plain->second) << seed;
      ++compared;
    }
    if (decided.message.empty() || decided.not_eligible) continue;
    for (const auto& node : cluster.nodes) {
      ASSERT_FALSE(plain_victims(cluster, node->metadata.name, pod)) << "seed " << seed << " " << node->metadata.name;
    }
  }
  EXPECT_GT(compared, 300U);
}

TEST(Preemption, IsReportedInUpstreamsWords) {
  SmallCluster cluster;
  for (const std::string name : {"a", "b", "c"}) cluster.add_node(name, "east");
  cluster.put("a", asking("old", 4, 0));
  cluster.put("b", asking("low", 1, -5));
  cluster.put("b", asking("other", 3, 5));
  auto cordoned = std::make_shared<api::Node>(*cluster.nodes[2]);
  cordoned->spec.unschedulable = true;
  cluster.nodes[2] = cordoned;
  EXPECT_EQ(cluster.decide(asking("new", 2, 0)).message,
            "preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
            "1 Preemption is not helpful for scheduling.");
  api::Pod patient = asking("new", 2, 10);
  patient.spec.preemption_policy = "Never";
  EXPECT_EQ(cluster.decide(patient).message, "preemption: not eligible due to preemptionPolicy=Never.");
  EXPECT_EQ(SmallCluster().decide(patient).message, "") << "there is no node that could be asked";
}

TEST(Preemption, FindsEnoughCandidatesAndOneThatSparesBudgets) {
  SmallCluster cluster;
  for (int i = 0; i < 6; ++i) {
    const std::string name = fmt::format("n{}", i);
    cluster.add_node(name, "east");
    api::Pod pod = asking("p" + name, 4, 0);
    pod.metadata.labels["app"] = i < 4 ? "web" : "db";
    cluster.put(name, std::move(pod));
  }
  const api::Pod pod = asking("new", 2, 1);
  EXPECT_EQ(cluster.decide(pod, {.percent = 0, .absolute = 2}).candidates.size(), 2U);
  const Preemption later = cluster.decide(pod, {.percent = 0, .absolute = 2}, 5);
  ASSERT_EQ(later.candidates.size(), 2U);
  EXPECT_EQ(later.candidates[0].node, "n5");
  EXPECT_EQ(later.candidates[1].node, "n0") << "it begins anew behind the last";
  api::PodDisruptionBudget budget;
  budget.selector = api::label_selector_from_json(&static_cast<const Json&>(app_selector("web"))).value();
  cluster.budgets["shop"].push_back(std::make_shared<const api::PodDisruptionBudget>(budget));
  const Preemption sparing = cluster.decide(pod, {.percent = 0, .absolute = 2});
  EXPECT_EQ(sparing.candidates.size(), 5U);
  EXPECT_EQ(sparing.choice()->node, "n4");
}

TEST(Preemption, NamesItsVictims) {
  SmallCluster cluster;
  cluster.add_node("a", "east");
  cluster.put("a", asking("old", 4, 3));
  const api::Pod pod = asking("new", 2, 10);
  const Preemption decided = cluster.decide(pod);
  ASSERT_TRUE(decided.chosen);
  const auto victims = victims_of(pod, *decided.choice());
  ASSERT_EQ(victims.size(), 1U);
  EXPECT_EQ(victims[0].subject.text(), "pod shop/old");
  EXPECT_EQ(policy::render(victims[0].reason), "preempted node=a priority=3 for_priority=10");
}

}  // namespace
}  // namespace spillway::scheduling
