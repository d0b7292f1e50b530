// A cluster as kubectl prints it becomes machines, objects and pods; what cannot be simulated is named.
#include "sim/scenario/cluster_import.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

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

/// The memory that the command of a pod's one container names.
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
            "no controller acts for StatefulSet/shop/db here");
  EXPECT_EQ(reason_for(*inventory, "Deployment shop/web"), "it has no template");
}

/// Two revisions of one Deployment as kubectl prints them, a pod of the present one that uses more than it requests.
api::Json rolled_shop() {
  const auto workload = [](std::string kind, std::string name, int replicas, const std::string& image,
                           const std::string& hash) {
    const std::string labels =
        hash.empty() ? R"({"app":"web"})" : R"({"app":"web","pod-template-hash":")" + hash + "\"}";
    return R"({"apiVersion":"apps/v1","kind":")" + kind + R"(","metadata":{"name":")" + name +
           R"(","namespace":"shop","labels":)" + labels + R"(,"annotations":{"deployment.kubernetes.io/revision":")" +
           (hash == "a" ? "1" : "2") + "\"}" +
           (hash.empty() ? ""
                         : R"(,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web",)"
                           R"("uid":"u","controller":true}])") +
           R"(},"spec":{"replicas":)" + std::to_string(replicas) + R"(,"selector":{"matchLabels":)" + labels +
           R"(},"template":{"metadata":{"labels":)" + labels + R"(},"spec":{"containers":[{"name":"main","image":")" +
           image + R"(","resources":{"requests":{"memory":"20Mi"}}}]}}}})";
  };
  std::string items;
  for (const std::string name : {"n0", "n1"}) {
    items += R"({"kind":"Node","metadata":{"name":")" + name +
             R"("},"status":{"capacity":{"memory":"4Gi","cpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}},)";
  }
  items += workload("Deployment", "web", 2, "web:2", "") + ",";
  items += workload("ReplicaSet", "web-a", 0, "web:1", "a") + ",";
  items += workload("ReplicaSet", "web-b", 2, "web:2", "b");
  for (const std::string name : {"web-b-1", "web-b-2"}) {
    items += R"(,{"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
             R"(","namespace":"shop","labels":{"app":"web","pod-template-hash":"b"},"ownerReferences":[{"apiVersion":)"
             R"("apps/v1","kind":"ReplicaSet","name":"web-b","uid":"v","controller":true}]},"spec":{"nodeName":"n0",)"
             R"("containers":[{"name":"main","image":"web:2","resources":{"requests":{"memory":"20Mi"}}}]},)"
             R"("status":{"phase":"Running"}})";
  }
  return *api::parse_json("{\"items\":[" + items + "]}");
}

std::string memory_of_template(const PlacedObject& placed) {
  const api::Json& container = placed.object.at({"spec", "template", "spec", "containers"})->if_array()->front();
  return *container.find("command")->if_array()->at(2).if_string();
}

TEST(ClusterImport, DeploymentsFollowTheirReplicaSetsAndUseTheSame) {
  ImportOptions options;
  options.measured["shop/web-b-1"] = mebibytes(33);
  const auto inventory = import_cluster(rolled_shop(), options);
  ASSERT_TRUE(inventory) << inventory.error().text();
  ASSERT_EQ(inventory->objects.size(), 4U);  // namespace, two ReplicaSets, Deployment
  EXPECT_EQ(inventory->objects[3].collection, "/apis/apps/v1/namespaces/shop/deployments");
  for (const std::size_t i : {1U, 2U, 3U}) {
    EXPECT_EQ(memory_of_template(inventory->objects[i]), std::to_string(mebibytes(33).count())) << i;
  }
  EXPECT_EQ(inventory->objects[1].object.string_at({"metadata", "annotations", "deployment.kubernetes.io/revision"}),
            "1");
  EXPECT_TRUE(inventory->left_out.empty());
}

/// Custom kinds that have the names of workloads, and a pod of one of them, beside the workload of that name.
TEST(ClusterImport, CustomKindsAreNoWorkloads) {
  api::Json list = rolled_shop();
  api::Json::Array& items = *list.find("items")->if_array();
  const auto copy_of = [&](std::size_t number, std::string_view name) {
    api::Json copy = items[number];
    copy.make({"metadata", "name"}) = name;
    return copy;
  };
  api::Json custom = copy_of(4, "web-b");
  custom["apiVersion"] = "example.com/v1";
  api::Json pod = copy_of(5, "custom-1");
  pod.make({"metadata", "ownerReferences"}).if_array()->front()["apiVersion"] = "example.com/v1";
  pod.make({"spec", "containers"}).if_array()->front().make({"resources", "requests", "memory"}) = "99Mi";
  items.push_back(std::move(custom));
  items.push_back(std::move(pod));
  const auto inventory = import_cluster(list, {});
  ASSERT_TRUE(inventory) << inventory.error().text();
  ASSERT_EQ(inventory->objects.size(), 4U) << "namespace, two ReplicaSets, Deployment";
  EXPECT_EQ(memory_of_template(inventory->objects[2]), std::to_string(mebibytes(20).count()))
      << "the custom kind's pod says nothing about the ReplicaSet's";
  EXPECT_EQ(reason_for(*inventory, "ReplicaSet shop/web-b"), "objects of this kind are not simulated");
  EXPECT_EQ(reason_for(*inventory, "Pod shop/custom-1 metadata.ownerReferences"),
            "no controller acts for ReplicaSet.example.com/shop/web-b here");
}

/// Nothing is rolled by the import itself; a rollout, and an undo, then are.
TEST(ClusterImport, DeploymentsRollWhatTheyOwned) {
  const auto read = [](const std::string&) -> Result<std::string> { return api::to_text(rolled_shop()); };
  const auto replaced = [&read](const std::string& timeline) {
    const auto scenario =
        parse_scenario("s.yaml", "name: x\ncluster: {import: shop.json}\nsettle: 30s\nduration: 2m\n" + timeline, read);
    EXPECT_TRUE(scenario) << scenario.error().text();
    const RunOutcome outcome = run_scenario(*scenario, {.seed = 1, .should_continue = {}});
    EXPECT_TRUE(outcome.violations.empty());
    EXPECT_TRUE(outcome.unplaced.empty());
    EXPECT_EQ(outcome.pods, 2U);
    return outcome.count(HappeningKind::kDeleted);
  };
  EXPECT_EQ(replaced(""), 0U);
  EXPECT_EQ(replaced("timeline:\n- {at: 10s, rollout: {deployment: shop/web}}\n"), 2U);
  EXPECT_EQ(replaced("timeline:\n- {at: 10s, undo: shop/web}\n"), 2U) << "to the one that had no pods";
}

TEST(ClusterImport, LoadIsOfTheProfileThenMeasurementThenRequests) {
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

TEST(ClusterImport, ListsOfAnApiServerAreTheSameCluster) {
  ClusterLists lists;
  std::map<std::string, api::Json::Array> by_kind;
  const api::Json whole = shop();
  for (const api::Json& item : *whole.find("items")->if_array())
    by_kind[std::string(item.string_at({"kind"})) + " " + std::string(item.string_at({"apiVersion"}))].push_back(item);
  for (const auto& [name, items] : by_kind) {
    const std::size_t blank = name.find(' ');
    // Items of a typed list have neither kind nor apiVersion; a list may have several pages.
    for (api::Json item : items) {
      item.if_object()->erase("kind");
      item.if_object()->erase("apiVersion");
      const auto page = api::Json::object({{"kind", name.substr(0, blank) + "List"},
                                           {"apiVersion", name.substr(blank + 1)},
                                           {"items", api::Json::array({item})}});
      ASSERT_TRUE(add_list(lists, page)) << name;
    }
  }
  ASSERT_TRUE(add_list(lists, *api::parse_json(R"({"kind":"DaemonSetList","apiVersion":"apps/v1","items":null})")));
  ASSERT_TRUE(add_list(lists, *api::parse_json(R"({"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1",
    "items":[{"metadata":{"namespace":"shop","name":"x"},"containers":[{"usage":{"memory":"7Mi"}}]}]})")));
  EXPECT_EQ(lists.options.measured, (std::map<std::string, Bytes>{{"shop/x", mebibytes(7)}}));
  lists.options.measured.clear();
  const auto of_lists = import_cluster(std::move(lists));
  const auto of_whole = import_cluster(whole, {});
  ASSERT_TRUE(of_lists) << of_lists.error().text();
  ASSERT_TRUE(of_whole);
  EXPECT_EQ(of_lists->pods.size(), of_whole->pods.size());
  EXPECT_EQ(of_lists->machines.size(), of_whole->machines.size());
  EXPECT_EQ(of_lists->left_out.size(), of_whole->left_out.size());
}

TEST(ClusterImport, RefusesWhatIsNoListOfAnApiServer) {
  for (const char* text :
       {"{}", "[]", R"({"kind":"Pod","apiVersion":"v1"})", R"({"kind":"List","apiVersion":"v1","items":[]})",
        R"({"kind":"PodList","items":[]})", R"({"kind":"PodList","apiVersion":"v1"})"}) {
    ClusterLists lists;
    const Outcome added = add_list(lists, *api::parse_json(text));
    EXPECT_FALSE(added) << text;
  }
}

TEST(ClusterImport, ReadsMeasurements) {
  const auto list = api::parse_json(R"({"items":[{"metadata":{"name":"a","namespace":"x"},
    "containers":[{"usage":{"memory":"10Mi"}},{"usage":{"memory":"5Mi"}}]}]})");
  EXPECT_EQ(measured_memory(*list).at("x/a"), mebibytes(15));
}

}  // namespace

}  // namespace spillway::sim
