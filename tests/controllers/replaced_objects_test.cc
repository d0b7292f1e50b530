// Between the look and the act the object goes, and another of its name comes, or its node turns Ready: what was
// decided about the one must not happen to the other.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::controllers {
namespace {

using api::Json;
using api::Method;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPods = "/api/v1/namespaces/default/pods";
const std::string kNodes = "/api/v1/nodes";
const std::string kReplicaSets = "/apis/apps/v1/namespaces/default/replicasets";
const std::string kDaemonSets = "/apis/apps/v1/namespaces/default/daemonsets";

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

class ReplacedObjects : public ::testing::Test {
 protected:
  void start(int nodes) {
    for (int i = 0; i < nodes; ++i) cluster.add_node(fmt::format("n{}", i));
    set = std::make_unique<ControllerSet>(options, Rng(7), telemetry::Log(), metrics);
    scheduler = std::make_unique<Scheduler>(Scheduler::Options{}, Rng(4), telemetry::Log(), metrics);
    cluster.run(*set);
    cluster.run(*scheduler);
    cluster.advance(seconds(12));
  }

  void TearDown() override {
    if (set) cluster.stop(*set);
    if (scheduler) cluster.stop(*scheduler);
  }

  /// Deletes the pod, and creates one of the same name on a healthy node.
  void replace_pod(const std::string& name, const std::string& node = "n0") {
    ++replacements;
    cluster.remove(kPods + "/" + name + "?gracePeriodSeconds=0");
    cluster.create(kPods, pod_json(name, "64Mi", node));
  }

  void replace_node(const std::string& name) {
    ++replacements;
    cluster.remove(kNodes + "/" + name);
    cluster.add_node(name);
  }

  /// Checks that the pod of that name runs and was not written.
  void expect_untouched(const std::string& name) {
    const Json pod = cluster.get(kPods + "/" + name);
    ASSERT_FALSE(pod.is_null()) << name << " is gone";
    EXPECT_EQ(pod.string_at({"metadata", "deletionTimestamp"}), "");
    EXPECT_NE(pod.string_at({"status", "phase"}), "Failed");
    EXPECT_EQ(pod.string_at({"status", "reason"}), "");
    EXPECT_THAT(api::to_text(pod), Not(HasSubstr("DisruptionTarget")));
  }

