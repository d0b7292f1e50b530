// Goal: a node appears, stays reported and comes back, regardless of the API server's failures.
#include "agent/node/allocatable.h"
#include "agent/scripted_cluster.h"
#include "api/exchange/status.h"
#include "api/text/time_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

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

api::Json node_status(const ScriptedCluster& cluster, std::string_view member) {
  const api::Json* found = cluster.api.find("/api/v1/nodes/n1")->at({"status", member});
  return found == nullptr ? api::Json() : *found;
}

TEST(Node, ReportsWhatTheHandlersOfItsRuntimeCanDo) {
  ScriptedCluster cluster;
  cluster.machine.runs_images = true;
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_TRUE(node_status(cluster, "runtimeHandlers").is_null());
  RuntimeReported report;
  report.handlers = {{.name = "", .recursive_read_only_mounts = true, .user_namespaces = true}, {.name = "kata"}};
  report.supplemental_groups_policy = true;
  cluster.send(report);
  cluster.run(seconds(1));
  const std::string_view wanted =
      R"([{"name":"","features":{"recursiveReadOnlyMounts":true,"userNamespaces":true}},
          {"name":"kata","features":{"recursiveReadOnlyMounts":false,"userNamespaces":false}}])";
  EXPECT_EQ(node_status(cluster, "runtimeHandlers"), api::parse_json(wanted).value());
  EXPECT_TRUE(node_status(cluster, "features").is_null()) << "the gate is off";
  cluster.send(RuntimeReported{});
  cluster.run(seconds(1));
  EXPECT_TRUE(node_status(cluster, "runtimeHandlers").is_null());
}

TEST(Node, ReportsIfGroupPoliciesAreCarriedOutWhereThatIsRequested) {
  AgentOptions options = node_options();
  options.group_policies = SupplementalGroupPolicies::kOn;
  ScriptedCluster cluster(options);
  cluster.machine.runs_images = true;
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_TRUE(node_status(cluster, "features").is_null()) << "the runtime has not said anything";
  for (const bool carried_out : {true, false}) {
    RuntimeReported report;
    report.supplemental_groups_policy = carried_out;
    cluster.send(report);
    cluster.run(seconds(1));
    EXPECT_EQ(node_status(cluster, "features"), api::Json::object({{"supplementalGroupsPolicy", carried_out}}));
  }
}

TEST(Node, SaysThatTheResolversFileCannotBeRead) {
  AgentOptions options = node_options();
  options.dns.resolv_conf = make_error(ErrorCode::kNotFound, "open /run/none: no such file or directory");
  ScriptedCluster cluster(options);
  cluster.start();
  cluster.run(seconds(5));
  const auto events = cluster.events("CheckLimitsForResolvConf");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.front().string_at({"message"}), "open /run/none: no such file or directory");
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
  cluster.run(seconds(6));
  EXPECT_FALSE(cluster.agent().registered());
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.agent().registered()) << "0.1 + 0.2 + 0.4 + 0.8 + 1.6 + 3.2 s";
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

TEST(Node, CorrectsAConditionThatAnotherClientChanged) {
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

TEST(Node, IsRegisteredAnewAfterItsDeletion) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(2));
  cluster.remove("/api/v1/nodes/n1");
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
  EXPECT_EQ(count(cluster, "POST /api/v1/nodes"), 2);
}

AgentOptions options_without_registration() {
  AgentOptions options = node_options();
  options.registration = Registration::kNone;
  return options;
}

api::Json bare_node() {
  return api::Json::object(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", api::Json::object({{"name", "n1"}, {"uid", "node-uid"}})}});
}

TEST(NodeOfOthers, IsNotRegisteredAndReadOnceAPeriod) {
  ScriptedCluster cluster(options_without_registration());
  cluster.start();
  cluster.run(minutes(2));
  EXPECT_EQ(count(cluster, "POST /api/v1/nodes"), 0U);
  EXPECT_FALSE(cluster.agent().registered());
  EXPECT_EQ(cluster.agent().state(cluster.now()).string_at({"node", "status"}), "absent");
  const std::size_t requests = count(cluster, "GET /api/v1/nodes/n1");
  EXPECT_GE(requests, 22U) << "eleven periods: the status and the lease want to know";
  EXPECT_LE(requests, 25U);
  EXPECT_EQ(cluster.api.find(std::string(kLease) + "/n1"), nullptr);
}

TEST(NodeOfOthers, IsReportedAsSoonAsItAppears) {
  ScriptedCluster cluster(options_without_registration());
  cluster.start();
  cluster.run(seconds(25));
  cluster.put(bare_node());
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.agent().registered());
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
  EXPECT_NE(cluster.api.find(std::string(kLease) + "/n1"), nullptr) << "it has an owner now";
  const api::Json& node = *cluster.api.find("/api/v1/nodes/n1");
  EXPECT_EQ(node.string_at({"metadata", "labels", "topology.kubernetes.io/zone"}), "") << "labels are of who made it";
  EXPECT_EQ(node.string_at({"metadata", "labels", "kubernetes.io/os"}), "linux");
  EXPECT_EQ(count(cluster, "POST /api/v1/nodes"), 0U);
}

