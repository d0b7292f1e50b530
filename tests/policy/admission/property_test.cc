// Properties that hold for any pods: more pods never make room, victims are enough and none too many, orders are total.
#include "api/text/quantity.h"
#include "base/rng.h"
#include "policy/admission/arrival.h"
#include "policy/admission/chain.h"
#include "policy/admission/preemption.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>

namespace spillway::admission {
namespace {

constexpr int kRounds = 300;

api::Pod random_pod(Rng& rng, const std::string& name) {
  api::Pod pod;
  pod.metadata = {.name = name, .ns = "default", .uid = "uid-" + name};
  api::Container container{.name = "c"};
  if (rng.below(4) != 0) {
    container.resources.requests["cpu"] = api::Quantity::of_milli(static_cast<std::int64_t>(rng.below(4)) * 250);
    container.resources.requests["memory"] = api::Quantity::of_units(static_cast<std::int64_t>(rng.below(4)) << 28);
  }
  if (rng.below(3) == 0) container.resources.limits = container.resources.requests;
  if (rng.below(6) == 0)
    container.ports.push_back({.container_port = 80, .host_port = 80 + std::int32_t(rng.below(3))});
  pod.spec.containers.push_back(std::move(container));
  if (rng.below(3) != 0) pod.spec.priority = static_cast<std::int32_t>(rng.below(5));
  return pod;
}

std::vector<api::Pod> random_pods(Rng& rng, std::size_t count) {
  std::vector<api::Pod> pods;
  for (std::size_t i = 0; i < count; ++i) pods.push_back(random_pod(rng, fmt::format("p{:02}", i)));
  return pods;
}

std::vector<const api::Pod*> first_of(const std::vector<api::Pod>& pods, std::size_t count) {
  std::vector<const api::Pod*> pointers;
  for (std::size_t i = 0; i < count; ++i) pointers.push_back(&pods[i]);
  return pointers;
}

std::shared_ptr<const api::Node> small_node() {
  api::Node node;
  node.metadata.name = "n";
  node.status.allocatable = {{"cpu", api::Quantity::of_units(4)},
                             {"memory", api::Quantity::of_units(std::int64_t{4} << 30)},
                             {"pods", api::Quantity::of_units(8)}};
  return std::make_shared<const api::Node>(std::move(node));
}

TEST(AdmissionProperty, AnotherPodNeverMakesRoom) {
  Rng rng(1);
  const SysctlAllowlist nothing;
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<api::Pod> pods = random_pods(rng, 10);
    const api::Pod newcomer = random_pod(rng, "new");
    const NodeSituation node{.node = small_node(),
                             .operating_system = "linux",
                             .conditions = {},
                             .sysctls = nothing,
                             .app_armor_error = {},
                             .shutting_down = false,
                             .features = {},
                             .allocate = {},
                             .devices_in_use = {}};
    bool was_refused = false;
    for (std::size_t count = 0; count <= pods.size(); ++count) {
      const bool no = admit_pod(node, newcomer, first_of(pods, count)).refusal.has_value();
      EXPECT_TRUE(no || !was_refused) << "round " << round << " with " << count << " pods";
      was_refused = no;
    }
    refused += was_refused ? 1 : 0;
  }
  EXPECT_GT(refused, kRounds / 2);
}

std::int64_t freed(const api::Pod& pod, const std::string& resource) {
  if (resource == "pods") return 1;
  const auto& requests = pod.spec.containers[0].resources.requests;
  const auto amount = requests.find(resource);
  if (amount == requests.end()) return 0;
  return resource == "cpu" ? amount->second.milli_value() : amount->second.value();
}

bool covers(const std::vector<api::Pod>& pods, const std::vector<std::size_t>& evicted,
            const std::vector<Requirement>& needs) {
  return std::ranges::all_of(needs, [&](const Requirement& need) {
    std::int64_t sum = 0;
    for (const std::size_t each : evicted) sum += freed(pods[each], need.resource);
    return sum >= need.quantity;
  });
}

std::vector<std::size_t> of_class(const std::vector<api::Pod>& pods, const std::vector<std::size_t>& from,
                                  std::initializer_list<api::QosClass> classes) {
  std::vector<std::size_t> found;
  for (const std::size_t each : from) {
    if (std::ranges::find(classes, api::qos_of(pods[each])) != classes.end()) found.push_back(each);
  }
  return found;
}

/// Checks that the victims are enough, and that each class of quality has only as many as the better ones leave over:
/// without the last one chosen of a class something is missing even if all pods of the classes that go first had left.
/// False: no pod could be chosen.
bool check_victims(const std::vector<api::Pod>& pods, const std::vector<Requirement>& needs) {
  using enum api::QosClass;
  std::vector<std::size_t> everybody;
  for (std::size_t i = 0; i < pods.size(); ++i) everybody.push_back(i);
  api::Pod critical;
  critical.spec.priority = 2000000000;
  const Choice choice = choose_victims(critical, first_of(pods, pods.size()), needs);
  EXPECT_EQ(choice.uncovered.empty(), covers(pods, everybody, needs));
  if (!choice.uncovered.empty()) {
    EXPECT_TRUE(choice.victims.empty());
    return false;
  }
  EXPECT_TRUE(covers(pods, choice.victims, needs));
  std::vector<std::size_t> guaranteed = of_class(pods, choice.victims, {kGuaranteed});
  std::vector<std::size_t> burstable = of_class(pods, choice.victims, {kBurstable});
  std::vector<std::size_t> best_effort = of_class(pods, choice.victims, {kBestEffort});
  if (!guaranteed.empty()) {
    guaranteed.pop_back();
    std::vector<std::size_t> rest = of_class(pods, everybody, {kBestEffort, kBurstable});
    rest.insert(rest.end(), guaranteed.begin(), guaranteed.end());
    EXPECT_FALSE(covers(pods, rest, needs));
  }
  if (!burstable.empty()) {
    burstable.pop_back();
    std::vector<std::size_t> rest = of_class(pods, everybody, {kBestEffort});
    for (const auto& more : {burstable, of_class(pods, choice.victims, {kGuaranteed})}) {
      rest.insert(rest.end(), more.begin(), more.end());
    }
    EXPECT_FALSE(covers(pods, rest, needs));
  }
  if (!best_effort.empty()) {
    std::vector<std::size_t> rest = choice.victims;
    std::erase(rest, best_effort.back());
    EXPECT_FALSE(covers(pods, rest, needs));
  }
  return true;
}

TEST(PreemptionProperty, VictimsAreEnoughAndNoneTooMany) {
  Rng rng(2);
  int found = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const std::vector<api::Pod> pods = random_pods(rng, 12);
    const std::vector<Requirement> needs{{"cpu", 250 * (1 + static_cast<std::int64_t>(rng.below(8)))},
                                         {"memory", (1 + static_cast<std::int64_t>(rng.below(8))) << 28}};
    found += check_victims(pods, needs) ? 1 : 0;
  }
  EXPECT_GT(found, kRounds / 4);
}

