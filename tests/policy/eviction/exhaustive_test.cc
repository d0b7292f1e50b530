// Goal: the victim is the one that the specification says, whatever the pods and however they are listed. Method: every
// multiset of two to four pods that differ in class, priority, request and usage, for memory, disk, inodes and
// processes, beside the specification's table written down once more as tuples.
// Source: spec "Eviction manager", 7 and 8.
#include "policy/eviction/decide.h"
#include "policy/eviction/small_pods.h"
#include "policy/eviction/threshold_parse.h"
#include "policy/eviction/whole_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <numeric>
#include <tuple>
#include <vector>

namespace spillway::eviction {
namespace {

constexpr std::size_t kPodsMax = 4;
constexpr std::array kActing{Signal::kMemoryAvailable, Signal::kNodeFsAvailable, Signal::kNodeFsInodesFree,
                             Signal::kPidAvailable};

/// Guaranteed and burstable with a request, burstable and best-effort without one; no usage known, below and above the
/// request; ordinary, higher and critical.
struct Kind {
  api::QosClass qos = api::QosClass::kBestEffort;
  PodKind seen;
};

std::vector<Kind> all_kinds(std::initializer_list<std::int32_t> priorities) {
  std::vector<Kind> kinds;
  for (const auto& [qos, request] :
       {std::pair(api::QosClass::kGuaranteed, 100), std::pair(api::QosClass::kBurstable, 100),
        std::pair(api::QosClass::kBurstable, 0), std::pair(api::QosClass::kBestEffort, 0)}) {
    for (const std::int32_t priority : priorities) {
      for (const auto& used :
           {std::optional<std::int64_t>(), std::optional<std::int64_t>(50), std::optional<std::int64_t>(150)}) {
        kinds.push_back({qos, {.used_mib = used, .request_mib = request, .priority = priority}});
      }
    }
  }
  return kinds;
}

api::Pod pod_of(const Kind& kind, std::size_t number) {
  api::Pod pod = make_pod(kind.seen, number);
  api::ResourceRequirements& resources = pod.spec.containers.front().resources;
  if (kind.seen.request_mib > 0)
    resources.requests["ephemeral-storage"] = api::Quantity::of_bytes(mebibytes(kind.seen.request_mib));
  if (kind.qos != api::QosClass::kBestEffort) resources.requests["cpu"] = api::Quantity::of_units(1);
  if (kind.qos == api::QosClass::kGuaranteed) resources.limits = resources.requests;
  return pod;
}

std::optional<api::PodStats> stats_of(const Kind& kind, std::size_t number) {
  std::optional<api::PodStats> stats = make_stats(kind.seen, number);
  if (!stats) return stats;
  const auto used = static_cast<std::uint64_t>(mebibytes(*kind.seen.used_mib).count());
  api::FsStats& rootfs = stats->containers.emplace_back().rootfs.emplace();
  rootfs.used_bytes = used;
  rootfs.inodes_used = used;
  stats->process_count = static_cast<std::uint64_t>(*kind.seen.used_mib);
  return stats;
}

/// Every kind under every name it can have in a set.
class Population {
 public:
  explicit Population(std::initializer_list<std::int32_t> priorities) : kinds_(all_kinds(priorities)) {
    for (const Kind& kind : kinds_) {
      for (std::size_t i = 0; i < kPodsMax; ++i) {
        pods_.push_back(pod_of(kind, i));
        stats_.push_back(stats_of(kind, i));
      }
    }
  }

  std::size_t size() const { return kinds_.size(); }

  const Kind& kind(std::size_t number) const { return kinds_[number]; }

  MeasuredPod measured(std::size_t kind, std::size_t name) const {
    const auto& stats = stats_[kind * kPodsMax + name];
    return {&pods_[kind * kPodsMax + name], stats ? &*stats : nullptr};
  }

