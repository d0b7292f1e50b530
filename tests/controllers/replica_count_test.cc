// Counts that follow the changes of pods equal a count of all pods.
#include "controllers/workloads/replica_count.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace spillway::controllers {
namespace {

api::ReplicaSet web() {
  api::ReplicaSet set;
  set.selector = api::parse_label_selector("app=web").value();
  set.pod_template.labels = {{"app", "web"}, {"tier", "front"}};
  return set;
}

api::Pod random_pod(Rng& rng) {
  api::Pod pod;
  if (rng.below(4) != 0) pod.metadata.labels["app"] = "web";
  if (rng.below(2) == 0) pod.metadata.labels["tier"] = "front";
  if (rng.below(4) == 0) pod.metadata.deletion_timestamp = WallTime{};
  pod.status.phase = rng.below(4) == 0 ? "Failed" : "Running";
  if (rng.below(2) == 0) pod.status.conditions.push_back({.type = "Ready", .status = "True"});
  return pod;
}

auto figures(const ReplicaCount& count) {
  const api::ReplicaSetStatus& active = count.active();
  return std::tuple(count.selected(), count.strangers(), active.replicas, active.fully_labeled_replicas,
                    active.ready_replicas, active.available_replicas);
}

TEST(ReplicaCount, FollowsChangesAsACountOfAllWould) {
  const api::ReplicaSet set = web();
  Rng rng(1);
  ReplicaCount kept(set);
  std::vector<api::Pod> pods;
  for (int step = 0; step < 2000; ++step) {
    const std::uint64_t what = pods.empty() ? 0 : rng.below(3);  // a pod is added, removed or changed
    if (what == 0) {
      pods.push_back(random_pod(rng));
      kept.add(pods.back());
    } else {
      const auto chosen = pods.begin() + static_cast<std::ptrdiff_t>(rng.below(pods.size()));
      kept.remove(*chosen);
      if (what == 1) {
        pods.erase(chosen);
      } else {
        *chosen = random_pod(rng);
        kept.add(*chosen);
      }
    }
    ReplicaCount anew(set);
    for (const api::Pod& pod : pods) anew.add(pod);
    ASSERT_EQ(figures(kept), figures(anew)) << "step " << step;
  }
}

TEST(ReplicaCount, CountsEachKindOfPod) {
  const api::ReplicaSet set = web();
  ReplicaCount count(set);
  api::Pod pod;
  pod.status.phase = "Running";
  count.add(pod);  // a stranger
  pod.metadata.labels = {{"app", "web"}};
  pod.status.conditions.push_back({.type = "Ready", .status = "True"});
  count.add(pod);  // active and ready, not with all labels
  pod.metadata.labels["tier"] = "front";
  pod.status.phase = "Succeeded";
  count.add(pod);  // ended
  EXPECT_EQ(figures(count), std::tuple(2, 1, 1, 0, 1, 1));
}

TEST(ReplicaCount, FitsUntilTheSetCountsOtherwise) {
  api::ReplicaSet set = web();
  const ReplicaCount count(set);
  set.replicas = 7;
  EXPECT_TRUE(count.fits(set));
  set.pod_template.labels["tier"] = "back";
  EXPECT_FALSE(count.fits(set));
}

}  // namespace
}  // namespace spillway::controllers
