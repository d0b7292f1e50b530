// The effects of a cloud's answers about machines.
#include "controllers/nodes/cloud_check.h"

#include "controllers/controller_set.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace spillway::controllers {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

const std::string kShutDown = "node.cloudprovider.kubernetes.io/shutdown:NoSchedule";

class Cloud : public ::testing::Test {
 protected:
  void start(int nodes) {
    options.cloud_check.enabled = true;
    for (int i = 0; i < nodes; ++i) cluster.add_node(fmt::format("n{}", i));
    set = std::make_unique<ControllerSet>(options, Rng(7), telemetry::Log(), metrics);
    cluster.run(*set);
    advance(seconds(12));
  }

  /// Advances the time; the cloud answers from `machines`, and other nodes run.
  void advance(Duration by) {
    for (Duration passed{}; passed < by; passed += seconds(1)) {
      if (const auto question = set->cloud_check().take_question()) {
        ++questions;
        asked.clear();
        std::vector<InstanceAnswer> answers;
        for (const InstanceQuestion& node : *question) {
          asked.push_back(node.node);
          const auto known = machines.find(node.node);
          answers.push_back({node.node, known == machines.end() ? InstanceState::kRunning : known->second});
        }
        if (reachable) {
          set->cloud_check().put_answer(std::move(answers));
        } else {
          set->cloud_check().put_answer(make_error(ErrorCode::kTimeout, "no answer"));
        }
      }
      cluster.advance(seconds(1));
    }
  }

  bool exists(const std::string& node) { return !cluster.get("/api/v1/nodes/" + node).is_null(); }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  std::unique_ptr<ControllerSet> set;
  std::map<std::string, std::optional<InstanceState>> machines;
  std::vector<std::string> asked;
  int questions = 0;
  bool reachable = true;
};

TEST_F(Cloud, AsksAboutNodesThatAreNotReadyOnly) {
  start(3);
  EXPECT_EQ(questions, 0);
  machines["n0"] = InstanceState::kGone;  // but Ready: the cloud is not queried
  cluster.set_ready("n1", false);
  advance(seconds(12));
  EXPECT_THAT(asked, ElementsAre("n1"));
  EXPECT_TRUE(exists("n0"));
  EXPECT_TRUE(exists("n1"));
}

TEST_F(Cloud, ANodeWhoseMachineIsGoneIsDeletedAtOnce) {
  start(3);
  machines["n1"] = InstanceState::kGone;
  cluster.set_up("n1", false);
  advance(seconds(62));
  EXPECT_FALSE(exists("n1"));
  EXPECT_THAT(cluster.events_about("n1"), Contains(Pair("DeletingNode", 1)));
  EXPECT_TRUE(exists("n0"));
}

TEST_F(Cloud, AMachineThatIsShutDownIsTaintedUntilItIsBack) {
  start(3);
  machines["n1"] = InstanceState::kShutDown;
  cluster.set_up("n1", false);
  advance(seconds(65));
  EXPECT_THAT(cluster.taints("n1"), Contains(kShutDown));
  EXPECT_TRUE(exists("n1"));
  cluster.set_up("n1", true);
  advance(seconds(12));
  EXPECT_THAT(cluster.taints("n1"), Not(Contains(kShutDown)));
}

TEST_F(Cloud, AnErrorOrNoWordDeletesNothing) {
  start(3);
  cluster.set_ready("n1", false);
  machines["n1"] = std::nullopt;
  advance(seconds(12));
  EXPECT_TRUE(exists("n1"));
  machines["n1"] = InstanceState::kGone;
  reachable = false;
  advance(seconds(12));
  EXPECT_TRUE(exists("n1"));
  const int before = questions;
  reachable = true;
  advance(seconds(12));
  EXPECT_GT(questions, before);  // the controller still queries the cloud
  EXPECT_FALSE(exists("n1"));
}

