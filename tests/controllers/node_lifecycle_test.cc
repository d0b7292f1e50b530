// Silence, taints, evictions and recovery, with the real API server.
#include "api/text/time_text.h"
#include "controllers/controller_set.h"
#include "controllers/test_cluster.h"
#include "policy/lifecycle/lines/kubernetes_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

const std::string kSilent = "unreachable:NoExecute";

class NodeLifecycle : public ::testing::Test {
 protected:
  std::unique_ptr<ControllerSet> make(std::uint64_t seed = 7) {
    return std::make_unique<ControllerSet>(options, Rng(seed), telemetry::Log(), metrics);
  }

  void start(int nodes) {
    for (int i = 0; i < nodes; ++i) cluster.add_node(fmt::format("n{}", i));
    set = make();
    cluster.run(*set);
    cluster.advance(seconds(12));
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  std::unique_ptr<ControllerSet> set;
};

TEST_F(NodeLifecycle, IgnoresHealthyNodes) {
  start(3);
  cluster.requests.clear();
  cluster.advance(minutes(5));
  EXPECT_EQ(cluster.ready_status("n1"), "True");
  EXPECT_THAT(cluster.taints("n1"), IsEmpty());
  for (const std::string& request : cluster.requests) EXPECT_TRUE(request.starts_with("GET")) << request;
}

TEST_F(NodeLifecycle, TakesAwayTheTaintOfCreation) {
  cluster.add_node("n0");
  EXPECT_THAT(cluster.taints("n0"), Contains("not-ready:NoSchedule"));
  start(0);
  EXPECT_THAT(cluster.taints("n0"), IsEmpty());
  EXPECT_THAT(cluster.events_about("n0"), Contains(Pair("RegisteredNode", 1)));
}

TEST_F(NodeLifecycle, ASilentNodeIsUnknownTaintedAndTakenBack) {
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.set_up("n1", false);
  cluster.advance(seconds(45));
  EXPECT_EQ(cluster.ready_status("n1"), "True");
  cluster.advance(seconds(16));
  EXPECT_EQ(cluster.ready_status("n1"), "Unknown");
  EXPECT_THAT(cluster.taints("n1"), ElementsAre(kSilent, "unreachable:NoSchedule"));
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"status", "phase"}), "Running");
  EXPECT_THAT(cluster.events_about("n1"), Contains(Pair("NodeNotReady", 1)));
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("NodeNotReady")));
  EXPECT_EQ(set->taint_eviction().schedule().all().size(), 1U);

  cluster.set_up("n1", true);
  cluster.advance(seconds(1));
  EXPECT_EQ(cluster.ready_status("n1"), "True");
  EXPECT_THAT(cluster.taints("n1"), IsEmpty());
  EXPECT_TRUE(set->taint_eviction().schedule().all().empty());
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("TaintManagerEviction")));
  cluster.advance(minutes(6));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("web"));
}

TEST_F(NodeLifecycle, ANodeThatSpeaksWhileTheLeaseOfAnotherIsAskedForIsNotOverwritten) {
  start(3);
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/";
  cluster.delay_answers(api::Method::kGet, leases + "n2", seconds(4));
  bool asked = false;
  cluster.after(api::Method::kGet, leases + "n1", [&] {
    asked = true;
    cluster.set_up("n1", true);
  });
  cluster.set_up("n1", false);
  cluster.set_up("n2", false);
  cluster.advance(seconds(70));
  ASSERT_TRUE(asked);
  EXPECT_EQ(cluster.ready_status("n2"), "Unknown");
  EXPECT_EQ(cluster.ready_status("n1"), "True");
  EXPECT_EQ(cluster.events_about("n1").count("NodeNotReady"), 0U);
}

TEST_F(NodeLifecycle, PodsLeaveWhenTheirTolerationEnds) {
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.set_up("n1", false);
  cluster.advance(seconds(65));
  ASSERT_THAT(cluster.taints("n1"), Contains(kSilent));
  cluster.advance(seconds(280));
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
  cluster.advance(seconds(20));
  const Json pod = cluster.get("/api/v1/namespaces/default/pods/web");
  EXPECT_NE(pod.string_at({"metadata", "deletionTimestamp"}), "");  // no kubelet is there to finish the deletion
  EXPECT_THAT(api::to_text(pod), ::testing::HasSubstr("DeletionByTaintManager"));
}

