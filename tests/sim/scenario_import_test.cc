// A cluster as kubectl prints it becomes machines, objects and pods; what cannot be simulated is named.
#include "sim/scenario/cluster_import.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace spillway::sim {

namespace {

api::Json shop() {
  std::ifstream stream("tests/scenarios/shop.json");
  std::ostringstream text;
  text << stream.rdbuf();
  return *api::parse_json(text.str());
}

std::string reason_for(const Inventory& inventory, const std::string& what) {
  for (const LeftOut& each : inventory.left_out) {
    if (each.what == what) return each.why;
  }
  return {};
}

/// What the one container of a pod is told to use.
std::string memory_of(const Inventory& inventory, std::string_view name) {
  for (const PlacedObject& pod : inventory.pods) {
    if (pod.object.string_at({"metadata", "name"}) != name) continue;
    const api::Json& container = pod.object.at({"spec", "containers"})->if_array()->front();
    return *container.find("command")->if_array()->at(2).if_string();
  }
  return {};
}

TEST(ClusterImport, TakesWhatIsSimulatedAndNamesTheRest) {
  const auto inventory = import_cluster(shop(), {});
  ASSERT_TRUE(inventory) << inventory.error().text();
  ASSERT_EQ(inventory->machines.size(), 3U);
  EXPECT_EQ(inventory->machines[0].memory, gibibytes(8));
  EXPECT_EQ(inventory->machines[2].labels.at("topology.kubernetes.io/zone"), "west");
  EXPECT_EQ(inventory->pods.size(), 4U);
  EXPECT_EQ(inventory->objects.front().collection, "/api/v1/namespaces");
  EXPECT_EQ(inventory->objects.size(), 4U);  // namespace, ReplicaSet, budget, class
  EXPECT_EQ(reason_for(*inventory, "Node b2"), "it is not Ready");
  EXPECT_EQ(reason_for(*inventory, "Pod shop/lost"), "its node is not simulated");
  EXPECT_EQ(reason_for(*inventory, "Pod shop/job"), "it has ended");
  EXPECT_EQ(reason_for(*inventory, "Pod shop/db-0 metadata.ownerReferences"),
            "nobody acts for StatefulSet/shop/db here");
  EXPECT_EQ(reason_for(*inventory, "Deployment shop/web"), "there is no rollout; its ReplicaSets are simulated");
}

TEST(ClusterImport, LoadComesFromProfileThenMeasurementThenRequests) {
  ImportOptions options;
  EXPECT_EQ(memory_of(*import_cluster(shop(), options), "db-0"), std::to_string(mebibytes(300).count()));
  options.measured["shop/db-0"] = mebibytes(77);
  EXPECT_EQ(memory_of(*import_cluster(shop(), options), "db-0"), std::to_string(mebibytes(77).count()));
  options.profile.emplace_back("shop/db-*", mebibytes(5));
  EXPECT_EQ(memory_of(*import_cluster(shop(), options), "db-0"), std::to_string(mebibytes(5).count()));
}

TEST(ClusterImport, RefusesWhatIsNoCluster) {
  EXPECT_FALSE(import_cluster(api::Json::object(), {}));
  EXPECT_FALSE(import_cluster(api::Json::object({{"items", api::Json::array()}}), {}));
}

TEST(ClusterImport, ReadsMeasurements) {
  const auto list = api::parse_json(R"({"items":[{"metadata":{"name":"a","namespace":"x"},
    "containers":[{"usage":{"memory":"10Mi"}},{"usage":{"memory":"5Mi"}}]}]})");
  EXPECT_EQ(measured_memory(*list).at("x/a"), mebibytes(15));
}

}  // namespace

}  // namespace spillway::sim