TEST(NodeOfOthers, ThatIsThereIsReportedAtOnce) {
  ScriptedCluster cluster(options_without_registration());
  cluster.put(bare_node());
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
}

TEST(NodeOfOthers, IsFoundThoughTheWatchIsStuck) {
  ScriptedCluster cluster(options_without_registration());
  cluster.api.set_fault([](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (!request.target.contains("/nodes?")) return {};
    return server_error();
  });
  cluster.put(bare_node());
  cluster.start();
  cluster.run(seconds(12));
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
}

TEST(NodeOfOthers, IsWaitedForAgainAfterItsDeletion) {
  ScriptedCluster cluster(options_without_registration());
  cluster.put(bare_node());
  cluster.start();
  cluster.run(seconds(2));
  cluster.remove("/api/v1/nodes/n1");
  cluster.run(minutes(1));
  EXPECT_EQ(count(cluster, "POST /api/v1/nodes"), 0U);
  EXPECT_FALSE(cluster.agent().registered());
  cluster.put(bare_node());
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
}

TEST(Node, NoticesDuringAReportThatItIsGone) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(2));
  cluster.break_watches({ErrorCode::kServiceUnavailable, "away", {}});
  cluster.remove("/api/v1/nodes/n1");
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(12));
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
}

TEST(Node, EachTryToReportItsStatusIsLogged) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(5));
  const std::size_t before = cluster.logged("level=debug msg=\"updating node status\" node=n1 attempt=0").size();
  EXPECT_GE(before + cluster.logged("level=debug msg=\"updating node status\" node=n1 attempt=1").size(), 1u);
  cluster.run(minutes(1));
  EXPECT_GT(cluster.logged("level=debug msg=\"updating node status\" node=n1 attempt=0").size(), before);
}

TEST(Node, OfOldTimesReportsOutOfDiskAtEveryUpdateAndHasNoLease) {
  AgentOptions options = node_options();
  options.status_profile = StatusProfile::kOutOfDisk;
  ScriptedCluster cluster(options);
  cluster.start();
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.node_condition("OutOfDisk"), "False");
  EXPECT_EQ(cluster.node_condition("PIDPressure"), "");
  const std::size_t before = count(cluster, "PATCH /api/v1/nodes/n1/status");
  cluster.run(minutes(1));
  EXPECT_GE(count(cluster, "PATCH /api/v1/nodes/n1/status"), before + 5);
  EXPECT_TRUE(cluster.api.all(kLease).empty());
}

TEST(Node, RecordsThatItIsCordoned) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(2));
  api::Json node = *cluster.api.find("/api/v1/nodes/n1");
  node.make({"spec", "unschedulable"}) = true;
  cluster.put(std::move(node));
  cluster.run(seconds(25));
  EXPECT_EQ(cluster.events("NodeNotSchedulable").size(), 1);
}

/// A change during a report is reported right after it, without waiting for the next period.
TEST(Node, ReportsAgainAtOnceWhatChangedDuringAReport) {
  AgentOptions options = node_options();
  options.eviction.thresholds.hard = {{"memory.available", "100Mi"}, {"nodefs.available", "10%"}};
  ScriptedCluster cluster(options);
  cluster.start();
  cluster.run(seconds(15));
  cluster.delay_answers([](const api::Request& request) {
    return request.method == api::Method::kPatch && request.target.contains("/nodes/n1/status") ? Duration(seconds(3))
                                                                                                : Duration();
  });
  const std::size_t before = count(cluster, "PATCH /api/v1/nodes/n1/status");
  cluster.host.set_available(mebibytes(50));
  cluster.send(PressureWake{"psi"});
  cluster.run(seconds(1));
  ASSERT_EQ(count(cluster, "PATCH /api/v1/nodes/n1/status"), before + 1);
  ASSERT_EQ(cluster.agent().state(cluster.now()).string_at({"node", "status"}), "syncing");
  cluster.host.set_disk_available(gibibytes(1));
  cluster.run(seconds(1));
  ASSERT_EQ(cluster.node_condition("DiskPressure"), "False") << "it is still on its way";
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
  EXPECT_EQ(cluster.node_condition("DiskPressure"), "True");
}

