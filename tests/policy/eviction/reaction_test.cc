// Goal: what acts between two passes picks the pod a pass would pick. Method: all sets of two and three pods that
// differ in what the ranking sees, against rank_for_memory().
#include "policy/eviction/reaction.h"

#include "policy/eviction/ranking.h"
#include "policy/eviction/small_pods.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace spillway::eviction {
namespace {

/// The first of the ranking that may be evicted; "" if none may.
std::string first_of_ranking(const std::vector<PodKind>& kinds) {
  std::vector<api::Pod> pods;
  std::vector<api::PodStats> stats;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    pods.push_back(make_pod(kinds[i], i));
    if (auto measured = make_stats(kinds[i], i)) stats.push_back(std::move(*measured));
  }
  std::vector<const api::Pod*> active;
  for (const api::Pod& pod : pods) active.push_back(&pod);
  for (const UsageRank& rank : rank_for_memory(join_stats(active, stats)))
    if (!api::is_critical(*rank.measured.pod)) return rank.measured.pod->metadata.name;
  return "";
}

std::string first_of_standings(const std::vector<PodKind>& kinds) {
  std::vector<MemoryStanding> standings;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    MemoryStanding& known = standings.emplace_back(memory_standing_of(make_pod(kinds[i], i)));
    known.measured = kinds[i].used_mib.has_value();
    known.working_set_bytes = mebibytes(kinds[i].used_mib.value_or(0)).count();
  }
  const auto first = first_for_memory(standings);
  return first ? make_pod(kinds[*first], *first).metadata.name : "";
}

TEST(FirstForMemory, IsTheFirstOfTheRankingThatMayGo) {
  const std::vector<PodKind> kinds = all_pod_kinds();
  for (const PodKind& a : kinds) {
    for (const PodKind& b : kinds) {
      ASSERT_EQ(first_of_standings({a, b}), first_of_ranking({a, b}));
      for (const PodKind& c : kinds) ASSERT_EQ(first_of_standings({a, b, c}), first_of_ranking({a, b, c}));
    }
  }
}

TEST(FirstForMemory, IsNoPodWithoutPods) {
  EXPECT_EQ(first_for_memory({}), std::nullopt);
}

TEST(MemoryStandingOf, RoundsAFractionOfAByteSoThatAboveStaysAbove) {
  api::Pod pod = make_pod({.used_mib = 1, .request_mib = 0, .priority = 0}, 0);
  pod.spec.containers.front().resources.requests["memory"] = api::parse_quantity("1500m").value();
  EXPECT_EQ(memory_standing_of(pod).request_bytes, 1);
}

Threshold threshold_of(std::string_view amount) {
  return {.signal = Signal::kMemoryAvailable,
          .value = api::parse_quantity(amount).value(),
          .grace_period = {},
          .min_reclaim = api::parse_quantity("10").value()};
}

TEST(CrossedBelow, AgreesWithIsReachedOnBothSides) {
  for (const std::string_view text : {"100", "1.5Ki", "1100m", "1Gi"}) {
    const Threshold threshold = threshold_of(text);
    for (const Reclaim reclaim : {Reclaim::kWithout, Reclaim::kWithMinimum}) {
      const std::int64_t below = crossed_below(threshold, 2'000'000'000, reclaim).value();
      Observations seen;
      seen[Signal::kMemoryAvailable] = {.available = below, .capacity = 2'000'000'000, .time = {}};
      EXPECT_FALSE(is_met(threshold, seen, reclaim)) << text;
      seen[Signal::kMemoryAvailable]->available = below - 1;
      EXPECT_TRUE(is_met(threshold, seen, reclaim)) << text;
    }
  }
}

}  // namespace
}  // namespace spillway::eviction