 private:
  std::vector<Kind> kinds_;
  std::vector<api::Pod> pods_;
  std::vector<std::optional<api::PodStats>> stats_;
};

/// The sort keys of the specification, smallest first; the position of the name comes last.
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::size_t>;

Key key_of(Signal signal, const Kind& kind, std::size_t name) {
  const bool missing = !kind.seen.used_mib;
  const std::int64_t used = kind.seen.used_mib.value_or(0);
  if (signal == Signal::kPidAvailable) return {kind.seen.priority, missing ? 0 : 1, -used, 0, name};
  const bool exceeds = signal == Signal::kNodeFsInodesFree ? used > 0 : used > kind.seen.request_mib;
  return {missing ? 0 : 1, exceeds ? 0 : 1, kind.seen.priority, missing ? 0 : -(used - kind.seen.request_mib), name};
}

std::vector<const api::Pod*> ranked(Signal signal, std::span<const MeasuredPod> pods) {
  std::vector<const api::Pod*> order;
  const auto append = [&](const auto& ranks) {
    for (const auto& rank : ranks) order.push_back(rank.measured.pod);
  };
  if (signal == Signal::kMemoryAvailable) {
    append(rank_for_memory(pods));
  } else if (signal == Signal::kPidAvailable) {
    append(rank_for_pids(pods));
  } else {
    append(rank_for_disk(pods, disk_parts(signal, {}),
                         signal == Signal::kNodeFsAvailable ? DiskResource::kBytes : DiskResource::kInodes));
  }
  return order;
}

/// The order by the specification, as places in the set.
std::vector<std::size_t> wanted(Signal signal, const Population& all, const std::vector<std::size_t>& set) {
  std::vector<std::size_t> order(set.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t place) { return key_of(signal, all.kind(set[place]), place); });
  return order;
}

TEST(Exhaustive, TheRankingIsTheSpecificationsInEveryOrderOfTheList) {
  const Population all({0, 10});  // criticality does not show in the order
  std::size_t rankings = 0;
  for_each_set(all.size(), kPodsMax, [&](const std::vector<std::size_t>& set) {
    for (const Signal signal : kActing) {
      const std::vector<std::size_t> want = wanted(signal, all, set);
      std::vector<std::size_t> places(set.size());
      std::iota(places.begin(), places.end(), std::size_t{0});
      // Sets of four are too many for all of their permutations: they come in one that differs from set to set.
      if (set.size() == kPodsMax) {
        for (std::size_t i = rankings % 24; i > 0; --i) std::ranges::next_permutation(places);
      }
      do {
        ++rankings;
        std::vector<MeasuredPod> pods;
        for (const std::size_t place : places) pods.push_back(all.measured(set[place], place));
        const std::vector<const api::Pod*> got = ranked(signal, pods);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
          ASSERT_EQ(got[i], all.measured(set[want[i]], want[i]).pod) << to_string(signal) << " at place " << i;
        }
      } while (set.size() < kPodsMax && std::ranges::next_permutation(places).found);
    }
  });
  EXPECT_GT(rankings, 100'000u);
}

constexpr WallTime kAt = WallTime(seconds(1'700'000'000));

/// A node that is short of every resource with a threshold.
api::Summary scarce_node() {
  api::Summary summary = node_with(50, kAt);
  api::FsStats& fs = summary.node.fs.emplace();
  fs.time = kAt;
  fs.available_bytes = 1;
  fs.capacity_bytes = 1000;
  fs.inodes_free = 1;
  fs.inodes = 1000;
  summary.node.rlimit = api::RlimitStats{kAt, 1000, 999};
  return summary;
}

TEST(Exhaustive, TheVictimIsTheFirstThatIsNotCriticalAndTheSameEveryTime) {
  const Population all({0, 10, 2'000'000'000});
  std::size_t decisions = 0;
  for (const Signal signal : kActing) {
    const std::string text(to_string(signal));
    const PassConfig config{.thresholds = parse_thresholds({.hard = {{text, "100"}}}).value(), .node = "n1"};
    PassState state;
    adopt_layout(config, {}, state);
    PassConfig memory = config;
    if (signal == Signal::kMemoryAvailable) {
      memory.thresholds = parse_thresholds({.hard = {{text, "100Mi"}}}).value();
      adopt_layout(memory, {}, state);
    }
    for_each_set(all.size(), 3, [&](const std::vector<std::size_t>& set) {
      api::Summary summary = scarce_node();
      std::vector<const api::Pod*> active;
      for (std::size_t i = 0; i < set.size(); ++i) {
        const MeasuredPod pod = all.measured(set[i], i);
        active.push_back(pod.pod);
        if (pod.stats != nullptr) summary.pods.push_back(*pod.stats);
      }
      const Now now{Instant(hours(1)), kAt};
      const PassResult result = run_whole_pass(memory, state, summary, active, now);
      std::ranges::reverse(active);
      std::ranges::reverse(summary.pods);
      const PassResult again = run_whole_pass(memory, state, summary, active, now);
      ++decisions;
      ASSERT_EQ(result.actions, again.actions);
      ASSERT_EQ(result.decision, again.decision);
      const std::vector<std::size_t> order = wanted(signal, all, set);
      const auto victim =
          std::ranges::find_if(order, [&](std::size_t place) { return !all.kind(set[place]).seen.critical(); });
      ASSERT_EQ(result.actions.size(), victim == order.end() ? 0u : 1u);
      if (victim == order.end()) return;
      ASSERT_EQ(result.actions.front().uid, fmt::format("uid-{}", *victim)) << to_string(signal);
      ASSERT_EQ(result.actions.front().metric_label, text);
    });
  }
  EXPECT_GT(decisions, 30'000u);
}

}  // namespace
}  // namespace spillway::eviction