/// A report that got no answer may be carried out after the next one: seed 7935 of the swarm.
TEST(Node, OverwritesNoNewerReportWithOneThatWasOnItsWay) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(15));
  std::optional<api::Request> kept;
  cluster.api.set_fault([&](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (kept || request.method != api::Method::kPatch || !request.target.contains("/nodes/n1/status")) return {};
    kept = request;
    return make_error(ErrorCode::kTimeout, "no answer within 10000 ms");
  });
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(15));
  ASSERT_TRUE(kept);
  ASSERT_EQ(cluster.node_condition("MemoryPressure"), "True");
  const api::Json newer = *cluster.api.find("/api/v1/nodes/n1");
  client::SendCall late;
  late.request = *kept;
  cluster.api.handle(late);
  EXPECT_EQ(cluster.api.statuses().back(), 409);
  EXPECT_EQ(*cluster.api.find("/api/v1/nodes/n1"), newer);
}

/// Another client changes the node between the reading and the report: the node is read again, and the API server does
/// not count as unreachable.
TEST(Node, ReportsOverWhatOthersHaveChangedMeanwhile) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(15));
  cluster.delay_watches(seconds(30));
  api::Json node = *cluster.api.find("/api/v1/nodes/n1");
  node.make({"metadata", "labels", "mine"}) = "kept";
  cluster.put(std::move(node));
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(12));
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
  EXPECT_EQ(cluster.api.find("/api/v1/nodes/n1")->string_at({"metadata", "labels", "mine"}), "kept");
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

TEST(Lease, IsThereAsSoonAsTheNodeIs) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_NE(cluster.api.find(std::string(kLease) + "/n1"), nullptr);
  EXPECT_EQ(count(cluster, "POST " + std::string(kLease)), 1);
}

TEST(Lease, OfANodeThatIsThereAlreadyDoesNotWaitForItsRegistration) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(30));
  cluster.api.set_fault([](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (request.method == api::Method::kPost && request.target.ends_with("/nodes")) return server_error();
    return {};
  });
  const std::string path = std::string(kLease) + "/n1";
  const std::size_t before = count(cluster, "PUT " + path);
  cluster.restart();
  cluster.run(seconds(1));
  EXPECT_FALSE(cluster.agent().registered());
  EXPECT_EQ(count(cluster, "PUT " + path), before + 1);
}

/// Nothing but heartbeats is answered, and the machine is silent.
TEST(Lease, IsRenewedWhileTheRestOfTheAgentIsStuck) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(15));
  const std::string path = std::string(kLease) + "/n1";
  cluster.api.set_fault([&](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (request.target.find("/leases/") != std::string::npos) return {};
    return make_error(ErrorCode::kServiceUnavailable, "no answer");
  });
  cluster.host.set_silent(true);
  const std::size_t before = count(cluster, "PUT " + path);
  cluster.run(minutes(10));
  EXPECT_GE(count(cluster, "PUT " + path), before + 57);
  EXPECT_LE(count(cluster, "PUT " + path), before + 60);
}

TEST(Outage, OfFiveMinutesEndsWithoutALostHeartbeatAndWithoutAStorm) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(30));
  bool away = true;
  cluster.api.set_fault([&](const api::Request&) -> std::optional<Result<api::Response>> {
    if (away) return make_error(ErrorCode::kServiceUnavailable, "connection refused");
    return {};
  });
  cluster.break_watches({ErrorCode::kServiceUnavailable, "connection reset", {}});
  const std::size_t before = cluster.api.log().size();
  cluster.run(minutes(5));
  EXPECT_LT(cluster.api.log().size() - before, 600) << "two requests a second at most";
  away = false;
  const std::size_t returned = cluster.api.log().size();
  const WallTime back = cluster.now().wall;
  cluster.run(seconds(8));
  const std::string renewed(cluster.api.find(std::string(kLease) + "/n1")->string_at({"spec", "renewTime"}));
  EXPECT_GT(renewed, api::format_micro_time(back)) << "the back-off ends within 7 s";
  cluster.run(seconds(22));
  EXPECT_LT(cluster.api.log().size() - returned, 40) << "no storm on return";
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "False");
  EXPECT_EQ(count(cluster, "POST /api/v1/nodes"), 1) << "it is registered still";
}

class ClockJump : public testing::TestWithParam<int> {};

