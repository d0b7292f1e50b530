// Replacement of pods on failed nodes before their deletion: the mark, the stages, and every small set against what the
// rule says in words.
#include "policy/workloads/replacement_first.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {
namespace {

constexpr WallTime kAsked{hours(1'000)};

api::Pod replica(std::string_view owner_kind = "ReplicaSet", std::string_view api_version = "apps/v1") {
  api::Pod pod;
  pod.metadata.ns = "shop";
  pod.metadata.name = "web-1";
  pod.metadata.owner_references.push_back({.api_version = std::string(api_version),
                                           .kind = std::string(owner_kind),
                                           .name = "web",
                                           .uid = "u",
                                           .controller = true});
  pod.spec.node_name = "n1";
  pod.status.phase = "Running";
  return pod;
}

api::Pod marked(std::string_view time) {
  api::Pod pod = replica();
  pod.metadata.annotations.emplace(std::string(kReplacementAnnotation), std::string(time));
  return pod;
}

std::vector<ReplacedPod> pods_of(std::int64_t count) {
  std::vector<ReplacedPod> pods;
  for (std::int64_t i = 0; i < count; ++i) pods.push_back({0, kAsked, {"shop", fmt::format("web-{}", i)}});
  return pods;
}

TEST(ReplacementFirst, IsForBoundPodsOfReplicaSetsThatStay) {
  EXPECT_TRUE(is_replaceable(replica()));
  for (const char* kind : {"StatefulSet", "DaemonSet", "Job", "ReplicationController", "Node"}) {
    EXPECT_FALSE(is_replaceable(replica(kind))) << kind;
  }
  EXPECT_FALSE(is_replaceable(replica("ReplicaSet", "example.org/v1"))) << "somebody else's kind of that name";
  api::Pod pod = replica();
  pod.metadata.owner_references.front().controller = false;
  EXPECT_FALSE(is_replaceable(pod));
  pod = replica();
  pod.spec.node_name.clear();
  EXPECT_FALSE(is_replaceable(pod));
  pod = replica();
  pod.status.phase = "Failed";
  EXPECT_FALSE(is_replaceable(pod));
  pod = replica();
  pod.metadata.deletion_timestamp = kAsked;
  EXPECT_FALSE(is_replaceable(pod));
}

TEST(ReplacementFirst, TheMarkIsOnThePod) {
  EXPECT_EQ(replacement_asked_at(replica()), std::nullopt);
  EXPECT_EQ(replacement_asked_at(marked("2026-11-26T12:00:00Z")), WallTime(seconds(1'795'694'400)));
  EXPECT_EQ(replacement_asked_at(marked("soon")), WallTime()) << "long ago: nothing waits for it";
  api::Pod pod = marked("2026-11-26T12:00:00Z");
  pod.spec.node_name.clear();
  EXPECT_FALSE(is_being_replaced(pod)) << "a pod without a node has not lost one";
  pod = marked("2026-11-26T12:00:00Z");
  pod.metadata.deletion_timestamp = kAsked;
  EXPECT_FALSE(is_being_replaced(pod)) << "it goes";
}

TEST(ReplacementFirst, CountsThePodsThatStay) {
  ReplicaStanding counts{.wanted = 4};
  api::Pod pod = replica();
  counts.count(pod);
  pod.status.conditions.push_back({.type = "Ready", .status = "True"});
  counts.count(pod);
  pod.spec.node_name.clear();
  counts.count(pod);
  counts.count(marked("2026-11-26T12:00:00Z"));
  pod.metadata.deletion_timestamp = kAsked;
  counts.count(pod);
  EXPECT_EQ(counts, (ReplicaStanding{.wanted = 4, .made = 3, .placed = 2, .ready = 1}));
}

TEST(ReplacementFirst, APodStaysUntilAnotherServes) {
  const auto pods = pods_of(1);
  const api::PodKey& pod = pods.front().pod;
  const auto stage = [&](ReplicaStanding others, Duration since) {
    return stage_of(pod, pods, others, kAsked + std::chrono::duration_cast<std::chrono::microseconds>(since));
  };
  const Duration just_before = kReplacementPatience - milliseconds(1);
  EXPECT_EQ(stage({3, 2, 2, 2}, Duration::zero()), ReplacementStage::kNotMade);
  EXPECT_EQ(stage({3, 2, 2, 2}, just_before), ReplacementStage::kNotMade);
  EXPECT_EQ(stage({3, 2, 2, 2}, kReplacementPatience), ReplacementStage::kMayGo) << "nobody makes one: as upstream";
  EXPECT_EQ(stage({3, 3, 2, 2}, just_before), ReplacementStage::kNotPlaced);
  EXPECT_EQ(stage({3, 3, 2, 2}, hours(24)), ReplacementStage::kNotPlaced) << "it has no place: it stays";
  EXPECT_EQ(stage({3, 3, 3, 2}, just_before), ReplacementStage::kNotReady);
  EXPECT_EQ(stage({3, 3, 3, 2}, kReplacementPatience), ReplacementStage::kMayGo);
  EXPECT_EQ(stage({3, 3, 3, 3}, Duration::zero()), ReplacementStage::kMayGo);
  EXPECT_EQ(stage({0, 0, 0, 0}, Duration::zero()), ReplacementStage::kMayGo) << "scaled down";
  EXPECT_EQ(stage({3, 2, 2, 2}, -seconds(5)), ReplacementStage::kNotMade) << "clocks differ";
  EXPECT_EQ(stage({3, 2, 2, 2}, -hours(5)), ReplacementStage::kMayGo) << "a mark from the future holds nobody";
  EXPECT_EQ(stage_of({"shop", "other"}, pods, {3, 2, 2, 2}, kAsked), ReplacementStage::kMayGo) << "not one of them";
}

TEST(ReplacementFirst, TheHigherPriorityGoesFirstThenTheOneAskedForFirst) {
  const std::vector<ReplacedPod> pods{{0, kAsked, {"shop", "a"}},
                                      {5, kAsked + seconds(9), {"shop", "b"}},
                                      {0, kAsked - seconds(1), {"shop", "c"}},
                                      {0, kAsked, {"shop", "0"}}};
  std::string order;
  for (std::int64_t ready = 0; ready <= 4; ++ready) {
    for (const ReplacedPod& each : pods) {
      const auto stage = stage_of(each.pod, pods, {4, 4, 4, ready}, kAsked);
      if (stage == ReplacementStage::kMayGo && !order.contains(each.pod.name)) order += each.pod.name;
    }
  }
  EXPECT_EQ(order, "bc0a");
}

/// For a set of `wanted`, however many are made, placed and ready: as many go as there are ready ones above the gap,
/// and with patience over as placed ones, and never one whose replacement has no node.
TEST(ReplacementFirst, NeverLeavesFewerThanItCould) {
  for (std::int64_t wanted = 0; wanted <= 4; ++wanted) {
    for (std::int64_t replaced = 1; replaced <= 4; ++replaced) {
      for (std::int64_t made = 0; made <= 5; ++made) {
        for (std::int64_t placed = 0; placed <= made; ++placed) {
          for (std::int64_t ready = 0; ready <= placed; ++ready) {
            const auto pods = pods_of(replaced);
            const ReplicaStanding others{wanted, made, placed, ready};
            const auto staying = [&](WallTime now) {
              return std::ranges::count_if(pods, [&](const ReplacedPod& each) {
                return stage_of(each.pod, pods, others, now) != ReplacementStage::kMayGo;
              });
            };
            const std::string at = fmt::format("{} {} {} {} {}", wanted, replaced, made, placed, ready);
            ASSERT_EQ(staying(kAsked), std::clamp<std::int64_t>(wanted - ready, 0, replaced)) << at;
            const std::int64_t roomless = std::clamp<std::int64_t>(wanted - placed, 0, replaced);
            const std::int64_t unmade = std::clamp<std::int64_t>(wanted - made, 0, replaced);
            ASSERT_EQ(staying(kAsked + minutes(2)), roomless - unmade) << at;
            ASSERT_EQ(unplaced(replaced, others), roomless) << at;
          }
        }
      }
    }
  }
}

TEST(ReplacementFirst, SaysWhatItWaitsFor) {
  EXPECT_EQ(policy::render(reason_of(ReplacementStage::kNotPlaced, {3, 3, 2, 1})),
            "no-replacement replacement=not-placed wanted=3 made=3 placed=2 ready=1");
}

}  // namespace
}  // namespace spillway::workloads
