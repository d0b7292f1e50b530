// Answers that come late, twice or never, and events that are lost: never a pod too many, and in the end the right
// number; no node is taken for dead because this process gets no events.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace spillway::controllers {
namespace {

using api::Json;
using api::Method;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kPods = "/api/v1/namespaces/default/pods";
const std::string kCreations = "/namespaces/default/pods";
const std::string kReplicaSets = "/apis/apps/v1/namespaces/default/replicasets";
const std::string kDaemonSets = "/apis/apps/v1/namespaces/default/daemonsets";

class LostEvents : public ::testing::Test {
 protected:
  void start(int nodes) {
    for (int i = 0; i < nodes; ++i) cluster.add_node(fmt::format("n{}", i), {}, "16Gi");
    set = std::make_unique<ControllerSet>(options, Rng(7), telemetry::Log(), metrics);
    scheduler = std::make_unique<Scheduler>(Scheduler::Options{}, Rng(4), telemetry::Log(), metrics);
    cluster.run(*set);
    cluster.run(*scheduler);
    cluster.advance(seconds(12));
  }

  void TearDown() override {
    cluster.stop(*set);
    cluster.stop(*scheduler);
  }

  /// Advances the time; checks that the number of pods never exceeds `most`.
  void advance_without_surplus(Duration by, std::size_t most) {
    for (Duration passed{}; passed < by; passed += milliseconds(500)) {
      cluster.advance(milliseconds(500));
      ASSERT_LE(cluster.pod_names().size(), most) << "after " << passed / seconds(1) << " s";
    }
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  std::unique_ptr<ControllerSet> set;
  std::unique_ptr<Scheduler> scheduler;
};

/// A call times out after ten seconds; it takes effect nevertheless.
TEST_F(LostEvents, AnAnswerLaterThanTheTimeOutMakesNoPodTooMany) {
  start(2);
  cluster.delay_answers(Method::kPost, kCreations, seconds(12));
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 3));
  advance_without_surplus(minutes(4), 3);
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
}

/// The event arrives after the time-out of the call that created the pod, not before.
TEST_F(LostEvents, ALostAnswerAndALateEventMakeNoPodTooMany) {
  start(2);
  cluster.delay_events("/api/v1/pods", seconds(15));
  cluster.fail(Method::kPost, kCreations, TestCluster::kLostAnswer, 1);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 3));
  advance_without_surplus(minutes(5), 3);
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
}

TEST_F(LostEvents, ALostAnswerAndALateEventMakeNoDaemonPodTooMany) {
  start(3);
  cluster.delay_events("/api/v1/pods", seconds(15));
  cluster.fail(Method::kPost, kCreations, TestCluster::kLostAnswer, 1);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  advance_without_surplus(minutes(5), 3);
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
}

TEST_F(LostEvents, ALostAnswerToADeletionRemovesNoPodTooMany) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 6));
  cluster.advance(seconds(5));
  ASSERT_THAT(cluster.pod_names(), SizeIs(6));
  cluster.delay_events("/api/v1/pods", seconds(15));
  cluster.fail(Method::kDelete, kCreations, TestCluster::kLostAnswer, 2);
  cluster.merge(kReplicaSets + "/web", *api::parse_json(R"({"spec":{"replicas":3}})"));
  for (int i = 0; i < 300; ++i) {
    cluster.advance(milliseconds(500));
    ASSERT_GE(cluster.pod_names().size(), 3U) << i;
  }
  EXPECT_THAT(cluster.pod_names(), SizeIs(3));
}

