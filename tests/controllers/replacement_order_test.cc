// Pods of failed nodes that are replaced before they are deleted, with the real API server and scheduler: the order of
// things, what stays without room, nodes that recover, crashes in between, and a set controller that knows nothing.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"
#include "policy/workloads/replacement_first.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kPodList = "/api/v1/namespaces/default/pods";
const std::string kSets = "/apis/apps/v1/namespaces/default/replicasets";

class ReplacedFirst : public ::testing::Test {
 protected:
  ReplacedFirst() { options.taint_eviction.replace_before_deletion = true; }

  ~ReplacedFirst() override {
    if (set) cluster.stop(*set);
    if (scheduler) cluster.stop(*scheduler);
  }

  void run_controllers() {
    set = std::make_unique<ControllerSet>(options, Rng(7), telemetry::Log(), metrics);
    cluster.run(*set);
  }

  void run_scheduler() {
    scheduler = std::make_unique<Scheduler>(Scheduler::Options{}, Rng(4), telemetry::Log(), metrics);
    cluster.run(*scheduler);
  }

  void stop_scheduler() {
    cluster.stop(*scheduler);
    scheduler.reset();
  }

  void stop_controllers() {
    cluster.stop(*set);
    set.reset();
  }

  void create_set(const std::string& name, int replicas, const std::string& memory = "64Mi",
                  const std::string& priority_class = {}) {
    Json made = workload_json("ReplicaSet", name, replicas);
    Json container = Json::object({{"name", "main"}, {"image", "none"}});
    container.make({"resources", "requests", "memory"}) = memory;
    Json& spec = made.make({"spec", "template", "spec"});
    spec["containers"] = Json::array({std::move(container)});
    if (!priority_class.empty()) spec["priorityClassName"] = priority_class;
    cluster.create(kSets, made);
  }

  /// Names of the pods on that node that are not being deleted.
  std::vector<std::string> staying_on(const std::string& node) {
    std::vector<std::string> names;
    for (const Json& pod : cluster.list(kPodList)) {
      if (pod.string_at({"spec", "nodeName"}) != node || pod.at({"metadata", "deletionTimestamp"}) != nullptr) continue;
      names.emplace_back(pod.string_at({"metadata", "name"}));
    }
    return names;
  }

  bool is_marked(const std::string& pod) {
    const Json object = cluster.get(kPodList + "/" + pod);
    return object.at({"metadata", "annotations", std::string(workloads::kReplacementAnnotation)}) != nullptr;
  }

  int ready_pods() {
    int ready = 0;
    for (const Json& pod : cluster.list(kPodList)) {
      if (pod.string_at({"spec", "nodeName"}) == "n0" || pod.at({"metadata", "deletionTimestamp"}) != nullptr) continue;
      ready += pod.string_at({"status", "phase"}) == "Running" ? 1 : 0;
    }
    return ready;
  }

  /// n0 has the pods of the sets that `create` makes, and fails; then the others are added. Runs until the pods are
  /// due.
  template <typename Create>
  void fail_first_node(const std::vector<std::string>& others, const Create& create) {
    cluster.add_node("n0", {}, "4Gi");
    run_controllers();
    run_scheduler();
    cluster.advance(seconds(12));
    create();
    cluster.advance(seconds(5));
    for (const std::string& node : others) cluster.add_node(node);
    cluster.advance(seconds(12));
    cluster.set_up("n0", false);
    cluster.advance(seconds(300));
  }

