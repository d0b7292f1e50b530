// Goal: page cache is given back before a pod is evicted, and no eviction comes later than one reading for it.
#include "agent/eviction/relief_rounds.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace spillway::agent {
namespace {

constexpr std::uint64_t kMi = 1U << 20U;

AgentOptions relief_options(eviction::Relief relief) {
  AgentOptions options = node_options();
  options.eviction.relief = relief;
  return options;
}

/// A node of 1Gi with a threshold of 100Mi, and a pod that has read `active` of files twice.
struct ReliefCluster : ScriptedCluster {
  explicit ReliefCluster(std::uint64_t active_mib, eviction::Relief relief = eviction::Relief::kOn)
      : ScriptedCluster(relief_options(relief)) {
    put(pod_document({.name = "reader"}));
    host.set_working_set("uid-reader", mebibytes(600));
    set_cache(active_mib, 0);
    start();
    run(seconds(2));
    host.set_available(mebibytes(200));
    run(seconds(20));
  }

  void set_cache(std::uint64_t active_mib, std::uint64_t refaulted_mib) {
    host.set_page_cache(
        "uid-reader",
        {.inactive_bytes = 10 * kMi, .active_bytes = active_mib * kMi, .refaulted_bytes = refaulted_mib * kMi});
  }

  /// Memory falls by 2 MiB/s in small steps, so that it would last for the grace of an eviction, to the threshold. Then
  /// the pod has read `active` of files twice, and memory is below it.
  void cross_slowly(std::uint64_t active_mib) {
    Bytes available = mebibytes(105);
    host.set_available(available);
    run(seconds(20));  // long enough for the earlier fall to be forgotten
    while (available > mebibytes(100)) {
      available = available - kibibytes(128);
      host.set_available(available);
      run(milliseconds(62));
    }
    set_cache(active_mib, 0);
    host.set_available(available - kibibytes(128));
  }

  std::size_t evictions() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(journal.entries, [](const JournalEntry& entry) { return entry.eviction.has_value(); }));
  }

  /// The time from now until a pod is evicted, in steps of a millisecond; nullopt: longer than `longest`.
  std::optional<Duration> time_to_eviction(Duration longest) {
    for (Duration waited{}; waited <= longest; waited += milliseconds(1)) {
      if (evictions() > 0) return waited;
      run(milliseconds(1));
    }
    return std::nullopt;
  }
};

TEST(Relief, PrecedesAnEvictionAndIsEnough) {
  ReliefCluster cluster(400);
  cluster.host.set_available(mebibytes(150));
  cluster.run(seconds(3));
  ASSERT_NE(cluster.host.last<RelieveMemory>(), nullptr);
  EXPECT_EQ(cluster.host.last<RelieveMemory>()->pods.front().uid, "uid-reader");
  EXPECT_EQ(cluster.host.count<RelieveMemory>(), 1u) << "memory is no longer near the threshold";
  EXPECT_EQ(cluster.evictions(), 0u);
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  const policy::Decision& decision = cluster.journal.entries.front().decision;
  EXPECT_EQ(decision.action, "relieve");
  EXPECT_EQ(decision.reasons.front().code, policy::ReasonCode::kThresholdNear);
  EXPECT_EQ(decision.reasons.back().code, policy::ReasonCode::kReclaimed);
}

TEST(Relief, IsOffByDefault) {
  ReliefCluster cluster(400, node_options().eviction.relief);
  cluster.host.set_available(mebibytes(150));
  cluster.run(seconds(3));
  EXPECT_EQ(cluster.host.count<RelieveMemory>(), 0u);
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.evictions(), 1u);
}

TEST(Relief, SavesAPodAtTheThreshold) {
  ReliefCluster cluster(16);
  cluster.cross_slowly(400);
  cluster.run(seconds(3));
  EXPECT_GE(cluster.host.count<RelieveMemory>(), 1u);
  EXPECT_EQ(cluster.evictions(), 0u);
}

/// The machine does not answer: the eviction comes after the wait, and the next one does not wait.
TEST(Relief, DelaysAnEvictionByAtMostItsWait) {
  ReliefCluster without(16, eviction::Relief::kOff);
  without.cross_slowly(400);
  const auto usual = without.time_to_eviction(seconds(3));
  ReliefCluster cluster(16);
  cluster.cross_slowly(400);
  cluster.host.set_silent_relief(true);
  const auto delayed = cluster.time_to_eviction(seconds(3));
  ASSERT_TRUE(usual && delayed);
  EXPECT_GT(*delayed, *usual) << "it has waited";
  EXPECT_LE(*delayed, *usual + kReliefWait + milliseconds(20));
}

/// Memory that would not last for a grace is no time to wait.
TEST(Relief, AnEmergencyDoesNotWait) {
  ReliefCluster without(400, eviction::Relief::kOff);
  without.host.set_available(mebibytes(60));
  const auto usual = without.time_to_eviction(seconds(3));
  ReliefCluster cluster(400);
  cluster.host.set_silent_relief(true);
  cluster.host.set_available(mebibytes(60));
  EXPECT_EQ(cluster.time_to_eviction(seconds(3)), usual);
}

TEST(Relief, ALeakIsEvictedAsSoonAsWithoutIt) {
  ReliefCluster without(20, eviction::Relief::kOff);
  without.host.set_available(mebibytes(60));
  const auto usual = without.time_to_eviction(seconds(3));
  ReliefCluster with(20);
  with.host.set_available(mebibytes(60));
  const auto relieved = with.time_to_eviction(seconds(3));
  ASSERT_TRUE(usual && relieved);
  EXPECT_EQ(*usual, *relieved) << "twenty mebibytes of page cache cannot end the shortage";
}

TEST(Relief, SparesAPodThatReadsItAllAgain) {
  ReliefCluster cluster(400);
  for (std::uint64_t round = 0; round < 20; ++round) {
    cluster.host.set_available(mebibytes(150));
    cluster.set_cache(400, round * 100);
    cluster.run(seconds(1));
  }
  EXPECT_LE(cluster.host.count<RelieveMemory>(), 2u);
  EXPECT_GE(cluster.host.count<RelieveMemory>(), 1u);
  EXPECT_EQ(cluster.evictions(), 0u);
}

}  // namespace
}  // namespace spillway::agent
