// Goal: the order of eviction is total whatever the pods. Method: every triple of pods that differ in what the ranking
// sees, each with its own name.
#include "policy/eviction/ranking.h"

#include "policy/eviction/small_pods.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::eviction {
namespace {

struct Population {
  explicit Population(const std::vector<PodKind>& kinds) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      pods.push_back(make_pod(kinds[i], i));
      if (auto measured = make_stats(kinds[i], i)) stats.push_back(std::move(*measured));
    }
    for (const api::Pod& pod : pods) active.push_back(&pod);
  }

  std::vector<api::Pod> pods;
  std::vector<api::PodStats> stats;
  std::vector<const api::Pod*> active;
};

template <typename Rank>
void expect_total_order(const std::vector<Rank>& ranks) {
  for (const Rank& a : ranks) {
    for (const Rank& b : ranks) {
      const bool same = a.measured.pod == b.measured.pod;
      ASSERT_EQ((a <=> b) == 0, same) << a.measured.pod->metadata.name << " and " << b.measured.pod->metadata.name;
      ASSERT_EQ(a<b, b> a);
      for (const Rank& c : ranks) {
        ASSERT_TRUE(!(a < b && b < c) || a < c);
      }
    }
  }
}

TEST(RankMemory, IsAStrictTotalOrderOfAllPods) {
  const Population population(all_pod_kinds());
  expect_total_order(rank_for_memory(join_stats(population.active, population.stats)));
}

TEST(RankPids, IsAStrictTotalOrderOfAllPods) {
  Population population(all_pod_kinds());
  for (std::size_t i = 0; i < population.stats.size(); ++i) population.stats[i].process_count = i % 3;
  expect_total_order(rank_for_pids(join_stats(population.active, population.stats)));
}

TEST(RankDisk, IsAStrictTotalOrderOfAllPods) {
  Population population(all_pod_kinds());
  for (std::size_t i = 0; i < population.stats.size(); ++i) {
    api::ContainerStats& container = population.stats[i].containers.emplace_back();
    container.name = "c";
    container.rootfs.emplace().used_bytes = i % 4;
  }
  const auto measured = join_stats(population.active, population.stats);
  expect_total_order(rank_for_disk(measured, disk_parts(Signal::kNodeFsAvailable, {}), DiskResource::kBytes));
}

TEST(RankMemory, DoesNotDependOnTheOrderOfItsInput) {
  const Population population(all_pod_kinds());
  const std::vector<MeasuredPod> measured = join_stats(population.active, population.stats);
  const auto names = [](const std::vector<UsageRank>& ranks) {
    std::vector<std::string> all;
    for (const UsageRank& rank : ranks) all.push_back(rank.measured.pod->metadata.name);
    return all;
  };
  const std::vector<std::string> want = names(rank_for_memory(measured));
  std::vector<MeasuredPod> turned = measured;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::ranges::rotate(turned, turned.begin() + 1);
    EXPECT_EQ(names(rank_for_memory(turned)), want);
    std::ranges::reverse(turned);
    EXPECT_EQ(names(rank_for_memory(turned)), want);
  }
}

TEST(RankMemory, PutsTheUnmeasuredFirstThenThoseAboveTheirRequest) {
  const Population population({{.used_mib = 50, .request_mib = 100, .priority = 0},
                               {.used_mib = 150, .request_mib = 100, .priority = 10},
                               {.used_mib = {}, .request_mib = 100, .priority = 10}});
  const std::vector<UsageRank> ranks = rank_for_memory(join_stats(population.active, population.stats));
  EXPECT_EQ(ranks[0].measured.pod->metadata.name, "pod-2");
  EXPECT_EQ(ranks[1].measured.pod->metadata.name, "pod-1");
  EXPECT_EQ(ranks[2].measured.pod->metadata.name, "pod-0");
  EXPECT_EQ(ranks[2].above_request, -api::Quantity::of_bytes(mebibytes(50)));
}

TEST(JoinStats, TakesTheLaterOfTwoEntriesOfOneUid) {
  Population population({{.used_mib = 50, .request_mib = 0, .priority = 0}});
  population.stats.push_back(population.stats.front());
  population.stats.back().process_count = 7;
  const std::vector<MeasuredPod> joined = join_stats(population.active, population.stats);
  ASSERT_NE(joined.front().stats, nullptr);
  EXPECT_EQ(joined.front().stats->process_count, 7u);
}

}  // namespace
}  // namespace spillway::eviction