TEST_F(Cloud, AnAnswerThatAllAreGoneIsNotTrusted) {
  start(4);
  for (const char* node : {"n1", "n2"}) {
    machines[node] = InstanceState::kGone;
    cluster.set_ready(node, false);
  }
  advance(seconds(15));
  EXPECT_TRUE(exists("n1"));
  ASSERT_TRUE(set->gate().find("machine/n1"));
  EXPECT_EQ(set->gate().find("machine/n1")->reason.code, policy::ReasonCode::kActLimitReached);
  cluster.set_ready("n3", false);  // an existing one makes the answer credible
  advance(seconds(15));
  EXPECT_FALSE(exists("n1"));
  EXPECT_FALSE(exists("n2"));
  EXPECT_TRUE(exists("n3"));
}

TEST_F(Cloud, DeletionsAreLimitedAndHeld) {
  options.brakes.delete_node.global = lifecycle::ActLimit{1, minutes(5)};
  start(5);
  for (const char* node : {"n1", "n2"}) {
    machines[node] = InstanceState::kGone;
    cluster.set_ready(node, false);
  }
  cluster.set_ready("n3", false);
  advance(minutes(1));
  EXPECT_FALSE(exists("n1"));
  EXPECT_TRUE(exists("n2"));
  advance(minutes(5));
  EXPECT_FALSE(exists("n2"));
}

TEST_F(Cloud, ANodeThatRecoveredMeanwhileStays) {
  start(3);
  cluster.set_ready("n1", false);
  cluster.advance(seconds(12));
  const auto question = set->cloud_check().take_question();
  ASSERT_TRUE(question.has_value());
  cluster.set_ready("n1", true);
  cluster.advance(seconds(1));
  set->cloud_check().put_answer(std::vector<InstanceAnswer>{{"n1", InstanceState::kGone}});
  cluster.advance(seconds(12));
  EXPECT_TRUE(exists("n1"));
}

TEST_F(Cloud, ManyNodesTakeTurns) {
  options.cloud_check.nodes_max = 2;
  start(5);
  for (const char* node : {"n0", "n1", "n2"}) cluster.set_ready(node, false);
  std::set<std::string> seen;
  for (int i = 0; i < 30; ++i) {
    advance(seconds(1));
    EXPECT_LE(asked.size(), 2U);
    seen.insert(asked.begin(), asked.end());
  }
  EXPECT_THAT(seen, ElementsAre("n0", "n1", "n2"));
}

TEST(InstanceAnswer, IsReadStrictly) {
  const std::vector<InstanceQuestion> asked{{"a", "x"}, {"b", ""}, {"c", ""}};
  EXPECT_EQ(api::to_text(instance_query({{"a", "x"}})),
            R"({"apiVersion":"spillway/v1","kind":"InstanceQuery","nodes":[{"name":"a","providerID":"x"}]})");
  const auto good = read_instance_answer(
      R"({"nodes":[{"name":"b","exists":true,"shutdown":true},{"name":"a","exists":false},{"name":"c","error":"?"}]})",
      asked);
  ASSERT_TRUE(good);
  EXPECT_THAT(*good, ElementsAre(InstanceAnswer{"a", InstanceState::kGone},
                                 InstanceAnswer{"b", InstanceState::kShutDown}, InstanceAnswer{"c", std::nullopt}));
  EXPECT_THAT(*read_instance_answer(R"({"nodes":[]})", asked),
              ElementsAre(InstanceAnswer{"a", {}}, InstanceAnswer{"b", {}}, InstanceAnswer{"c", {}}));
  for (const char* bad : {"", "[]", "{}", R"({"nodes":{}})", R"({"nodes":[{"name":"d","exists":true}]})",
                          R"({"nodes":[{"name":"a"}]})", R"({"nodes":[{"name":"a","exists":1}]})",
                          R"({"nodes":[{"name":"a","exists":true},{"name":"a","exists":false}]})"}) {
    EXPECT_FALSE(read_instance_answer(bad, asked)) << bad;
  }
}

}  // namespace
}  // namespace spillway::controllers