  void silence_until_tainted(const std::string& node) {
    cluster.set_up(node, false);
    cluster.advance(seconds(65));
    ASSERT_THAT(cluster.taints(node), Contains("unreachable:NoExecute"));
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  std::unique_ptr<ControllerSet> set;
  std::unique_ptr<Scheduler> scheduler;
  int replacements = 0;
};

TEST_F(ReplacedObjects, ATaintEvictionDoesNotDeleteTheNextPodOfThatName) {
  start(3);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.before(Method::kDelete, kPods + "/web", [this] { replace_pod("web"); });
  silence_until_tainted("n1");
  cluster.advance(minutes(6));
  EXPECT_EQ(replacements, 1);
  expect_untouched("web");
}

TEST_F(ReplacedObjects, ATaintEvictionDoesNotMarkTheNextPodOfThatName) {
  start(3);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  silence_until_tainted("n1");
  cluster.before(Method::kPatch, kPods + "/web/status", [this] { replace_pod("web"); });
  cluster.advance(minutes(6));
  EXPECT_EQ(replacements, 1);
  expect_untouched("web");
}

TEST_F(ReplacedObjects, AnEvictionWithinBudgetsLeavesTheNextPodOfThatName) {
  options.taint_eviction.respect_budgets = true;
  start(3);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.before(Method::kPost, kPods + "/web/eviction", [this] { replace_pod("web"); });
  silence_until_tainted("n1");
  cluster.advance(minutes(6));
  EXPECT_EQ(replacements, 1);
  expect_untouched("web");
}

TEST_F(ReplacedObjects, APodIsNotMarkedNotReadyForOneOfItsName) {
  start(3);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.before(Method::kPatch, kPods + "/web/status", [this] { replace_pod("web"); });
  int calls = 0;
  cluster.after(Method::kPatch, kPods + "/web/status", [this, &calls] {
    ++calls;
    EXPECT_THAT(api::to_text(cluster.get(kPods + "/web")), Not(HasSubstr(R"("status":"False","type":"Ready")")));
  });
  cluster.set_up("n1", false);
  cluster.advance(seconds(75));
  EXPECT_EQ(replacements, 1);
  EXPECT_EQ(calls, 1);
  const Json pod = cluster.get(kPods + "/web");
  EXPECT_EQ(pod.string_at({"status", "phase"}), "Running");
  EXPECT_THAT(api::to_text(*pod.at({"status", "conditions"})), Not(HasSubstr(R"("status":"False","type":"Ready")")));
}

TEST_F(ReplacedObjects, ANodeThatTurnsReadyMeanwhileIsNotTainted) {
  start(3);
  cluster.set_up("n1", false);
  cluster.before(Method::kPatch, kNodes + "/n1", [this] { cluster.set_up("n1", true); });
  for (int i = 0; i < 300; ++i) {
    cluster.advance(milliseconds(500));
    if (cluster.ready_status("n1") == "True") {
      ASSERT_THAT(cluster.taints("n1"), Not(Contains("unreachable:NoExecute"))) << i;
    }
  }
  EXPECT_THAT(cluster.taints("n1"), ::testing::IsEmpty());
}

TEST_F(ReplacedObjects, EveryTaintWriteMayConflictWithANodeThatTurnedReady) {
  for (int write = 0; write < 4; ++write) {
    SCOPED_TRACE(write);
    TearDown();
    set.reset();
    scheduler.reset();
    const std::string node = fmt::format("m{}", write);
    cluster.add_node(node);
    start(0);
    cluster.add_node(node + "-other");
    cluster.add_node(node + "-third");
    cluster.advance(seconds(12));
    for (int before = 0; before < write; ++before) cluster.before(Method::kPatch, kNodes + "/" + node, [] {});
    bool turned = false;
    cluster.before(Method::kPatch, kNodes + "/" + node, [this, node, &turned] {
      turned = true;
      cluster.set_up(node, true);
      cluster.after(Method::kPatch, kNodes + "/" + node, [this, node, taints = cluster.taints(node)] {
        for (const std::string& taint : cluster.taints(node))
          EXPECT_TRUE(taints.contains(taint)) << taint << " on a node that has turned Ready";
      });
    });
    cluster.set_up(node, false);
    cluster.advance(seconds(90));
    if (!turned) cluster.set_up(node, true);
    cluster.advance(seconds(2));
    ASSERT_EQ(cluster.ready_status(node), "True");
    EXPECT_THAT(cluster.taints(node), ::testing::IsEmpty());
  }
}

TEST_F(ReplacedObjects, ANodeOfTheSameNameIsNotTaintedForItsPredecessor) {
  start(3);
  cluster.set_up("n1", false);
  cluster.advance(seconds(40));
  cluster.before(Method::kPatch, kNodes + "/n1", [this] { replace_node("n1"); });
  cluster.advance(seconds(30));
  EXPECT_EQ(replacements, 1);
  EXPECT_EQ(cluster.ready_status("n1"), "True");
  EXPECT_THAT(cluster.taints("n1"), ::testing::IsEmpty());
}

TEST_F(ReplacedObjects, ANodeOfTheSameNameIsNotUnknownForItsPredecessor) {
  start(3);
  cluster.set_up("n1", false);
  cluster.before(Method::kPatch, kNodes + "/n1/status", [this] { replace_node("n1"); });
  for (int i = 0; i < 200; ++i) {
    cluster.advance(milliseconds(500));
    if (replacements == 0) continue;
    ASSERT_EQ(cluster.ready_status("n1"), "True") << i;
    ASSERT_THAT(cluster.taints("n1"), Not(Contains("unreachable:NoExecute")));
  }
  EXPECT_EQ(replacements, 1);
}

TEST_F(ReplacedObjects, ANodeThatPostsMeanwhileIsNotUnknown) {
  start(3);
  cluster.set_up("n1", false);
  bool posted = false;
  cluster.before(Method::kPatch, kNodes + "/n1/status", [this, &posted] {
    posted = true;
    cluster.set_up("n1", true);
  });
  for (int i = 0; i < 200; ++i) {
    cluster.advance(milliseconds(500));
    ASSERT_EQ(cluster.ready_status("n1"), "True") << i;
  }
  EXPECT_TRUE(posted);
  EXPECT_THAT(cluster.taints("n1"), ::testing::IsEmpty());
}

TEST_F(ReplacedObjects, PodsOfANodeThatWasCreatedAgainStay) {
  start(2);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.remove(kNodes + "/n1");
  cluster.before(Method::kGet, kNodes + "/n1", [this] {
    ++replacements;
    cluster.add_node("n1");
  });
  cluster.advance(minutes(3));
  EXPECT_EQ(replacements, 1);
  expect_untouched("web");
}

TEST_F(ReplacedObjects, AnOrphanIsNotFinishedForTheNextPodOfThatName) {
  start(2);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.remove(kNodes + "/n1");
  cluster.before(Method::kPatch, kPods + "/web/status", [this] { replace_pod("web"); });
  cluster.advance(minutes(3));
  EXPECT_EQ(replacements, 1);
  expect_untouched("web");
}

TEST_F(ReplacedObjects, AnOrphanIsNotDeletedForTheNextPodOfThatName) {
  start(2);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.remove(kNodes + "/n1");
  cluster.before(Method::kDelete, kPods + "/web", [this] { replace_pod("web"); });
  cluster.advance(minutes(3));
  EXPECT_EQ(replacements, 1);
  expect_untouched("web");
}

TEST_F(ReplacedObjects, ASurplusPodIsNotDeletedForTheNextOfThatName) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 1));
  cluster.advance(seconds(5));
  const std::string name = *cluster.pod_names().begin();
  cluster.before(Method::kDelete, kPods + "/" + name, [this, name] { replace_pod(name); });
  cluster.merge(kReplicaSets + "/web", json(R"({"spec":{"replicas":0}})"));
  cluster.advance(seconds(30));
  EXPECT_EQ(replacements, 1);
  expect_untouched(name);
}