constexpr std::size_t kKinds = 6;

/// No request; one or two parts of cpu, memory or both; the last two are Guaranteed.
api::Pod pod_of_kind(std::size_t kind, const std::string& name) {
  constexpr std::array<std::pair<int, int>, kKinds> kParts{{{0, 0}, {1, 0}, {0, 2}, {2, 1}, {1, 1}, {2, 2}}};
  api::Pod pod;
  pod.metadata = {.name = name, .ns = "default", .uid = "uid-" + name};
  api::Container container{.name = "c"};
  const auto& [cpu, memory] = kParts[kind];
  if (cpu > 0) container.resources.requests["cpu"] = api::Quantity::of_milli(cpu * 500);
  if (memory > 0) container.resources.requests["memory"] = api::Quantity::of_units(std::int64_t{memory} << 29);
  if (kind >= 4) container.resources.limits = container.resources.requests;
  pod.spec.containers.push_back(std::move(container));
  pod.spec.priority = 0;
  return pod;
}

/// The `number`th of all lists of `count` pods.
std::vector<api::Pod> list_of(std::size_t number, std::size_t count) {
  std::vector<api::Pod> pods;
  for (std::size_t i = 0; i < count; ++i, number /= kKinds) {
    pods.push_back(pod_of_kind(number % kKinds, fmt::format("p{}", i)));
  }
  return pods;
}