TEST_F(NodeLifecycle, ANotReadyNodeIsTaintedNotReady) {
  start(3);
  cluster.set_ready("n2", false);
  cluster.advance(seconds(6));
  EXPECT_THAT(cluster.taints("n2"), ElementsAre("not-ready:NoExecute", "not-ready:NoSchedule"));
  cluster.set_up("n2", false);
  cluster.advance(seconds(62));
  EXPECT_THAT(cluster.taints("n2"), ElementsAre(kSilent, "unreachable:NoSchedule"));
}

TEST_F(NodeLifecycle, PressureAndCordonBecomeTaints) {
  start(2);
  cluster.set_pressure("n0", "MemoryPressure", true);
  cluster.merge("/api/v1/nodes/n0", *api::parse_json(R"({"spec":{"unschedulable":true}})"));
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.taints("n0"), ElementsAre("memory-pressure:NoSchedule", "unschedulable:NoSchedule"));
  cluster.set_pressure("n0", "MemoryPressure", false);
  cluster.merge("/api/v1/nodes/n0", *api::parse_json(R"({"spec":{"unschedulable":false}})"));
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.taints("n0"), IsEmpty());
}

TEST_F(NodeLifecycle, NothingIsTaintedWhileEveryNodeIsSilent) {
  start(3);
  for (const char* node : {"n0", "n1", "n2"}) cluster.set_up(node, false);
  cluster.advance(minutes(10));
  for (const std::string node : {"n0", "n1", "n2"}) {
    EXPECT_EQ(cluster.ready_status(node), "Unknown");
    EXPECT_THAT(cluster.taints(node), Not(Contains(kSilent))) << node;
  }
  EXPECT_TRUE(set->node_lifecycle().monitor().in_master_disruption());
  cluster.set_up("n0", true);
  cluster.advance(seconds(6));
  EXPECT_FALSE(set->node_lifecycle().monitor().in_master_disruption());
  cluster.advance(minutes(2));
  EXPECT_THAT(cluster.taints("n1"), Contains(kSilent));  // one node reports: the others are really silent
}

TEST_F(NodeLifecycle, ASmallZoneThatMostlyFailsIsNotEvicted) {
  start(5);
  for (const char* node : {"n0", "n1", "n2"}) cluster.set_up(node, false);
  cluster.advance(minutes(5));
  for (const std::string node : {"n0", "n1", "n2"}) {
    EXPECT_EQ(cluster.ready_status(node), "Unknown");
    EXPECT_THAT(cluster.taints(node), Not(Contains(kSilent)));
  }
  EXPECT_THAT(cluster.events_about("n1"), Contains(Key("WaitingForTaint")));
}

TEST_F(NodeLifecycle, TaintsAreSpacedByTheRateOfTheZone) {
  start(8);
  for (const char* node : {"n0", "n1", "n2"}) cluster.set_up(node, false);
  const auto tainted = [this] {
    int count = 0;
    for (int i = 0; i < 8; ++i) count += static_cast<int>(cluster.taints(fmt::format("n{}", i)).contains(kSilent));
    return count;
  };
  cluster.advance(seconds(55));
  EXPECT_EQ(tainted(), 1);
  cluster.advance(seconds(10));
  EXPECT_EQ(tainted(), 2);
  cluster.advance(seconds(10));
  EXPECT_EQ(tainted(), 3);
}

TEST_F(NodeLifecycle, ABrokenLeaseWatchDoesNotMakeNodesSilent) {
  start(2);
  // Events get lost unnoticed; calls still work.
  cluster.cut(*set);
  cluster.advance(seconds(48));
  cluster.connect(*set);
  cluster.advance(seconds(20));
  EXPECT_EQ(cluster.ready_status("n0"), "True");
  EXPECT_EQ(cluster.ready_status("n1"), "True");
  EXPECT_THAT(cluster.taints("n0"), IsEmpty());
  cluster.advance(minutes(5));
  EXPECT_EQ(cluster.ready_status("n0"), "True");
}

TEST_F(NodeLifecycle, FailedWritesAreTriedAgain) {
  start(3);
  cluster.set_up("n1", false);
  cluster.fail(api::Method::kPatch, "/nodes/n1/status", 500, 3);
  cluster.fail(api::Method::kPatch, "/nodes/n1", 409, 2);
  cluster.advance(seconds(61));
  EXPECT_EQ(cluster.ready_status("n1"), "Unknown");
  EXPECT_THAT(cluster.taints("n1"), ElementsAre(kSilent, "unreachable:NoSchedule"));
}

