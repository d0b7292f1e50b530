// Each invariant finds the violations for which it was written.
#include "sim/invariants.h"

#include "api/object/taint.h"
#include "sim/world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace spillway::sim {

namespace {

api::Node tainted(const std::string& name) {
  api::Node node;
  node.metadata.name = name;
  node.spec.taints.push_back({std::string(api::kTaintNodeUnreachable), "", std::string(api::kNoExecute), {}});
  return node;
}

TEST(Invariants, FindATaintRateAboveTheLimit) {
  Invariants invariants({.acts = {.node_eviction_rate = 0.1}});
  const auto at = [](int second) { return Now{Instant(seconds(second)), WallTime(seconds(second))}; };
  const api::Node a = tainted("a");
  const api::Node b = tainted("b");
  const api::Node c = tainted("c");
  invariants.on_node(nullptr, &a, at(0));
  invariants.on_node(nullptr, &b, at(10));
  EXPECT_TRUE(invariants.violations().empty());
  invariants.on_node(nullptr, &c, at(11));
  EXPECT_EQ(invariants.violations().size(), 1U);
}

TEST(Invariants, FindAPodThatMoves) {
  Invariants invariants({});
  api::Pod before;
  before.metadata.uid = "u";
  before.spec.node_name = "a";
  api::Pod after = before;
  after.spec.node_name = "b";
  invariants.on_pod(&before, &after, {});
  EXPECT_EQ(invariants.violations().size(), 1U);
}

TEST(Invariants, FindAPodOnTwoNodes) {
  Invariants invariants({});
  invariants.on_start("a", "u", {});
  invariants.on_start("b", "u", {});
  EXPECT_EQ(invariants.violations().size(), 1U);
}

Now at(int second) {
  return {Instant(seconds(second)), WallTime(seconds(second))};
}

api::ReplicaSet set_of(std::int32_t replicas) {
  api::ReplicaSet set;
  set.metadata.name = "web";
  set.metadata.uid = "set";
  set.replicas = replicas;
  return set;
}

api::Pod replica(const std::string& uid) {
  api::Pod pod;
  pod.metadata.name = uid;
  pod.metadata.uid = uid;
  pod.metadata.owner_references.push_back(
      {.api_version = "apps/v1", .kind = "ReplicaSet", .name = "web", .uid = "set", .controller = true});
  return pod;
}

TEST(Invariants, FindAReplicaTooManyThatStays) {
  Invariants invariants({});
  const api::ReplicaSet set = set_of(1);
  const api::Pod first = replica("a");
  const api::Pod second = replica("b");
  invariants.on_replica_set(nullptr, &set, at(0));
  invariants.on_pod(nullptr, &first, at(1));
  invariants.on_pod(nullptr, &second, at(2));
  invariants.check(at(60));
  EXPECT_TRUE(invariants.violations().empty()) << "it may still be put right";
  invariants.check(at(200));
  EXPECT_EQ(invariants.violations().size(), 1U);
}

TEST(Invariants, ForgiveAReplicaTooManyThatGoes) {
  Invariants invariants({});
  const api::ReplicaSet set = set_of(1);
  const api::Pod first = replica("a");
  const api::Pod second = replica("b");
  api::Pod deleted = second;
  deleted.metadata.deletion_timestamp = WallTime(seconds(9));
  invariants.on_replica_set(nullptr, &set, at(0));
  invariants.on_pod(nullptr, &first, at(1));
  invariants.on_pod(nullptr, &second, at(2));
  invariants.on_pod(&second, &deleted, at(3));
  invariants.check(at(500));
  EXPECT_TRUE(invariants.violations().empty());
}

TEST(Invariants, FindAReplicaTooManyAtOnceWhereNothingGetsLost) {
  Invariants invariants({});
  invariants.forbid_surplus();
  const api::ReplicaSet set = set_of(1);
  const api::Pod first = replica("a");
  const api::Pod second = replica("b");
  invariants.on_replica_set(nullptr, &set, at(0));
  invariants.on_pod(nullptr, &first, at(1));
  EXPECT_TRUE(invariants.violations().empty());
  invariants.on_pod(nullptr, &second, at(2));
  EXPECT_EQ(invariants.violations().size(), 1U);
}

TEST(Invariants, FindATaintThatStaysOnAReadyNode) {
  Invariants invariants({});
  api::Node node = tainted("a");
  node.status.conditions.push_back({.type = "Ready", .status = "True"});
  invariants.on_node(nullptr, &node, at(0));
  invariants.on_outage(true, at(10));
  invariants.check(at(300));
  EXPECT_TRUE(invariants.violations().empty()) << "nobody is there to take it away";
  invariants.on_outage(false, at(301));
  invariants.check(at(400));
  EXPECT_TRUE(invariants.violations().empty());
  invariants.check(at(430));
  EXPECT_EQ(invariants.violations().size(), 1U);
}

TEST(Invariants, FindAnOlderStatusInPlaceOfANewerOne) {
  Invariants invariants({});
  api::Pod before;
  before.metadata.uid = "u";
  before.status.phase = "Running";
  before.status.container_statuses.push_back({.name = "c", .restart_count = 2});
  api::Pod after = before;
  after.status.container_statuses[0].restart_count = 1;
  invariants.on_pod(&before, &after, at(1));
  EXPECT_EQ(invariants.violations().size(), 1U);
  after = before;
  after.status.phase = "Pending";
  invariants.on_pod(&before, &after, at(2));
  EXPECT_EQ(invariants.violations().size(), 2U);
}

TEST(Invariants, FindAnOlderHeartbeatInPlaceOfANewerOne) {
  Invariants invariants({});
  api::Node before;
  before.metadata.name = before.metadata.uid = "n";
  before.status.conditions.push_back({.type = "Ready", .status = "True", .last_heartbeat_time = WallTime(seconds(20))});
  api::Node after = before;
  after.status.conditions[0].last_heartbeat_time = WallTime(seconds(10));
  invariants.on_node(&before, &after, at(1));
  EXPECT_EQ(invariants.violations().size(), 1U);
  after.metadata.uid = "another";
  invariants.on_node(&before, &after, at(2));
  EXPECT_EQ(invariants.violations().size(), 1U) << "another node of that name";
  const LeaseRenewal old_lease{.name = "n", .uid = "l", .renew_time = WallTime(seconds(20))};
  LeaseRenewal lease = old_lease;
  lease.renew_time = WallTime(seconds(10));
  invariants.on_lease(&old_lease, &lease, at(3));
  EXPECT_EQ(invariants.violations().size(), 2U);
}

/// A lease of node n as the server writes it, whose renewal was in this second.
store::Change lease_change(const std::string& uid, int second, const std::string& holder = "n") {
  store::Change change;
  change.key = "/registry/leases/kube-node-lease/n";
  change.value = std::make_shared<const std::string>(fmt::format(
      R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"n","namespace":"kube-node-lease","uid":"{}"}},)"
      R"("spec":{{"holderIdentity":"{}","renewTime":"2026-01-01T00:00:{:02}.000000Z"}}}})",
      uid, holder, second));
  return change;
}