TEST_P(ClockJump, LosesNoHeartbeatAndMakesNoFalseCondition) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(30));
  const std::string path = std::string(kLease) + "/n1";
  const std::size_t renewals = count(cluster, "PUT " + path);
  const std::size_t requests = cluster.api.log().size();
  cluster.set_wall_clock_ahead(hours(GetParam()));
  cluster.run(minutes(2));
  EXPECT_GE(count(cluster, "PUT " + path), renewals + 11);
  EXPECT_LE(count(cluster, "PUT " + path), renewals + 12);
  EXPECT_LT(cluster.api.log().size() - requests, 40);
  EXPECT_EQ(cluster.node_condition("Ready"), "True");
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "False");
  EXPECT_EQ(cluster.node_condition("DiskPressure"), "False");
  EXPECT_TRUE(cluster.events("NodeNotReady").empty());
}

INSTANTIATE_TEST_SUITE_P(Hours, ClockJump, testing::Values(1, -1));

TEST(Lease, IsCreatedAgainAfterItWasDeleted) {
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
  const std::string path = std::string(kLease) + "/n1";
  api::Json lease = *cluster.api.find(path);
  lease.make({"metadata", "labels", "touched"}) = "yes";
  cluster.put(std::move(lease));
  const std::size_t before = count(cluster, "PUT " + path);
  cluster.run(seconds(12));
  EXPECT_EQ(count(cluster, "PUT " + path), before + 2) << "the one that is refused, and one made from a new look";
  const api::Json& now = *cluster.api.find(std::string(kLease) + "/n1");
  EXPECT_EQ(now.string_at({"metadata", "labels", "touched"}), "yes");
  EXPECT_GT(now.string_at({"spec", "renewTime"}), api::format_micro_time(cluster.now().wall - seconds(12)));
}

TEST(Events, AreWrittenNoFasterThanTheirRate) {
  AgentOptions options = node_options();
  options.events_per_second = 1.0F / 30;
  options.events_burst = 2;
  ScriptedCluster cluster(options);
  cluster.start();
  for (int i = 0; i < 8; ++i) cluster.put(pod_document({.name = fmt::format("p{}", i), .memory_request = "1Mi"}));
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.api.all("/events/").size(), 2U);
  cluster.run(seconds(60));
  EXPECT_EQ(cluster.api.all("/events/").size(), 4U);
  EXPECT_GE(count(cluster, "PUT " + std::string(kLease) + "/n1"), 3) << "nothing else waits for events";
}

TEST(Allocatable, HoldsPodsToWhatIsNotReserved) {
  AgentOptions options = node_options();
  options.system_reserved["memory"] = api::Quantity::of_bytes(mebibytes(100));
  options.kube_reserved["memory"] = api::Quantity::of_bytes(mebibytes(24));
  options.eviction.thresholds.enforce_pods = eviction::EnforcePods::kYes;
  ScriptedCluster cluster(options);
  cluster.start();
  cluster.run(seconds(2));
  const auto* limit = cluster.host.last<LimitGroup>();
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->group, LimitedGroup::kPods);
  EXPECT_EQ(limit->limits.memory, mebibytes(900)) << "the eviction threshold is not taken off";
  EXPECT_EQ(cluster.events("NodeAllocatableEnforced").size(), 1);
  cluster.run(minutes(5));
  EXPECT_EQ(cluster.host.count<LimitGroup>(), 1);
}

TEST(Allocatable, IsTriedAgainUntilItHolds) {
  AgentOptions options = node_options();
  options.eviction.thresholds.enforce_pods = eviction::EnforcePods::kYes;
  ScriptedCluster cluster(options);
  cluster.host.set_limits_fail(true);
  cluster.start();
  cluster.run(seconds(90));
  EXPECT_FALSE(cluster.events("FailedNodeAllocatableEnforcement").empty());
  EXPECT_TRUE(cluster.events("NodeAllocatableEnforced").empty());
  cluster.host.set_limits_fail(false);
  cluster.run(minutes(1));
  EXPECT_EQ(cluster.events("NodeAllocatableEnforced").size(), 1);
}

TEST(Allocatable, IsTheWholeCapacityWithoutEnforcement) {
  AgentOptions options = node_options();
  options.system_reserved["memory"] = api::Quantity::of_bytes(mebibytes(100));
  options.eviction.thresholds.enforce_pods = eviction::EnforcePods::kNo;
  ScriptedCluster cluster(options);
  cluster.start();
  cluster.run(seconds(2));
  const auto* limit = cluster.host.last<LimitGroup>();
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->limits.memory, gibibytes(1)) << "the weight of all pods is set all the same";
}

std::vector<std::string> messages(const std::vector<api::Json>& events) {
  std::vector<std::string> texts;
  for (const api::Json& each : events) texts.emplace_back(each.string_at({"message"}));
  std::ranges::sort(texts);
  return texts;
}

