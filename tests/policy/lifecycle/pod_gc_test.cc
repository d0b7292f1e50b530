#include "policy/lifecycle/pod_gc.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

namespace spillway::lifecycle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PodGcRule : public ::testing::Test {
 protected:
  api::Pod& add(const std::string& name, const std::string& node, std::string_view phase = "Running") {
    api::Pod& pod = pods_.emplace_back();
    pod.metadata.ns = "default";
    pod.metadata.name = name;
    pod.spec.node_name = node;
    pod.status.phase = phase;
    return pod;
  }

  void add_node(const std::string& name, std::string_view ready, bool out_of_service = false) {
    api::Node& node = nodes_[name];
    node.metadata.name = name;
    node.status.conditions.push_back({.type = "Ready", .status = std::string(ready)});
    if (out_of_service) node.spec.taints.push_back({std::string(kTaintOutOfService), "", "NoExecute", {}});
  }

  /// Ended long ago, the smaller `second` the longer.
  api::Pod& finish(const std::string& name, const std::string& owner, std::int64_t second, std::string_view reason) {
    api::Pod& pod = add(name, "n1", "Failed");
    pod.metadata.creation_timestamp = WallTime(seconds(second));
    pod.status.reason = reason;
    if (!owner.empty()) pod.metadata.owner_references = {{"apps/v1", "ReplicaSet", owner, owner + "-uid", true, true}};
    return pod;
  }

  std::vector<std::string> collect(std::int64_t threshold = 12500, FinishedOrder order = FinishedOrder::kEvictedFirst) {
    std::vector<const api::Pod*> pointers;
    for (const api::Pod& pod : pods_) pointers.push_back(&pod);
    const PodGcView view{pointers,
                         [this](std::string_view name) {
                           const auto node = nodes_.find(std::string(name));
                           return node == nodes_.end() ? nullptr : &node->second;
                         },
                         gone};
    missing = missing_nodes(view);
    std::vector<std::string> result;
    for (const PodToCollect& each : pods_to_collect(view, {threshold, order})) {
      result.push_back(fmt::format("{} {}", each.pod->metadata.name, to_string(each.reason)));
    }
    return result;
  }

  std::set<std::string, std::less<>> gone;
  std::set<std::string, std::less<>> missing;

 private:
  std::deque<api::Pod> pods_;
  std::map<std::string, api::Node> nodes_;
};

TEST_F(PodGcRule, OrphansGoOnceTheNodeIsKnownToBeGone) {
  add_node("n1", "True");
  add("a", "n1");
  add("b", "n2");
  EXPECT_THAT(collect(), IsEmpty());
  EXPECT_THAT(missing, ElementsAre("n2"));
  gone.insert("n2");
  EXPECT_THAT(collect(), ElementsAre("b orphaned"));
}

TEST_F(PodGcRule, TerminatingPodsAreDeletedWhereNoKubeletFinishesThem) {
  add_node("sick", "Unknown", true);
  add_node("odd", "True", true);
  add_node("dead", "Unknown");
  for (const char* node : {"sick", "odd", "dead", ""}) {
    add(fmt::format("stays-{}", node), node);
    add(fmt::format("leaves-{}", node), node).metadata.deletion_timestamp = WallTime(seconds(5));
  }
  EXPECT_THAT(collect(), ElementsAre("leaves- unscheduled", "leaves-sick out-of-service"));
}

TEST_F(PodGcRule, FinishedPodsBeyondTheThresholdGoEvictedFirstThenOldest) {
  add_node("n1", "True");
  add("young", "n1", "Succeeded").metadata.creation_timestamp = WallTime(seconds(30));
  add("old", "n1", "Failed").metadata.creation_timestamp = WallTime(seconds(10));
  api::Pod& evicted = add("evicted", "n1", "Failed");
  evicted.metadata.creation_timestamp = WallTime(seconds(40));
  evicted.status.reason = "Evicted";
  add("alive", "n1");
  EXPECT_THAT(collect(3), IsEmpty());
  EXPECT_THAT(collect(2), ElementsAre("evicted terminated"));
  EXPECT_THAT(collect(1), ElementsAre("evicted terminated", "old terminated"));
  EXPECT_THAT(collect(0), IsEmpty());
}

TEST_F(PodGcRule, FairlyTheOldestOfTheOwnerWithMostGoFirst) {
  for (int second = 10; second < 16; ++second) finish(fmt::format("loud-{}", second), "loud", second, "Evicted");
  finish("quiet-1", "quiet", 1, "Evicted");
  finish("quiet-2", "quiet", 2, "");
  finish("own-3", "", 3, "Evicted");
  EXPECT_THAT(collect(9, FinishedOrder::kFair), IsEmpty());
  EXPECT_THAT(collect(7, FinishedOrder::kFair), ElementsAre("loud-10 terminated", "loud-11 terminated"));
  EXPECT_THAT(collect(3, FinishedOrder::kFair),
              ElementsAre("loud-10 terminated", "loud-11 terminated", "loud-12 terminated", "loud-13 terminated",
                          "quiet-1 terminated", "loud-14 terminated"));
  EXPECT_THAT(collect(0, FinishedOrder::kFair), IsEmpty());
}

TEST_F(PodGcRule, FairlyNoOwnerLosesMoreThanOneThatHasMore) {
  std::map<std::string, int> had;
  const auto owner_of = [](const std::string& name) { return name.substr(0, 1); };
  for (int pod = 0; pod < 60; ++pod) {
    const std::string owner(1, static_cast<char>('a' + pod * pod % 7));
    finish(fmt::format("{}-{:02}", owner, pod), owner, 100 - pod, "Evicted");
    ++had[owner];
  }
  for (int threshold = 1; threshold <= 60; ++threshold) {
    std::map<std::string, int> kept = had;
    for (const std::string& name : collect(threshold, FinishedOrder::kFair)) --kept[owner_of(name)];
    int sum = 0;
    int most = 0;
    for (const auto& [owner, pods] : kept) {
      sum += pods;
      most = std::max(most, pods);
    }
    EXPECT_EQ(sum, threshold);
    for (const auto& [owner, pods] : kept)
      EXPECT_TRUE(pods == had[owner] || pods >= most - 1) << owner << " at " << threshold;
  }
}

TEST_F(PodGcRule, APodIsCollectedForOneReason) {
  add("x", "n9", "Failed").metadata.deletion_timestamp = WallTime(seconds(5));
  add("y", "n9", "Failed");
  gone.insert("n9");
  EXPECT_THAT(collect(1), ElementsAre("x terminated", "y orphaned"));
}

}  // namespace
}  // namespace spillway::lifecycle