TEST(World, FindsAnOlderLeaseInPlaceOfANewerOne) {
  VirtualTime time;
  Invariants invariants({});
  World world(time, invariants);
  world.on_changes({lease_change("first", 10), lease_change("first", 20), lease_change("first", 30)});
  EXPECT_TRUE(invariants.violations().empty());
  world.on_changes({lease_change("first", 29)});
  EXPECT_EQ(invariants.violations().size(), 1U);
  world.on_changes({lease_change("other", 20)});
  EXPECT_EQ(invariants.violations().size(), 1U) << "another lease of that name, as long as the one before";
  world.on_changes({lease_change("other", 21, "longer"), lease_change("other", 20, "longer")});
  EXPECT_EQ(invariants.violations().size(), 2U) << "its places have moved";
  world.on_changes({lease_change("other", 25, "mm"), lease_change("other", 24, "mmm")});
  EXPECT_EQ(invariants.violations().size(), 3U);
}

TEST(Invariants, FindAPhaseThatWasFinal) {
  Invariants invariants({});
  api::Pod before;
  before.metadata.uid = "u";
  before.status.phase = "Failed";
  api::Pod after = before;
  after.status.phase = "Running";
  before.status.conditions.push_back({.type = "DisruptionTarget", .status = "True", .reason = "DeletionByPodGC"});
  invariants.on_pod(&before, &after, {});
  EXPECT_TRUE(invariants.violations().empty()) << "its agent could not know";
  before.status.conditions.clear();
  invariants.on_pod(&before, &after, {});
  EXPECT_EQ(invariants.violated(), std::set{Property::kPodsEndOnce});
}

TEST(Invariants, LetASetBecomeSmaller) {
  Invariants invariants({});
  invariants.forbid_surplus();
  api::ReplicaSet before = set_of(1);
  invariants.on_replica_set(nullptr, &before, at(0));
  api::Pod pod;
  pod.metadata.uid = "u";
  pod.metadata.owner_references.push_back(
      {.api_version = "apps/v1", .kind = "ReplicaSet", .name = "web", .uid = "set", .controller = true});
  invariants.on_pod(nullptr, &pod, at(1));
  api::ReplicaSet after = before;
  after.replicas = 0;
  invariants.on_replica_set(&before, &after, at(2));
  invariants.check(at(60));
  EXPECT_TRUE(invariants.violations().empty());
  invariants.check(at(200));
  EXPECT_EQ(invariants.violated(), std::set{Property::kNoSurplus});
}

}  // namespace

}  // namespace spillway::sim