AgentOptions reserving_options(ReservedLimits limits) {
  AgentOptions options = node_options();
  options.system_reserved = {{"cpu", api::Quantity::of_milli(500)},
                             {"memory", api::Quantity::of_bytes(mebibytes(100))},
                             {"pid", api::Quantity::of_units(300)},
                             {"hugepages-2Mi", api::Quantity::of_bytes(mebibytes(4))}};
  options.enforcement.system = {.cgroup = "/system.slice", .limits = limits};
  return options;
}

MachineInfo machine_with_huge_pages() {
  MachineInfo machine = machine_info();
  machine.huge_pages = {{.page_size_kib = 2048, .pages = 10}, {.page_size_kib = 1048576, .pages = 0}};
  return machine;
}

TEST(Allocatable, LimitsDaemonsToWhatIsReservedForThem) {
  ScriptedCluster cluster(reserving_options(ReservedLimits::kAll));
  cluster.machine = machine_with_huge_pages();
  cluster.start();
  cluster.run(seconds(2));
  const auto* limit = cluster.host.last<LimitGroup>();
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->group, LimitedGroup::kSystemReserved);
  EXPECT_EQ(limit->cgroup, "/system.slice");
  const GroupLimits wanted{.memory = mebibytes(100),
                           .cpu_milli = 500,
                           .pids_max = 300,
                           .huge_pages = {{mebibytes(2).count(), mebibytes(4)}, {gibibytes(1).count(), Bytes{0}}}};
  EXPECT_EQ(limit->limits, wanted) << "pages of a size that nobody reserved are none of theirs";
  EXPECT_EQ(messages(cluster.events("NodeAllocatableEnforced")),
            (std::vector<std::string>{"Updated Node Allocatable limit across pods",
                                      "Updated limits on system reserved cgroup /system.slice"}));
}

TEST(Allocatable, LimitsOnlyTheProcessorWhereNoPodMayBeEvicted) {
  AgentOptions options = reserving_options(ReservedLimits::kNone);
  options.kube_reserved = options.system_reserved;
  options.enforcement.kube = {.cgroup = "/runtime.slice", .limits = ReservedLimits::kCompressible};
  const std::vector<LimitGroup> limits = enforced_limits(machine_with_huge_pages(), options);
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[1].group, LimitedGroup::kKubeReserved);
  EXPECT_EQ(limits[1].limits, (GroupLimits{.memory = {}, .cpu_milli = 500, .pids_max = {}, .huge_pages = {}}));
}

TEST(Allocatable, OfDaemonsIsTriedAgainUntilItHolds) {
  ScriptedCluster cluster(reserving_options(ReservedLimits::kAll));
  cluster.machine = machine_with_huge_pages();
  cluster.host.set_limits_fail(true);
  cluster.start();
  cluster.run(seconds(2));
  EXPECT_EQ(messages(cluster.events("FailedNodeAllocatableEnforcement")),
            (std::vector<std::string>{"Failed to enforce System Reserved Cgroup Limits on \"/system.slice\": busy",
                                      "Failed to update Node Allocatable Limits \"kubepods\": busy"}));
  EXPECT_EQ(cluster.agent().state(cluster.now()).string_at({"allocatable", "system-reserved", "problem"}),
            "Failed to enforce System Reserved Cgroup Limits on \"/system.slice\": busy");
  cluster.host.set_limits_fail(false);
  cluster.run(minutes(2));
  EXPECT_EQ(cluster.events("NodeAllocatableEnforced").size(), 2U);
  EXPECT_EQ(cluster.agent().state(cluster.now()).string_at({"allocatable", "system-reserved", "problem"}), "");
}

TEST(Allocatable, IsWhatPodsAreAdmittedBy) {
  AgentOptions options = node_options();
  options.pods_per_core = 1;
  ScriptedCluster cluster(options);
  cluster.machine = machine_with_huge_pages();
  cluster.machine.cpu_milli = 1000;
  cluster.start();
  cluster.run(seconds(2));
  cluster.put(pod_document({.name = "first"}));
  cluster.run(seconds(1));
  cluster.put(pod_document({.name = "second"}));
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.phase("first"), "Running");
  EXPECT_EQ(cluster.pod("second").string_at({"status", "reason"}), "OutOfpods");
  EXPECT_EQ(cluster.api.find("/api/v1/nodes/n1")->string_at({"status", "allocatable", "pods"}), "1");
  EXPECT_EQ(cluster.api.find("/api/v1/nodes/n1")->string_at({"status", "allocatable", "hugepages-2Mi"}), "20Mi");
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