TEST_F(NodeLifecycle, LostAnswersChangeNothing) {
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(2));
  cluster.set_up("n1", false);
  cluster.fail(api::Method::kPatch, "/nodes/n1/status", TestCluster::kLostAnswer, 1);
  cluster.advance(seconds(75));
  EXPECT_EQ(cluster.ready_status("n1"), "Unknown");
  EXPECT_THAT(cluster.events_about("n1"), Contains(Key("NodeNotReady")));
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("NodeNotReady")));
  cluster.fail(api::Method::kPatch, "/nodes/n1", TestCluster::kLostAnswer, 1);
  cluster.advance(seconds(30));
  EXPECT_THAT(cluster.taints("n1"), ElementsAre(kSilent, "unreachable:NoSchedule"));
}

TEST_F(NodeLifecycle, AFailedDeletionIsTriedAgain) {
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(2));
  cluster.fail(api::Method::kDelete, "/pods/web", 500, 7);
  cluster.merge("/api/v1/nodes/n1", *api::parse_json(R"({"spec":{"taints":[{"key":"drain","effect":"NoExecute"}]}})"));
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
}

TEST_F(NodeLifecycle, AConflictDoesNotMeanThatThePodIsGone) {
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(2));
  cluster.fail(api::Method::kPatch, "/pods/web/status", 409, 2);
  cluster.fail(api::Method::kDelete, "/pods/web", 409, 1);
  cluster.merge("/api/v1/nodes/n1", *api::parse_json(R"({"spec":{"taints":[{"key":"drain","effect":"NoExecute"}]}})"));
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
}

