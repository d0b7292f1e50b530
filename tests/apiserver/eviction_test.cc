// Evictions are limited by the pods that the answering server sees, not only by the status of the budget: the
// controller that writes the status may be late, or away.
#include "apiserver/shared_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {

namespace {

using api::Method;
using ::testing::HasSubstr;

const std::string kEvictedPods = "/api/v1/namespaces/default/pods";
const std::string kEvictionBudgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// Two servers; the first is active, until the test ends that.
class Evictions : public ::testing::Test {
 protected:
  Evictions() { a.api->act(true, all.now); }

  void protect(const std::string& spec) {
    const Answer answer =
        all.call(a, Method::kPost, kEvictionBudgets,
                 R"({"metadata":{"name":"pdb"},"spec":{"selector":{"matchLabels":{"app":"web"}},)" + spec + "}}");
    ASSERT_EQ(answer.code, 201) << answer.text;
  }

  void create(const std::string& name, const std::string& owners = {}) {
    const Answer answer = all.call(a, Method::kPost, kEvictedPods,
                                   R"({"metadata":{"name":")" + name + R"(","labels":{"app":"web"})" + owners +
                                       R"(},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}})");
    ASSERT_EQ(answer.code, 201) << answer.text;
    report(name, true);
  }

  /// A ReplicaSet of three, for create().
  std::string replica_set_of_three() {
    const Answer set = all.call(
        a, Method::kPost, "/apis/apps/v1/namespaces/default/replicasets",
        R"({"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
    EXPECT_EQ(set.code, 201) << set.text;
    return R"(,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","controller":true,"uid":")" +
           set.string_at({"metadata", "uid"}) + "\"}]";
  }

  /// Reports a running pod's status, as its agent or the controller of its node does.
  void report(const std::string& name, bool ready) {
    auto sink = std::make_shared<TestSink>();
    a.api->handle({Method::kPatch,
                   kEvictedPods + "/" + name + "/status",
                   {{"content-type", "application/merge-patch+json"}},
                   R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":")" +
                       std::string(ready ? "True" : "False") + R"("}]}})"},
                  kAdmin, sink, all.now);
    all.run_until_idle();
    ASSERT_EQ(SharedServers::answer_of(*sink).code, 200);
  }

  /// The status of the budget is left as it is from here on.
  void stop_counting() {
    all.advance(seconds(2));
    a.api->act(false, all.now);
    b.view.late = true;
  }

  static std::string eviction(const std::string& name, const std::string& options = "{}") {
    return R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":")" + name +
           R"(","namespace":"default"},"deleteOptions":)" + options + "}";
  }

  Answer evict(const std::string& name, const std::string& options = "{}") {
    return all.call(b, Method::kPost, kEvictedPods + "/" + name + "/eviction", eviction(name, options));
  }

  std::int64_t number(const char* member) {
    const Answer budget = all.call(a, Method::kGet, kEvictionBudgets + "/pdb");
    const api::Json* value = budget.body.at({"status", member});
    return value == nullptr ? -1 : value->if_int64().value_or(-1);
  }

  SharedServers all;
  SharedServers::Server& a = all.add();
  SharedServers::Server& b = all.add();
};

TEST_F(Evictions, CountHealthyPodsWithoutTheController) {
  for (const char* name : {"p1", "p2", "p3", "p4", "p5", "p6"}) create(name);
  protect(R"("minAvailable":4)");
  stop_counting();
  ASSERT_EQ(number("disruptionsAllowed"), 2);
  report("p5", false);
  report("p6", false);
  const Answer refused = evict("p1");
  EXPECT_EQ(refused.code, 429) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("The disruption budget pdb needs 4 healthy pods and has 4 currently"));
  EXPECT_EQ(evict("p1", R"({"dryRun":["All"]})").code, 429);
  EXPECT_EQ(number("disruptionsAllowed"), 2) << "a refusal writes nothing";

  report("p5", true);
  EXPECT_EQ(evict("p1").code, 201);
  EXPECT_EQ(number("disruptionsAllowed"), 0) << "what is left of the one that the count allowed";
  EXPECT_EQ(evict("p2").code, 429);
}

