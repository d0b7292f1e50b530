// The amount of counting for disruption budgets when pods change, and its pieces: steps, not time.
#include "apiserver/collect/budgets.h"
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/server_fixture.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

/// The collector over a cache that gets objects directly. Nothing is in the store, so its writes end with 404.
class BudgetCounting : public ::testing::Test, private WatchCache::Listener {
 protected:
  BudgetCounting() { static_cast<Collector&>(budgets).begin(); }

  void deliver(std::string_view resource, std::string_view name, std::string text) {
    store::Change change;
    change.key = fmt::format("{}default/{}", registry.get(resource).storage, name);
    change.revision = change.create_revision = store::Revision(++revision);
    change.value = std::make_shared<const std::string>(std::move(text));
    cache.origins().front()->on_changes({change});
  }

  void deliver_budget(std::size_t i, std::string_view selector) {
    deliver("poddisruptionbudgets.policy", fmt::format("b{}", i),
            fmt::format(R"({{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"b{}",
             "namespace":"default","uid":"b{}"}},"spec":{{"minAvailable":1,"selector":{}}}}})",
                        i, i, selector));
  }

  void deliver_pod(std::size_t i, std::string_view app, std::string_view annotation = "",
                   std::string_view ready = "True") {
    deliver("pods", fmt::format("p{}", i),
            fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}","namespace":"default","uid":"p{}",
             "labels":{{"app":"{}"}},"annotations":{{"note":"{}"}}}},"spec":{{"containers":[]}},
             "status":{{"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
                        i, i, app, annotation, ready));
  }

  /// Runs until nothing is left to count. Returns the largest number of steps in one turn.
  std::size_t drain() {
    std::size_t most = 0;
    for (bool more = true; more;) {
      const std::size_t before = budgets.steps();
      static_cast<Collector&>(budgets).run();
      most = std::max(most, budgets.steps() - before);
      more = !tasks.empty() || timers.next().has_value();
      while (!tasks.empty()) {
        auto task = std::move(tasks.front());
        tasks.pop_front();
        task();
      }
      core.now.mono += BudgetCollector::kPause;
      const std::size_t between = budgets.steps();
      timers.run_due(core.now.mono);
      most = std::max(most, budgets.steps() - between);
    }
    return most;
  }

  // WatchCache::Listener
  void on_cache_event(ResourceCache& of, const EventPtr& event) override {
    static_cast<Collector&>(budgets).see(of, event);
  }

  void on_cache_progress() override {}

  void on_cache_lost(Origin& /*origin*/, const Error& error) override { ADD_FAILURE() << error.text(); }

  std::uint64_t revision = 1;
  std::deque<std::move_only_function<void()>> tasks;
  ResourceRegistry registry{kinds::kind_rows()};
  store::MemoryStore store{[this](std::move_only_function<void()> task) { tasks.push_back(std::move(task)); }};
  WatchCache cache{registry, *this, store};
  TimerQueue timers;
  Core core{registry, store, cache, timers, telemetry::Log(), Rng(1)};
  Committer committer{core};
  Writer writer{core, committer};
  BudgetCollector budgets{core, writer};
};

TEST_F(BudgetCounting, OnlyChangesThatCountAreCounted) {
  constexpr std::size_t kBudgets = 60;
  constexpr std::size_t kPods = 60;
  for (std::size_t i = 0; i < kBudgets; ++i) deliver_budget(i, fmt::format(R"({{"matchLabels":{{"app":"a{}"}}}})", i));
  for (std::size_t i = 0; i < kPods; ++i) deliver_pod(i, fmt::format("a{}", i));
  drain();
  const std::size_t at_rest = budgets.steps();
  EXPECT_GE(at_rest, kBudgets) << "all of them were counted";
  for (std::size_t i = 0; i < kPods; ++i) deliver_pod(i, fmt::format("a{}", i), "another");
  drain();
  EXPECT_EQ(budgets.steps(), at_rest) << "an annotation changes no count";
  deliver_pod(7, "a7", "another", "False");
  drain();
  EXPECT_EQ(budgets.steps(), at_rest + 2 * kPods) << "the one budget that selects it, a comparison for each pod";
  deliver_pod(7, "a8", "another", "False");
  drain();
  EXPECT_EQ(budgets.steps(), at_rest + 6 * kPods) << "the one that did and the one that does";
}

TEST_F(BudgetCounting, ManyBudgetsOverManyPodsAreCountedInSlices) {
  constexpr std::size_t kBudgets = 100;
  constexpr std::size_t kPods = 1'000;
  for (std::size_t i = 0; i < kPods; ++i) deliver_pod(i, "a");
  for (std::size_t i = 0; i < kBudgets; ++i) deliver_budget(i, R"({"matchLabels":{"app":"a"}})");
  const std::size_t most = drain();
  EXPECT_LE(most, BudgetCollector::kSliceSteps + 2);
  EXPECT_GE(budgets.steps(), 2 * kBudgets * kPods) << "all of them in the end";
}

/// A burst of changes leads to one count.
TEST_F(BudgetCounting, ChangesDuringACountAreCountedOnce) {
  for (std::size_t i = 0; i < 100; ++i) deliver_pod(i, "a");
  for (std::size_t i = 0; i < 10; ++i) deliver_budget(i, R"({"matchLabels":{"app":"a"}})");
  drain();
  const std::size_t at_rest = budgets.steps();
  for (std::size_t i = 0; i < 100; ++i) deliver_pod(i, "a", "", "False");
  drain();
  EXPECT_EQ(budgets.steps(), at_rest + 2 * 10 * 100);
}

TEST(BudgetEvictions, ASelectorThatCannotBeComparedAtOnceRefusesTheEviction) {
  constexpr std::size_t kTerms = 1'500;
  constexpr std::size_t kPods = kSurveyStepsMax / kTerms + 5;
  constexpr const char* kPath = "/api/v1/namespaces/default/pods";
  TestServer server;
  std::string terms;
  for (std::size_t i = 0; i < kTerms; ++i) {
    terms += fmt::format(R"({}{{"key":"k{}","operator":"DoesNotExist"}})", i == 0 ? "" : ",", i);
  }
  ASSERT_EQ(server
                .post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                      fmt::format(R"({{"metadata":{{"name":"b"}},"spec":{{"minAvailable":1,"selector":{{
                          "matchExpressions":[{}]}}}}}})",
                                  terms))
                .code,
            201);
  for (std::size_t i = 0; i < kPods; ++i) {
    ASSERT_EQ(server
                  .post(kPath, fmt::format(R"({{"metadata":{{"name":"p{}"}},"spec":{{"nodeName":"n1",
                      "containers":[{{"name":"c","image":"i"}}]}}}})",
                                           i))
                  .code,
              201);
    server.merge(fmt::format("{}/p{}/status", kPath, i),
                 R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  }
  server.advance(seconds(60));
  const Answer counted = server.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b");
  EXPECT_EQ(*counted.body.at({"status", "currentHealthy"}), api::Json(static_cast<std::int64_t>(kPods)))
      << "the status is counted, in slices";
  const Answer evicted = server.post(fmt::format("{}/p0/eviction", kPath), R"({"metadata":{"name":"p0"}})");
  EXPECT_EQ(evicted.code, 429);
  EXPECT_EQ(evicted.string_at({"message"}),
            "The disruption budget b selects among too many pods to be counted for one eviction.");
}

}  // namespace

}  // namespace spillway::apiserver
