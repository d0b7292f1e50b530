// Workloads beside many objects without a controller: what a step of a controller compares is bounded, and nothing is
// left out.
#include "controllers/shared/sync_slice.h"

#include "controllers/controller_set.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace spillway::controllers {
namespace {

using api::Json;

TEST(SyncSlices, EndAfterSoManyComparisonsAndOneSyncBeyond) {
  SyncSlice slice;
  int syncs = 0;
  for (; slice.has_room(); ++syncs) slice.add(999);
  EXPECT_EQ(syncs, 20);
  SyncSlice of_one;
  of_one.add(1'000'000);
  EXPECT_FALSE(of_one.has_room());
}

TEST(SyncSlices, AWorkloadCountsEvenWithoutOrphans) {
  SyncSlice slice;
  std::size_t syncs = 0;
  for (; slice.has_room(); ++syncs) slice.add(0);
  EXPECT_EQ(syncs, SyncSlice::kObjectsMax);
}

TEST(SyncSlices, TheNamespaceOfAKey) {
  EXPECT_EQ(namespace_of("shop/cart"), "shop");
}

/// 30 ReplicaSets beside 800 pods that no controller has are 24,000 comparisons: more than one step makes.
TEST(SyncSlices, TheRestIsSyncedInTheNextSteps) {
  constexpr int kSets = 30;
  constexpr int kOrphans = 800;
  telemetry::Registry metrics;
  TestCluster cluster;
  for (int i = 0; i < kOrphans; ++i) {
    cluster.create("/api/v1/namespaces/default/pods",
                   api::parse_json(fmt::format(R"({{"metadata":{{"name":"p{}","labels":{{"app":"none"}}}},)"
                                               R"("spec":{{"containers":[{{"name":"c","image":"i"}}]}}}})",
                                               i))
                       .value());
  }
  const std::string sets = "/apis/apps/v1/namespaces/default/replicasets";
  for (int i = 0; i < kSets; ++i) {
    cluster.create(sets,
                   api::parse_json(
                       fmt::format(R"({{"metadata":{{"name":"s{0}"}},"spec":{{"replicas":0,"selector":{{"matchLabels":)"
                                   R"({{"app":"s{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"s{0}"}}}},)"
                                   R"("spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}})",
                                   i))
                       .value());
  }
  ControllerSet set({}, Rng(3), telemetry::Log(), metrics);
  cluster.run(set);
  cluster.advance(seconds(5));
  for (const Json& each : cluster.list(sets)) {
    const Json* seen = each.at({"status", "observedGeneration"});
    EXPECT_TRUE(seen != nullptr && seen->if_int64() == 1) << each.string_at({"metadata", "name"});
  }
  cluster.stop(set);
}

}  // namespace
}  // namespace spillway::controllers
