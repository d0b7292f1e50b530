// Disruptions that were spent on evictions: each counts until its pod goes, or until it is clear that it does not.
#include "api/text/time_text.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

constexpr const char* kBudget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

class BudgetExpiry : public ::testing::Test {
 protected:
  BudgetExpiry() {
    server.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"a"}}}})");
    for (const char* name : {"x", "y", "z"}) {
      server.post(kPods,
                  std::string(R"({"metadata":{"name":")") + name +
                      R"(","labels":{"app":"a"}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}})");
      server.merge(std::string(kPods) + "/" + name + "/status",
                   R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
    }
    server.advance(seconds(2));
  }

  /// Leaves the state of an eviction that ended between the writes of budget and pod.
  void spend(const std::string& pod) {
    const Answer answer =
        server.merge(std::string(kBudget) + "/status", R"({"status":{"disruptedPods":{")" + pod + "\":\"" +
                                                           api::format_time(server.now().wall) + "\"}}}");
    ASSERT_EQ(answer.code, 200) << answer.text;
    server.advance(seconds(1));
  }

  std::int64_t healthy() {
    const Answer budget = server.get(kBudget);
    const api::Json* count = budget.body.at({"status", "currentHealthy"});
    return count == nullptr ? -1 : count->if_int64().value_or(-1);
  }

  bool counts_disruption() { return server.get(kBudget).body.at({"status", "disruptedPods"}) != nullptr; }

  TestServer server;
};

TEST_F(BudgetExpiry, AnEvictionThatLedToNothingIsForgottenAfterTwoMinutes) {
  ASSERT_EQ(healthy(), 3);
  spend("x");
  EXPECT_EQ(healthy(), 2) << "it may be on its way";
  server.advance(seconds(110));
  EXPECT_EQ(healthy(), 2);
  server.advance(seconds(15));
  EXPECT_EQ(healthy(), 3);
  EXPECT_FALSE(counts_disruption());
}

TEST_F(BudgetExpiry, TheNextOneHasTwoMinutesOfItsOwn) {
  spend("x");
  server.advance(seconds(90));
  spend("y");
  EXPECT_EQ(healthy(), 1);
  server.advance(seconds(40));
  EXPECT_EQ(healthy(), 2) << "the first is over, the second is not";
  server.advance(minutes(3));
  EXPECT_EQ(healthy(), 3);
  EXPECT_FALSE(counts_disruption());
}

TEST_F(BudgetExpiry, AnEvictionWhosePodGoesIsForgottenWithIt) {
  spend("x");
  ASSERT_EQ(server.remove(std::string(kPods) + "/x?gracePeriodSeconds=0").code, 200);
  server.advance(seconds(1));
  EXPECT_EQ(healthy(), 2);
  EXPECT_FALSE(counts_disruption());
}

TEST_F(BudgetExpiry, WhatWasSpentBeforeARestartIsForgottenToo) {
  spend("x");
  server.restart();
  server.advance(minutes(3));
  EXPECT_EQ(healthy(), 3);
  EXPECT_FALSE(counts_disruption());
}

}  // namespace

}  // namespace spillway::apiserver