TEST_F(Evictions, SayWhatTheBudgetsControllerSays) {
  for (const char* name : {"p1", "p2", "p3"}) create(name);
  protect(R"("minAvailable":1)");
  stop_counting();
  const auto refusal = [&](std::string_view reason, std::string_view message) {
    const std::string condition = fmt::format(
        R"({{"type":"DisruptionAllowed","status":"False","reason":"{}","message":"{}",
            "lastTransitionTime":"2026-01-01T00:00:00Z"}})",
        reason, message);
    auto sink = std::make_shared<TestSink>();
    a.api->handle({Method::kPatch,
                   kEvictionBudgets + "/pdb/status",
                   {{"content-type", "application/merge-patch+json"}},
                   R"({"status":{"disruptionsAllowed":0,"conditions":[)" + condition + "]}}"},
                  kAdmin, sink, all.now);
    all.run_until_idle();
    EXPECT_EQ(SharedServers::answer_of(*sink).code, 200);
    return evict("p1").text;
  };
  constexpr std::string_view kText = "The disruption budget pdb does not allow evicting pods currently";
  EXPECT_THAT(refusal("SyncFailed", "no scale"), HasSubstr(fmt::format("{} because it failed sync: no scale", kText)));
  EXPECT_THAT(refusal("Frozen", "a holiday"), HasSubstr(fmt::format("{} (Frozen): a holiday", kText)));
  EXPECT_THAT(refusal("Frozen", ""), HasSubstr(fmt::format("{}\"", kText)));
}

TEST_F(Evictions, CountAnEvictionUnderWayOnce) {
  for (const char* name : {"p1", "p2", "p3", "p4"}) create(name);
  protect(R"("minAvailable":2)");
  stop_counting();
  EXPECT_EQ(evict("p1").code, 201);
  EXPECT_EQ(number("disruptionsAllowed"), 1);
  EXPECT_EQ(evict("p2").code, 201) << "two may go, whichever way they are counted";
  EXPECT_EQ(evict("p3").code, 429);
}

TEST_F(Evictions, TakeNoMoreThanTheStatusAllows) {
  for (const char* name : {"p1", "p2", "p3"}) create(name);
  report("p3", false);
  protect(R"("minAvailable":2)");
  stop_counting();
  ASSERT_EQ(number("disruptionsAllowed"), 0);
  report("p3", true);
  EXPECT_EQ(evict("p1").code, 429) << "the controller of the budget has not allowed it yet";
}

TEST_F(Evictions, CountByTheirControllersForMaxUnavailable) {
  const std::string owners = replica_set_of_three();
  for (const char* name : {"p1", "p2", "p3"}) create(name, owners);
  protect(R"("maxUnavailable":1)");
  stop_counting();
  ASSERT_EQ(number("disruptionsAllowed"), 1);
  report("p3", false);
  EXPECT_EQ(evict("p1").code, 429);
  report("p3", true);
  EXPECT_EQ(evict("p1").code, 201);
}

/// As upstream: a pod without a controller is healthy, and not expected.
TEST_F(Evictions, APodWithoutControllerDoesNotStopTheCount) {
  const std::string owners = replica_set_of_three();
  for (const char* name : {"p1", "p2", "p3"}) create(name, owners);
  create("alone");
  protect(R"("maxUnavailable":1)");
  all.advance(seconds(2));
  EXPECT_EQ(number("expectedPods"), 3);
  EXPECT_EQ(number("currentHealthy"), 4);
  EXPECT_EQ(number("disruptionsAllowed"), 2);
  EXPECT_EQ(evict("p1").code, 201);
}

TEST_F(Evictions, PodsWithoutControllersCannotBeCounted) {
  create("alone");
  protect(R"("maxUnavailable":1)");
  all.advance(seconds(2));
  EXPECT_EQ(number("disruptionsAllowed"), 0);
  EXPECT_EQ(evict("alone").code, 429);
}

TEST_F(Evictions, AnUnreadyPodGoesFreeOnlyIfEnoughAreHealthyNow) {
  for (const char* name : {"p1", "p2", "p3"}) create(name);
  protect(R"("minAvailable":2)");
  stop_counting();
  report("p2", false);
  report("p3", false);
  EXPECT_EQ(evict("p3").code, 429) << "one is healthy of two";
  report("p2", true);
  EXPECT_EQ(evict("p3").code, 201);
  EXPECT_EQ(number("disruptionsAllowed"), 1) << "nothing was spent";
}

}  // namespace

}  // namespace spillway::apiserver