/// The set changes repeatedly before an event shows that the pods are gone.
TEST_F(LostEvents, ADeletionIsAskedForOnce) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 6));
  cluster.advance(seconds(5));
  ASSERT_THAT(cluster.pod_names(), SizeIs(6));
  cluster.delay_events("/api/v1/pods", seconds(15));
  cluster.requests.clear();
  cluster.merge(kReplicaSets + "/web", *api::parse_json(R"({"spec":{"replicas":3}})"));
  for (int i = 0; i < 5; ++i) {
    cluster.advance(seconds(1));
    cluster.merge(kReplicaSets + "/web",
                  *api::parse_json(fmt::format(R"({{"metadata":{{"labels":{{"turn":"{}"}}}}}})", i)));
  }
  cluster.advance(seconds(30));
  EXPECT_EQ(std::ranges::count_if(cluster.requests,
                                  [](const std::string& request) {
                                    return request.starts_with("DELETE ") && request.contains("/pods/");
                                  }),
            3);
}

TEST_F(LostEvents, RepeatedAnswersCountOnce) {
  start(2);
  cluster.repeat_answers();
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 10));
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  advance_without_surplus(seconds(30), 12);
  EXPECT_THAT(cluster.pod_names(), SizeIs(12));
  cluster.merge(kReplicaSets + "/web", *api::parse_json(R"({"spec":{"replicas":4}})"));
  cluster.advance(seconds(30));
  EXPECT_THAT(cluster.pod_names(), SizeIs(6));
  EXPECT_EQ(cluster.events_about("web")["SuccessfulCreate"], 10);
}

/// A set gives up waiting for an event after five minutes.
TEST_F(LostEvents, ASetWhosePodIsNeverSeenGoesOnAfterFiveMinutes) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 2));
  cluster.advance(seconds(5));
  const auto first = cluster.pod_names();
  // The events of a pod's creation and deletion are lost.
  std::string unseen;
  cluster.before(Method::kPost, kPods, [&] { cluster.swallow_events("/api/v1/pods", 1'000); });
  cluster.merge(kReplicaSets + "/web", *api::parse_json(R"({"spec":{"replicas":3}})"));
  cluster.advance(seconds(2));
  for (const std::string& name : cluster.pod_names()) {
    if (!first.contains(name)) unseen = name;
  }
  ASSERT_NE(unseen, "");
  cluster.remove(kPods + "/" + unseen + "?gracePeriodSeconds=0");
  cluster.swallow_nothing();
  cluster.advance(minutes(4));
  EXPECT_THAT(cluster.pod_names(), SizeIs(2)) << "it waits for the pod it made";
  cluster.advance(minutes(1) + seconds(10));
  EXPECT_THAT(cluster.pod_names(), SizeIs(3)) << "although nothing else happens";
}

/// The same, but the watch stays silent until the pods are listed anew: the list says that the pod has gone.
TEST_F(LostEvents, AListWithoutThePodThatWasMadeSaysThatItHasGone) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 2));
  cluster.advance(seconds(5));
  const auto first = cluster.pod_names();
  std::string unseen;
  cluster.before(Method::kPost, kPods, [&] { cluster.swallow_events("/api/v1/pods", 1'000'000); });
  cluster.merge(kReplicaSets + "/web", *api::parse_json(R"({"spec":{"replicas":3}})"));
  cluster.advance(seconds(2));
  for (const std::string& name : cluster.pod_names()) {
    if (!first.contains(name)) unseen = name;
  }
  ASSERT_NE(unseen, "");
  cluster.remove(kPods + "/" + unseen + "?gracePeriodSeconds=0");
  cluster.advance(minutes(2) + seconds(40));
  EXPECT_THAT(cluster.pod_names(), SizeIs(2)) << "nothing has told that the pod is gone";
  advance_without_surplus(minutes(1), 3);
  EXPECT_THAT(cluster.pod_names(), SizeIs(3)) << "two silences of the watch, and a list";
}

/// Its pod goes just before it is deleted, and the event arrives before the answer: meanwhile fewer pods are wanted.
TEST_F(LostEvents, APodThatIsGoneAlreadyKeepsNoOtherFromGoing) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 2));
  cluster.advance(seconds(5));
  ASSERT_THAT(cluster.pod_names(), SizeIs(2));
  cluster.delay_answers(Method::kDelete, "/pods/", seconds(3));
  for (const std::string& name : cluster.pod_names()) {
    const std::string path = kPods + "/" + name;
    cluster.before(Method::kDelete, path, [this, path] { cluster.remove(path + "?gracePeriodSeconds=0"); });
  }
  cluster.merge(kReplicaSets + "/web", *api::parse_json(R"({"spec":{"replicas":1}})"));
  cluster.advance(seconds(1));
  ASSERT_THAT(cluster.pod_names(), SizeIs(1));
  cluster.merge(kReplicaSets + "/web", *api::parse_json(R"({"spec":{"replicas":0}})"));
  cluster.advance(seconds(30));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
}