  void advance_until_asked(const std::string& pod) {
    for (int i = 0; i < 200 && !is_marked(pod); ++i) cluster.advance(seconds(1));
    ASSERT_TRUE(is_marked(pod));
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  std::unique_ptr<ControllerSet> set;
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(ReplacedFirst, AMarkThatCannotBeWrittenHoldsNoPodForEver) {
  fail_first_node({"n1", "n2"}, [&] { create_set("web", 2); });
  for (const std::string& pod : staying_on("n0")) {
    cluster.fail(api::Method::kPatch, "/" + pod + "$", 403, 1'000'000);  // its status may still be patched
  }
  cluster.advance(seconds(100));
  EXPECT_THAT(staying_on("n0"), SizeIs(2)) << "a replacement has two minutes to be made";
  cluster.advance(minutes(3));
  EXPECT_THAT(staying_on("n0"), IsEmpty());
}

TEST_F(ReplacedFirst, OthersRunBeforeTheyGo) {
  fail_first_node({"n1", "n2"}, [&] { create_set("web", 3); });
  const std::vector<std::string> old = staying_on("n0");
  ASSERT_THAT(old, SizeIs(3));
  std::vector<int> ready_at_deletion;
  for (const std::string& pod : old) {
    cluster.before(api::Method::kDelete, kPodList + "/" + pod, [&] { ready_at_deletion.push_back(ready_pods()); });
  }
  cluster.advance(seconds(100));
  EXPECT_THAT(ready_at_deletion, ElementsAre(3, 3, 3));
  EXPECT_THAT(staying_on("n0"), IsEmpty());
  EXPECT_EQ(ready_pods(), 3);
  EXPECT_THAT(cluster.events_about(old.front()), Contains(Key("ReplacementAsked")));
  EXPECT_EQ(api::to_text(*cluster.get(kSets + "/web").at({"status", "replicas"})), "3");
  cluster.set_up("n0", true);
  cluster.advance(minutes(3));
  EXPECT_EQ(cluster.pod_names().size(), 3U) << "nothing is left over";
}

TEST_F(ReplacedFirst, WithoutTheFlagTheyGoFirst) {
  options.taint_eviction.replace_before_deletion = false;
  fail_first_node({"n1", "n2"}, [&] { create_set("web", 3); });
  std::vector<int> ready_at_deletion;
  for (const std::string& pod : staying_on("n0")) {
    cluster.before(api::Method::kDelete, kPodList + "/" + pod, [&] { ready_at_deletion.push_back(ready_pods()); });
  }
  cluster.advance(seconds(100));
  EXPECT_THAT(ready_at_deletion, Contains(0));
}

/// n1 has room for one of them: the one of the higher priority, though the other was there first.
TEST_F(ReplacedFirst, PodsWithoutRoomStayAndTheHigherPriorityHasTheFirstChoice) {
  cluster.create("/apis/scheduling.k8s.io/v1/priorityclasses",
                 *api::parse_json(R"({"metadata":{"name":"high"},"value":1000})"));
  fail_first_node({}, [&] {
    cluster.add_node("small", {}, "64Mi");  // one node is left: otherwise nothing would be done at all
    create_set("a-low", 1, "700Mi");
    create_set("b-high", 1, "700Mi", "high");
  });
  cluster.advance(minutes(10));
  const std::vector<std::string> old = staying_on("n0");
  ASSERT_THAT(old, SizeIs(2));
  const std::string& low = old[0];
  const std::string& high = old[1];
  EXPECT_FALSE(is_marked(low));
  EXPECT_FALSE(is_marked(high));
  EXPECT_THAT(cluster.events_about(high), Contains(Key("NoReplacement")));
  const auto why = set->report().explain_pod("default/" + low, cluster.now());
  ASSERT_TRUE(why);
  EXPECT_EQ(why->verdict, policy::Verdict::kWaits);
  EXPECT_EQ(why->reasons.front().code, policy::ReasonCode::kNoReplacement);
  cluster.add_node("n1");
  cluster.advance(minutes(3));
  EXPECT_THAT(staying_on("n0"), ElementsAre(low));
  EXPECT_FALSE(is_marked(low)) << "what it needs is taken";
  cluster.add_node("n2");
  cluster.advance(minutes(3));
  EXPECT_THAT(staying_on("n0"), IsEmpty());
  EXPECT_EQ(set->report().explain_pod("default/" + low, cluster.now()), std::nullopt);
}

TEST_F(ReplacedFirst, ARecoveredNodeKeepsItsPodWhileNoOtherRuns) {
  fail_first_node({"n1"}, [&] { create_set("web", 1); });
  const std::string old = staying_on("n0").front();
  stop_scheduler();
  advance_until_asked(old);
  cluster.advance(minutes(10));
  EXPECT_THAT(staying_on("n0"), ElementsAre(old)) << "its replacement has no node";
  const auto why = set->report().explain_pod("default/" + old, cluster.now());
  ASSERT_TRUE(why);
  EXPECT_EQ(policy::render(why->reasons.front()),
            "no-replacement replacement=not-placed wanted=1 made=1 placed=0 ready=0");
  EXPECT_THAT(cluster.pod_names(), SizeIs(2));
  cluster.set_up("n0", true);
  cluster.advance(seconds(30));
  EXPECT_FALSE(is_marked(old));
  EXPECT_THAT(cluster.pod_names(), ElementsAre(old)) << "the other one was the surplus";
  EXPECT_THAT(cluster.events_about(old), Contains(Key("ReplacementNotNeeded")));
}

TEST_F(ReplacedFirst, ACrashInBetweenIsNoticedByTheNextProcess) {
  fail_first_node({"n1"}, [&] { create_set("web", 1); });
  const std::string old = staying_on("n0").front();
  stop_scheduler();
  advance_until_asked(old);
  stop_controllers();
  run_controllers();
  cluster.advance(minutes(2));
  EXPECT_TRUE(is_marked(old));
  EXPECT_THAT(cluster.pod_names(), SizeIs(2)) << "the set still leaves it out";
  run_scheduler();
  cluster.advance(minutes(2));
  EXPECT_THAT(staying_on("n0"), IsEmpty());
  EXPECT_THAT(staying_on("n1"), SizeIs(1));
}

TEST_F(ReplacedFirst, AMarkThatIsNotToBeAnyMoreIsTakenBackAfterAStart) {
  fail_first_node({"n1"}, [&] { create_set("web", 1); });
  const std::string old = staying_on("n0").front();
  stop_scheduler();
  advance_until_asked(old);
  stop_controllers();
  cluster.set_up("n0", true);
  cluster.merge("/api/v1/nodes/n0", *api::parse_json(R"({"spec":{"taints":null}})"));
  cluster.advance(seconds(30));
  ASSERT_TRUE(is_marked(old));
  cluster.fail(api::Method::kPatch, kPodList + "/" + old, 500, 1);
  run_controllers();
  cluster.advance(seconds(30));
  EXPECT_FALSE(is_marked(old)) << "also after one attempt that failed";
  EXPECT_THAT(cluster.pod_names(), ElementsAre(old));
}

/// A stock kube-controller-manager does not know the mark.
TEST_F(ReplacedFirst, WithoutAReplacementItIsEvictedAsUpstream) {
  fail_first_node({"n1"}, [&] { create_set("web", 1); });
  const std::string old = staying_on("n0").front();
  cluster.fail(api::Method::kPost, kPodList, 403, 1000);
  advance_until_asked(old);
  cluster.advance(seconds(110));
  EXPECT_THAT(staying_on("n0"), ElementsAre(old));
  cluster.advance(seconds(20));
  EXPECT_THAT(staying_on("n0"), IsEmpty());
}

TEST_F(ReplacedFirst, ASetThatIsScaledDownNeedsNoReplacement) {
  fail_first_node({"n1"}, [&] { create_set("web", 1); });
  const std::string old = staying_on("n0").front();
  stop_scheduler();
  advance_until_asked(old);
  cluster.merge(kSets + "/web", *api::parse_json(R"({"spec":{"replicas":0}})"));
  cluster.advance(seconds(10));
  EXPECT_THAT(staying_on("n0"), IsEmpty());
}

TEST_F(ReplacedFirst, TheMarkOfATemplateIsNotTakenOver) {
  cluster.add_node("n0");
  run_controllers();
  run_scheduler();
  cluster.advance(seconds(12));
  Json made = workload_json("ReplicaSet", "web", 2);
  made.make({"spec", "template", "metadata", "annotations", std::string(workloads::kReplacementAnnotation)}) =
      "2026-11-26T12:00:00Z";
  cluster.create(kSets, made);
  cluster.advance(minutes(1));
  EXPECT_THAT(cluster.pod_names(), SizeIs(2));
  EXPECT_EQ(cluster.events_about("web")["SuccessfulCreate"], 2) << "none was made and taken away again";
}

/// A pod that an administrator's own taint evicts is deleted at once.
TEST_F(ReplacedFirst, IsForFailedNodesOnly) {
  cluster.add_node("n0");
  run_controllers();
  run_scheduler();
  cluster.advance(seconds(12));
  create_set("web", 1);
  cluster.advance(seconds(5));
  cluster.add_node("n1");
  cluster.advance(seconds(12));
  const std::string old = staying_on("n0").front();
  cluster.merge("/api/v1/nodes/n0", *api::parse_json(R"({"spec":{"taints":[{"key":"out","effect":"NoExecute"}]}})"));
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.pod_names(), Not(Contains(old)));
  EXPECT_THAT(cluster.events_about(old), Not(Contains(Key("ReplacementAsked"))));
}

}  // namespace
}  // namespace spillway::controllers
