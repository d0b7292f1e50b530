// Goal: a node appears, stays reported and comes back, whatever the API server does meanwhile.
#include "agent/scripted_cluster.h"
#include "api/status.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

std::size_t count(const ScriptedCluster& cluster, std::string_view line) {
  return static_cast<std::size_t>(std::ranges::count(cluster.api.log(), line));
}

Result<api::Response> server_error() {
  return api::Response{.status = 500, .headers = {}, .body = "{}"};
}

constexpr std::string_view kLease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

TEST(Node, IsReadyWithinASecond) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.agent().registered());
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "False");
  EXPECT_EQ(cluster.node_condition("DiskPressure"), "False");
  EXPECT_EQ(cluster.node_condition("PIDPressure"), "False");
  const api::Json& node = *cluster.api.find("/api/v1/nodes/n1");
  EXPECT_EQ(node.string_at({"metadata", "labels", "topology.kubernetes.io/zone"}), "a");
  EXPECT_EQ(node.string_at({"status", "capacity", "memory"}), "1Gi");
  EXPECT_EQ(node.string_at({"status", "allocatable", "memory"}), "924Mi") << "the hard threshold is reserved";
  EXPECT_EQ(node.string_at({"status", "nodeInfo", "bootID"}), "b1");
}

TEST(Node, KeepsQuietWhileNothingChanges) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(5));
  const std::size_t before = count(cluster, "PATCH /api/v1/nodes/n1/status");
  cluster.run(minutes(4));
  EXPECT_EQ(count(cluster, "PATCH /api/v1/nodes/n1/status"), before);
  cluster.run(seconds(80));
  EXPECT_EQ(count(cluster, "PATCH /api/v1/nodes/n1/status"), before + 1);
}

TEST(Node, RegistersWithBackOffUntilTheServerAnswers) {
  ScriptedCluster cluster;
  int refused = 0;
  cluster.api.set_fault([&](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (request.method != api::Method::kPost || !request.target.ends_with("/nodes") || refused >= 5) return {};
    ++refused;
    return server_error();
  });
  cluster.start();
  cluster.run(seconds(3));
  EXPECT_FALSE(cluster.agent().registered());
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.agent().registered()) << "0 + 0.1 + 0.2 + 0.4 + 0.8 + 1.6 s";
}

TEST(Node, ReconcilesAnExistingNode) {
  ScriptedCluster cluster;
  cluster.put(api::Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata", api::Json::object({{"name", "n1"},
                                       {"labels", api::Json::object({{"topology.kubernetes.io/zone", "old"},
                                                                     {"mine", "kept"}})}})}}));
  cluster.start();
  cluster.run(seconds(1));
  const api::Json& node = *cluster.api.find("/api/v1/nodes/n1");
  EXPECT_EQ(node.string_at({"metadata", "labels", "topology.kubernetes.io/zone"}), "a");
  EXPECT_EQ(node.string_at({"metadata", "labels", "mine"}), "kept");
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
}

TEST(Node, PutsAConditionRightThatSomebodyElseChanged) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(2));
  api::Json node = *cluster.api.find("/api/v1/nodes/n1");
  for (api::Json& condition : *node.at({"status", "conditions"})->if_array()) {
    if (condition.string_at({"type"}) == "Ready") condition["status"] = "Unknown";
  }
  cluster.put(std::move(node));
  cluster.run(seconds(11));
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
  EXPECT_FALSE(cluster.events("NodeReady").empty());
}

TEST(Node, SurvivesThatEveryPatchFailsForAWhile) {
  ScriptedCluster cluster;
  bool broken = true;
  cluster.api.set_fault([&](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (broken && request.method == api::Method::kPatch) return server_error();
    return {};
  });
  cluster.start();
  cluster.run(seconds(30));
  broken = false;
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(15));
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
}

TEST(Lease, IsRenewedEveryTenSecondsAndOwnedByTheNode) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(12));
  const std::string path = std::string(kLease) + "/n1";
  const api::Json* lease = cluster.api.find(path);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->string_at({"spec", "holderIdentity"}), "n1");
  const api::Json* owners = lease->at({"metadata", "ownerReferences"});
  ASSERT_NE(owners, nullptr);
  EXPECT_EQ(owners->if_array()->front().string_at({"uid"}),
            cluster.api.find("/api/v1/nodes/n1")->string_at({"metadata", "uid"}));
  const std::size_t before = count(cluster, "PUT " + path);
  cluster.run(seconds(100));
  EXPECT_GE(count(cluster, "PUT " + path), before + 9);
  EXPECT_LE(count(cluster, "PUT " + path), before + 10);
}

TEST(Lease, ComesBackAfterItWasDeleted) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(30));
  cluster.remove(std::string(kLease) + "/n1");
  cluster.run(seconds(12));
  EXPECT_NE(cluster.api.find(std::string(kLease) + "/n1"), nullptr);
}

TEST(Lease, OvercomesAConflict) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(12));
  api::Json lease = *cluster.api.find(std::string(kLease) + "/n1");
  lease.make({"metadata", "labels", "touched"}) = "yes";
  cluster.put(std::move(lease));
  cluster.run(seconds(12));
  const api::Json& now = *cluster.api.find(std::string(kLease) + "/n1");
  EXPECT_EQ(now.string_at({"metadata", "labels", "touched"}), "yes");
  EXPECT_GT(now.string_at({"spec", "renewTime"}), api::format_micro_time(cluster.now().wall - seconds(12)));
}

TEST(AgentCreate, NamesTheThresholdThatCannotBe) {
  AgentOptions options = node_options();
  options.eviction.thresholds.hard = {{"memory.avaliable", "100Mi"}};
  const auto agent = Agent::create(options, machine_info(), Rng(1), {});
  ASSERT_FALSE(agent.has_value());
  EXPECT_EQ(agent.error().text(), "unsupported eviction signal memory.avaliable");
}

TEST(AgentCreate, RefusesToReserveMoreThanThereIs) {
  AgentOptions options = node_options();
  options.system_reserved["memory"] = api::Quantity::of_bytes(gibibytes(1));
  const auto agent = Agent::create(options, machine_info(), Rng(1), {});
  ASSERT_FALSE(agent.has_value());
  EXPECT_EQ(agent.error().code, ErrorCode::kInvalid);
}

TEST(Options, GiveSmallNodesASmallThreshold) {
  EXPECT_EQ(hard_thresholds_for(gibibytes(4)).at("memory.available"), "100Mi");
  EXPECT_EQ(hard_thresholds_for(mebibytes(256)).at("memory.available"), "25Mi");
  EXPECT_EQ(hard_thresholds_for(mebibytes(64)).at("memory.available"), "16Mi");
}

}  // namespace
}  // namespace spillway::agent