/// The same with a DaemonSet: its pod goes just before it is deleted, and the node has none until the next sync of the
/// set.
TEST_F(LostEvents, ADaemonPodThatIsGoneAlreadyGetsASuccessor) {
  start(1);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(5));
  const std::set<std::string> before = cluster.pod_names();
  ASSERT_THAT(before, SizeIs(1));
  const std::string path = kPods + "/" + *before.begin();
  cluster.delay_answers(Method::kDelete, "/pods/", seconds(3));
  cluster.before(Method::kDelete, path, [this, path] { cluster.remove(path + "?gracePeriodSeconds=0"); });
  cluster.merge(kDaemonSets + "/agent", *api::parse_json(R"({"spec":{"template":{"metadata":{"labels":{"v":"2"}}}}})"));
  cluster.advance(seconds(30));
  ASSERT_THAT(cluster.pod_names(), SizeIs(1));
  EXPECT_NE(cluster.pod_names(), before);
}

/// Nothing arrives from node n0 and its lease, while all other events do.
class UnheardNode : public LostEvents {
 protected:
  void deafen() {
    start(4);
    for (const char* part : {"/api/v1/nodes", "/leases"}) cluster.swallow_events(part, 1'000'000, R"("name":"n0")");
  }

  void expect_alive(Duration during) {
    for (Duration passed{}; passed < during; passed += seconds(5)) {
      cluster.advance(seconds(5));
      ASSERT_EQ(cluster.ready_status("n0"), "True") << passed / seconds(1) << " s";
      ASSERT_THAT(cluster.taints("n0"), IsEmpty());
    }
  }
};

TEST_F(UnheardNode, ItsLeaseIsReadBeforeItIsUnknown) {
  deafen();
  expect_alive(minutes(4));
}

/// Nothing of the node itself has changed, so that nothing but its lease speaks against the write.
TEST_F(UnheardNode, ItsLeaseIsReadAlthoughItsStatusIsOld) {
  start(4);
  cluster.renew_lease_only("n0");
  cluster.advance(seconds(12));
  cluster.swallow_events("/leases", 1'000'000, R"("name":"n0")");
  expect_alive(minutes(4));
}

TEST_F(UnheardNode, ALeaseThatCannotBeReadIsNotSilenceAlthoughItsStatusIsOld) {
  start(4);
  cluster.renew_lease_only("n0");
  cluster.advance(seconds(12));
  cluster.swallow_events("/leases", 1'000'000, R"("name":"n0")");
  cluster.fail(Method::kGet, "/leases/n0", 500, 1'000'000);
  expect_alive(minutes(4));
}

/// A lease that cannot be read is unknown: it does not count as silence.
TEST_F(UnheardNode, ALeaseThatCannotBeReadIsNotSilence) {
  deafen();
  cluster.fail(Method::kGet, "/leases/n0", 500, 1'000'000);
  expect_alive(minutes(4));
}

TEST_F(UnheardNode, ALeaseWhoseReadIsNotAnsweredIsNotSilence) {
  deafen();
  cluster.fail(Method::kGet, "/leases/n0", TestCluster::kLostAnswer, 1'000'000);
  expect_alive(minutes(4));
}

/// But a lease that is read and is old, is.
TEST_F(UnheardNode, ALeaseThatIsReadAndOldIsSilence) {
  deafen();
  cluster.set_up("n0", false);
  cluster.advance(seconds(75));
  EXPECT_EQ(cluster.ready_status("n0"), "Unknown");
}

}  // namespace
}  // namespace spillway::controllers