TEST_F(NodeLifecycle, ARestartKeepsTheTaintsAndTheTimeAlreadyWaited) {
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.set_up("n1", false);
  cluster.advance(seconds(65));
  ASSERT_THAT(cluster.taints("n1"), Contains(kSilent));
  cluster.advance(seconds(150));
  cluster.stop(*set);
  const auto second = make(8);
  cluster.run(*second);
  cluster.advance(seconds(100));
  EXPECT_THAT(cluster.taints("n1"), Contains(kSilent));
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
  cluster.advance(seconds(55));
  EXPECT_NE(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
  cluster.stop(*second);
}

TEST_F(NodeLifecycle, AfterARestartRecoveredNodesKeepTheirPods) {
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.set_up("n1", false);
  cluster.advance(seconds(65));
  cluster.stop(*set);
  cluster.advance(minutes(20));
  cluster.set_up("n1", true);
  const auto second = make(8);
  cluster.run(*second);
  cluster.advance(minutes(2));
  EXPECT_THAT(cluster.taints("n1"), IsEmpty());
  EXPECT_THAT(cluster.pod_names(), ElementsAre("web"));
  cluster.stop(*second);
}

TEST_F(NodeLifecycle, LegacyModeDeletesThePodsAfterTheTimeout) {
  options.node_lifecycle.profile =
      lifecycle::upstream_profile(lifecycle::Line::kV1_19, lifecycle::EvictionMode::kLegacy);
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.create("/apis/apps/v1/namespaces/default/daemonsets", workload_json("DaemonSet", "agent"));
  cluster.create("/api/v1/namespaces/default/pods", pod_json("other", "64Mi", "n2"));
  cluster.advance(seconds(3));
  cluster.set_up("n1", false);
  const auto is_terminating = [this] {
    return !cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}).empty();
  };
  cluster.advance(seconds(290));
  EXPECT_EQ(cluster.ready_status("n1"), "Unknown");
  EXPECT_THAT(cluster.taints("n1"), ElementsAre("unreachable:NoSchedule"));
  EXPECT_FALSE(is_terminating());
  cluster.advance(seconds(20));
  EXPECT_TRUE(is_terminating());
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"status", "reason"}), "NodeLost");
  EXPECT_THAT(cluster.events_about("web"), Contains(Pair("NodeControllerEviction", 1)));
  EXPECT_THAT(cluster.events_about("n1"), Contains(Key("DeletingAllPods")));
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/other").string_at({"metadata", "deletionTimestamp"}), "");
  for (const Json& pod : cluster.list("/api/v1/namespaces/default/pods?labelSelector=app%3Dagent")) {
    EXPECT_EQ(pod.string_at({"metadata", "deletionTimestamp"}), "");
  }

  cluster.create("/api/v1/namespaces/default/pods", pod_json("late", "64Mi", "n1"));
  cluster.advance(seconds(6));
  EXPECT_NE(cluster.get("/api/v1/namespaces/default/pods/late").string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(NodeLifecycle, LegacyModeMarksAPodThatIsBoundWhileOthersOfItsNodeAreEvicted) {
  options.node_lifecycle.profile =
      lifecycle::upstream_profile(lifecycle::Line::kV1_19, lifecycle::EvictionMode::kLegacy);
  start(3);
  const std::string pods = "/api/v1/namespaces/default/pods";
  cluster.create(pods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.set_up("n1", false);
  cluster.advance(seconds(310));
  ASSERT_NE(cluster.get(pods + "/web").string_at({"metadata", "deletionTimestamp"}), "");

  cluster.delay_answers(api::Method::kDelete, "/pods/first", seconds(3));
  cluster.create(pods, pod_json("first", "64Mi", "n1"));
  cluster.create(pods, pod_json("second"));
  cluster.merge(pods + "/second/status",
                *api::parse_json(R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})"));
  cluster.advance(milliseconds(200));  // the deletion of "first" is under way
  ASSERT_NE(cluster.get(pods + "/first").string_at({"metadata", "deletionTimestamp"}), "");
  cluster.create(pods + "/second/binding", *api::parse_json(R"({"target":{"kind":"Node","name":"n1"}})"));
  cluster.advance(milliseconds(200));
  const auto is_ready = [&] {
    for (const Json& condition : *cluster.get(pods + "/second").at({"status", "conditions"})->if_array()) {
      if (condition.string_at({"type"}) == "Ready") return std::string(condition.string_at({"status"}));
    }
    return std::string();
  };
  EXPECT_EQ(is_ready(), "False");
  cluster.advance(seconds(15));  // the next pass deletes it
  EXPECT_NE(cluster.get(pods + "/second").string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(NodeLifecycle, LegacyModeEvictsANodeWhoseTurnIsDuringAnEarlierEviction) {
  options.node_lifecycle.profile =
      lifecycle::upstream_profile(lifecycle::Line::kV1_19, lifecycle::EvictionMode::kLegacy);
  options.node_lifecycle.monitor.pod_eviction_timeout = seconds(10);
  start(3);
  const std::string pods = "/api/v1/namespaces/default/pods";
  cluster.create(pods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.set_up("n1", false);
  cluster.advance(seconds(100));
  ASSERT_NE(cluster.get(pods + "/web").string_at({"metadata", "deletionTimestamp"}), "");

  // The node recovers and fails again while its pods are still being deleted, one after the other.
  cluster.delay_answers(api::Method::kDelete, "/pods/slow", seconds(9));
  for (int i = 0; i < 20; ++i) {
    const std::string name = fmt::format("slow-{:02}", i);
    cluster.create(pods, pod_json(name, "64Mi", "n1"));
    cluster.merge(pods + "/" + name + "/status", *api::parse_json(R"({"status":{"reason":"NodeLost"}})"));
  }
  cluster.advance(seconds(35));
  cluster.set_up("n1", true);
  cluster.advance(seconds(15));
  ASSERT_EQ(cluster.ready_status("n1"), "True");
  cluster.create(pods, pod_json("late", "64Mi", "n1"));
  cluster.advance(seconds(5));
  cluster.set_up("n1", false);
  cluster.advance(seconds(75));
  ASSERT_EQ(cluster.ready_status("n1"), "Unknown");
  EXPECT_EQ(cluster.get(pods + "/late").string_at({"metadata", "deletionTimestamp"}), "")
      << "the eviction is under way";
  cluster.advance(seconds(120));
  EXPECT_NE(cluster.get(pods + "/late").string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(NodeLifecycle, SameSeedSameRequests) {
  const auto run = [] {
    ControllerSet::Options defaults;
    telemetry::Registry registry;
    TestCluster world;
    ControllerSet controllers(defaults, Rng(11), telemetry::Log(), registry);
    for (int i = 0; i < 4; ++i) world.add_node(fmt::format("n{}", i));
    world.run(controllers);
    world.advance(seconds(20));
    world.set_up("n2", false);
    world.advance(minutes(3));
    world.stop(controllers);
    return world.requests;
  };
  EXPECT_EQ(run(), run());
}

TEST_F(NodeLifecycle, SilenceIsNoticedWhenTheGracePeriodEnds) {
  options.node_lifecycle.node_monitor_period = seconds(30);
  start(3);
  cluster.set_up("n1", false);
  const api::Json lease = cluster.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1");
  const auto renewed = api::parse_time(lease.string_at({"spec", "renewTime"}));
  ASSERT_TRUE(renewed.has_value());
  cluster.advance(*renewed + seconds(50) - cluster.now().wall);
  EXPECT_EQ(cluster.ready_status("n1"), "True");
  cluster.advance(milliseconds(250));
  EXPECT_EQ(cluster.ready_status("n1"), "Unknown");
}

TEST_F(NodeLifecycle, AStallOfMostHeartbeatsMarksNoNode) {
  options.brakes.stall_share = 0.5;
  options.brakes.stall_max = minutes(3);
  start(6);
  for (int i = 0; i < 4; ++i) cluster.set_up(fmt::format("n{}", i), false);
  cluster.advance(minutes(2));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cluster.ready_status(fmt::format("n{}", i)), "True");
  ASSERT_TRUE(set->gate().find("node/n0"));
  EXPECT_EQ(set->gate().find("node/n0")->reason.code, policy::ReasonCode::kHeartbeatStall);
  cluster.advance(minutes(3));  // long enough to be trusted
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cluster.ready_status(fmt::format("n{}", i)), "Unknown");
}

TEST_F(NodeLifecycle, TaintsAreLimitedOverAllZones) {
  options.brakes.taint.global = lifecycle::ActLimit{1, minutes(10)};
  for (const char* zone : {"a", "b", "c"}) {
    for (int i = 0; i < 3; ++i) cluster.add_node(fmt::format("{}{}", zone, i), {{"topology.kubernetes.io/zone", zone}});
  }
  start(0);
  for (const char* node : {"a0", "b0", "c0"}) cluster.set_up(node, false);
  cluster.advance(minutes(4));
  int tainted = 0;
  for (const char* node : {"a0", "b0", "c0"}) tainted += cluster.taints(node).contains(kSilent) ? 1 : 0;
  EXPECT_EQ(tainted, 1);
  cluster.advance(minutes(8));
  tainted = 0;
  for (const char* node : {"a0", "b0", "c0"}) tainted += cluster.taints(node).contains(kSilent) ? 1 : 0;
  EXPECT_EQ(tainted, 2);
}

TEST_F(NodeLifecycle, AHeldDeletionIsDroppedWhenTheNodeRecovers) {
  options.node_lifecycle.hold_config_map = "kube-system/spillway-hold";
  start(3);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "n1"));
  cluster.set_up("n1", false);
  cluster.advance(seconds(70));
  ASSERT_THAT(cluster.taints("n1"), Contains(kSilent));
  cluster.create("/api/v1/namespaces/kube-system/configmaps",
                 *api::parse_json(R"({"metadata":{"name":"spillway-hold"},"data":{"why":"network work"}})"));
  cluster.advance(minutes(8));
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
  ASSERT_TRUE(set->gate().find("pod/default/web"));
  cluster.set_up("n1", true);
  cluster.advance(seconds(11));
  cluster.remove("/api/v1/namespaces/kube-system/configmaps/spillway-hold");
  cluster.advance(minutes(1));
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
  EXPECT_FALSE(set->gate().find("pod/default/web"));
}

TEST_F(NodeLifecycle, DeletionsThatTheRateDelaysAreDroppedWhenTheNodeRecovers) {
  options.write_rate = client::ApiClient::Rate{.per_second = 2, .burst = 1};
  start(3);
  const int pods = 60;
  for (int i = 0; i < pods; ++i) {
    cluster.create("/api/v1/namespaces/default/pods", pod_json(fmt::format("web{:02}", i), "1Mi", "n1"));
  }
  const auto staying = [&] {
    int count = 0;
    for (const std::string& name : cluster.pod_names()) {
      const Json pod = cluster.get("/api/v1/namespaces/default/pods/" + name);
      count += pod.string_at({"metadata", "deletionTimestamp"}).empty() ? 1 : 0;
    }
    return count;
  };
  cluster.set_up("n1", false);
  cluster.advance(seconds(350));
  ASSERT_EQ(staying(), pods);
  const Instant late = cluster.now().mono + minutes(2);
  while (staying() == pods && cluster.now().mono < late) cluster.advance(seconds(1));
  cluster.set_up("n1", true);
  cluster.advance(minutes(1));
  // requests that were sent already are executed
  EXPECT_THAT(staying(), ::testing::AllOf(::testing::Gt(0), ::testing::Lt(pods)));
  cluster.set_up("n1", false);
  cluster.advance(minutes(9));
  EXPECT_EQ(staying(), 0);
}

TEST_F(NodeLifecycle, BudgetsAreRespectedOnRequest) {
  options.taint_eviction.respect_budgets = true;
  start(3);
  cluster.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", *api::parse_json(R"({
      "metadata":{"name":"all"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}}}})"));
  Json pod = pod_json("web", "64Mi", "n1");
  pod.make({"metadata", "labels", "app"}) = "web";
  cluster.create("/api/v1/namespaces/default/pods", pod);
  cluster.advance(seconds(20));
  cluster.set_up("n1", false);
  cluster.advance(minutes(8));
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
  ASSERT_TRUE(set->gate().find("pod/default/web"));
  // The controller knows the budget, so it sends no call in vain.
  EXPECT_EQ(
      policy::render(set->gate().find("pod/default/web")->reason),
      "budget-refuses why=exhausted budget=all desired_healthy_pods=1 current_healthy_pods=0 disruptions_allowed=0");
  cluster.remove("/apis/policy/v1/namespaces/default/poddisruptionbudgets/all");
  cluster.advance(seconds(10));
  EXPECT_NE(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(NodeLifecycle, ARefusedDeletionIsDroppedWhenTheNodeRecovers) {
  options.taint_eviction.respect_budgets = true;
  start(3);
  cluster.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", *api::parse_json(R"({
      "metadata":{"name":"all"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}}}})"));
  Json pod = pod_json("web", "64Mi", "n1");
  pod.make({"metadata", "labels", "app"}) = "web";
  cluster.create("/api/v1/namespaces/default/pods", pod);
  cluster.advance(seconds(20));
  cluster.set_up("n1", false);
  cluster.advance(minutes(8));
  ASSERT_TRUE(set->gate().find("pod/default/web"));
  cluster.set_up("n1", true);
  cluster.advance(seconds(12));
  cluster.remove("/apis/policy/v1/namespaces/default/poddisruptionbudgets/all");
  cluster.advance(minutes(10));  // nothing is left of the act that was refused
  EXPECT_EQ(cluster.get("/api/v1/namespaces/default/pods/web").string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(NodeLifecycle, APodWaitsForRoomForItsReplacementOnRequest) {
  options.taint_eviction.wait_for_replacement = true;
  start(3);
  cluster.create("/apis/apps/v1/namespaces/default/replicasets", workload_json("ReplicaSet", "web", 1));
  cluster.advance(seconds(2));
  const std::string pod = "/api/v1/namespaces/default/pods/" + *cluster.pod_names().begin();
  cluster.create(pod + "/binding", *api::parse_json(R"({"target":{"kind":"Node","name":"n1"}})"));
  for (const char* node : {"n0", "n2"}) {
    cluster.merge(std::string("/api/v1/nodes/") + node, *api::parse_json(R"({"spec":{"unschedulable":true}})"));
  }
  cluster.advance(seconds(20));
  cluster.set_up("n1", false);
  cluster.advance(minutes(8));
  EXPECT_EQ(cluster.get(pod).string_at({"metadata", "deletionTimestamp"}), "");
  const std::string subject = "pod/default/" + pod.substr(pod.rfind('/') + 1);
  ASSERT_TRUE(set->gate().find(subject));
  EXPECT_EQ(set->gate().find(subject)->reason.code, policy::ReasonCode::kNoReplacement);
  cluster.merge("/api/v1/nodes/n0", *api::parse_json(R"({"spec":{"unschedulable":false}})"));
  cluster.advance(seconds(15));
  EXPECT_NE(cluster.get(pod).string_at({"metadata", "deletionTimestamp"}), "");
}

}  // namespace
}  // namespace spillway::controllers