TEST_F(ReplacedObjects, ADaemonPodIsNotDeletedForTheNextOfThatName) {
  start(1);
  cluster.create(kDaemonSets, workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(5));
  ASSERT_EQ(cluster.pod_names().size(), 1U);
  const std::string name = *cluster.pod_names().begin();
  cluster.before(Method::kDelete, kPods + "/" + name, [this, name] { replace_pod(name); });
  cluster.merge(kDaemonSets + "/agent", json(R"({"spec":{"template":{"spec":{"nodeSelector":{"there":"is-none"}}}}})"));
  cluster.advance(seconds(30));
  EXPECT_EQ(replacements, 1);
  expect_untouched(name);
}

TEST_F(ReplacedObjects, AnOrphanIsNotAdoptedForTheNextOfThatName) {
  start(1);
  Json orphan = pod_json("orphan", "64Mi", "n0");
  orphan.make({"metadata", "labels"})["app"] = "web";
  cluster.create(kPods, orphan);
  cluster.advance(seconds(2));
  cluster.before(Method::kPatch, kPods + "/orphan", [this] { replace_pod("orphan"); });
  int calls = 0;
  cluster.after(Method::kPatch, kPods + "/orphan", [this, &calls] {
    ++calls;
    EXPECT_EQ(cluster.get(kPods + "/orphan").at({"metadata", "ownerReferences"}), nullptr);
  });
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 1));
  cluster.advance(seconds(30));
  EXPECT_EQ(replacements, 1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cluster.get(kPods + "/orphan").at({"metadata", "ownerReferences"}), nullptr)
      << "it has no label of the set";
  EXPECT_EQ(cluster.pod_names().size(), 2U);
}

TEST_F(ReplacedObjects, ABindingIsNotMadeForTheNextPodOfThatName) {
  start(1);
  cluster.before(Method::kPost, kPods + "/web/binding", [this] {
    ++replacements;
    cluster.remove(kPods + "/web");
    Json picky = pod_json("web");
    picky.make({"spec", "nodeSelector"})["there"] = "is-none";
    cluster.create(kPods, picky);
  });
  cluster.create(kPods, pod_json("web"));
  cluster.advance(seconds(30));
  EXPECT_EQ(replacements, 1);
  EXPECT_EQ(cluster.get(kPods + "/web").string_at({"spec", "nodeName"}), "");
}

TEST_F(ReplacedObjects, ASetOfTheSameNameMakesItsOwnPods) {
  start(2);
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 2));
  cluster.advance(seconds(5));
  cluster.delay_answers(Method::kPost, "/namespaces/default/pods", milliseconds(300));
  cluster.merge(kReplicaSets + "/web", json(R"({"spec":{"replicas":8}})"));
  cluster.advance(milliseconds(400));  // some deletions are under way
  cluster.remove(kReplicaSets + "/web");
  cluster.create(kReplicaSets, workload_json("ReplicaSet", "web", 3));
  const auto creations = [this] { return std::ranges::count(cluster.requests, "POST " + kPods); };
  const auto before = creations();
  cluster.advance(seconds(30));
  const std::string uid(cluster.get(kReplicaSets + "/web").string_at({"metadata", "uid"}));
  int own = 0;
  for (const Json& pod : cluster.list(kPods)) {
    const Json* owners = pod.at({"metadata", "ownerReferences"});
    ASSERT_NE(owners, nullptr);
    EXPECT_EQ((*owners->if_array())[0].string_at({"uid"}), uid) << "of the set that is gone";
    ++own;
  }
  EXPECT_EQ(own, 3);
  EXPECT_EQ(creations() - before, 3) << "the rest of what the set that is gone had begun";
}

}  // namespace
}  // namespace spillway::controllers