TEST(PreemptionProperty, HoldsForEveryListOfFourPods) {
  int found = 0;
  for (std::size_t number = 0; number < kKinds * kKinds * kKinds * kKinds; ++number) {
    SCOPED_TRACE(number);
    const std::vector<api::Pod> pods = list_of(number, 4);
    for (std::int64_t cpu = 0; cpu <= 2; ++cpu) {
      for (std::int64_t memory = 0; memory <= 2; ++memory) {
        std::vector<Requirement> needs;
        if (cpu > 0) needs.push_back({"cpu", cpu * 750});
        if (memory > 0) needs.push_back({"memory", memory << 29});
        found += check_victims(pods, needs) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(found, 5'000);
}

TEST(AdmissionProperty, HoldsForEveryListOfThreePods) {
  const SysctlAllowlist nothing;
  api::Node small;
  small.metadata.name = "n";
  small.status.allocatable = {{"cpu", api::Quantity::of_units(2)},
                              {"memory", api::Quantity::of_units(std::int64_t{2} << 30)},
                              {"pods", api::Quantity::of_units(3)}};
  const NodeSituation node{.node = std::make_shared<const api::Node>(std::move(small)),
                           .operating_system = "linux",
                           .conditions = {},
                           .sysctls = nothing,
                           .app_armor_error = {},
                           .shutting_down = false,
                           .features = {},
                           .allocate = {},
                           .devices_in_use = {}};
  int refused = 0;
  for (std::size_t number = 0; number < kKinds * kKinds * kKinds; ++number) {
    const std::vector<api::Pod> pods = list_of(number, 3);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const api::Pod newcomer = pod_of_kind(kind, "new");
      bool was_refused = false;
      for (std::size_t count = 0; count <= pods.size(); ++count) {
        const bool no = admit_pod(node, newcomer, first_of(pods, count)).refusal.has_value();
        EXPECT_TRUE(no || !was_refused) << number << " of kind " << kind << " with " << count << " pods";
        was_refused = no;
      }
      refused += was_refused ? 1 : 0;
    }
  }
  EXPECT_EQ(refused, 1296) << "three pods are all this node takes";
}

TEST(PreemptionProperty, ReasonsNameEveryVictimAndItsRound) {
  Rng rng(3);
  const std::vector<api::Pod> pods = random_pods(rng, 12);
  const auto pointers = first_of(pods, pods.size());
  api::Pod critical;
  critical.spec.priority = 2000000000;
  const Choice choice = choose_victims(critical, pointers, {{"cpu", 1500}});
  ASSERT_FALSE(choice.victims.empty());
  EXPECT_EQ(choice.rounds.size(), choice.victims.size());
  EXPECT_TRUE(reasons_of(choice).empty());
  for (const Round& round : choice.rounds) {
    const std::vector<policy::Candidate> candidates = candidates_of(round, pointers);
    EXPECT_EQ(candidates.size(), round.distances.size());
    EXPECT_EQ(candidates.front().subject.name, pods[round.chosen].metadata.name);
    EXPECT_EQ(reason_of(round, pointers).facts.back().name, "distance");
    const auto chosen = std::ranges::find(round.distances, round.chosen, &Round::Distance::candidate);
    ASSERT_NE(chosen, round.distances.end());
    for (const Round::Distance& each : round.distances) EXPECT_LE(chosen->distance, each.distance);
  }
}

/// In any order of arrival, pods of different seconds end in the same order, and equal ones keep theirs.
TEST(ArrivalProperty, OrderIsByAgeAndStable) {
  Rng rng(4);
  std::vector<std::shared_ptr<const api::Pod>> pods;
  for (int i = 0; i < 40; ++i) {
    auto pod = std::make_shared<api::Pod>();
    pod->metadata.name = fmt::format("p{:02}", i);
    if (rng.below(4) != 0) {
      pod->metadata.creation_timestamp = WallTime() + seconds(static_cast<std::int64_t>(rng.below(5)));
    }
    pods.push_back(std::move(pod));
  }
  sort_arrivals(pods);
  for (std::size_t i = 1; i < pods.size(); ++i) {
    const auto key = [&](std::size_t at) {
      return std::tie(pods[at]->metadata.creation_timestamp, pods[at]->metadata.name);
    };
    EXPECT_LT(key(i - 1), key(i));
  }
}

}  // namespace
}  // namespace spillway::admission
