#include "policy/disruption/budget.h"

#include "api/codec/codec.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace spillway::disruption {
namespace {

api::PodDisruptionBudget budget(const std::string& spec, const std::string& status = "{}") {
  const auto document = api::parse_json(R"({"metadata":{"name":"pdb","namespace":"shop","generation":2},"spec":)" +
                                        spec + R"(,"status":)" + status + "}");
  EXPECT_TRUE(document) << document.error().text();
  auto decoded = api::decode<api::PodDisruptionBudget>(*document);
  EXPECT_TRUE(decoded) << decoded.error().text();
  return *decoded;
}

struct Arithmetic {
  std::string spec;
  std::int64_t expected;
  std::int64_t desired;
  bool expects_matching;
};

void PrintTo(const Arithmetic& row, std::ostream* out) {
  *out << row.spec << " of " << row.expected;
}

class DesiredHealthy : public ::testing::TestWithParam<Arithmetic> {};

TEST_P(DesiredHealthy, IsRoundedUp) {
  const api::PodDisruptionBudget rules = budget(GetParam().spec);
  EXPECT_EQ(desired_healthy(rules, GetParam().expected), GetParam().desired);
  EXPECT_EQ(expects_pods_that_match(rules), GetParam().expects_matching);
}

INSTANTIATE_TEST_SUITE_P(Rows, DesiredHealthy,
                         ::testing::Values(Arithmetic{R"({"minAvailable":2})", 5, 2, true},
                                           Arithmetic{R"({"minAvailable":7})", 5, 7, true},
                                           Arithmetic{R"({"minAvailable":0})", 5, 0, true},
                                           Arithmetic{R"({"minAvailable":"50%"})", 5, 3, false},
                                           Arithmetic{R"({"minAvailable":"100%"})", 5, 5, false},
                                           Arithmetic{R"({"minAvailable":"0%"})", 5, 0, false},
                                           Arithmetic{R"({"maxUnavailable":1})", 5, 4, false},
                                           Arithmetic{R"({"maxUnavailable":9})", 5, 0, false},
                                           Arithmetic{R"({"maxUnavailable":"30%"})", 5, 3, false},
                                           Arithmetic{R"({"maxUnavailable":"1%"})", 300, 297, false},
                                           Arithmetic{R"({})", 5, 4, false}, Arithmetic{R"({})", 0, 0, false}));

TEST(BudgetCount, NothingMayGoWhereNothingIsExpected) {
  EXPECT_EQ((BudgetCount{5, 5, 3}).disruptions_allowed(), 2);
  EXPECT_EQ((BudgetCount{5, 2, 3}).disruptions_allowed(), 0);
  EXPECT_EQ((BudgetCount{0, 5, 0}).disruptions_allowed(), 0);
}

TEST(Budget, AnAbsentSelectorMatchesNothingAndAnEmptyOneEverything) {
  EXPECT_FALSE(budget("{}").selector.matches({}));
  EXPECT_FALSE(api::PodDisruptionBudget{}.selector.matches({}));
  EXPECT_TRUE(budget(R"({"selector":{}})").selector.matches({{"app", "web"}}));
}

struct Held {
  BudgetCount now;
  std::int64_t current, desired, allowed;
};

TEST(Budget, IsHeldToWhatIsThereNow) {
  const std::string status = R"({"currentHealthy":6,"desiredHealthy":4,"disruptionsAllowed":2})";
  for (const Held& row :
       {Held{{6, 6, 4}, 6, 4, 2}, Held{{6, 5, 4}, 5, 4, 1}, Held{{6, 3, 4}, 3, 4, 0}, Held{{9, 9, 4}, 6, 4, 2},
        Held{{9, 8, 7}, 6, 7, 1}, Held{{3, 3, 1}, 3, 4, 2}, Held{{0, 6, 0}, 6, 4, 0}}) {
    const api::PodDisruptionBudgetStatus held = held_to(budget("{}", status), row.now).status;
    EXPECT_EQ(held.current_healthy, row.current) << row.now.current_healthy;
    EXPECT_EQ(held.desired_healthy, row.desired) << row.now.current_healthy;
    EXPECT_EQ(held.disruptions_allowed, row.allowed) << row.now.current_healthy;
  }
}

const PodStanding kReady{.phase = "Running", .terminating = false, .ready = true};
const PodStanding kUnready{.phase = "Running", .terminating = false, .ready = false};

/// The ruling by one budget; `generation` is 2.
Ruling ruling(const PodStanding& pod, const std::string& status, const std::string& spec = "{}") {
  const api::PodDisruptionBudget one = budget(spec, status);
  return decide_passage(pod, std::array{&one});
}

TEST(DecidePassage, PodsThatAreNotRunningAreUnprotected) {
  const api::PodDisruptionBudget nothing_left = budget("{}", R"({"observedGeneration":2})");
  for (const char* phase : {"Pending", "Succeeded", "Failed"}) {
    const PodStanding pod{.phase = phase, .terminating = false, .ready = true};
    EXPECT_EQ(decide_passage(pod, std::array{&nothing_left}).passage, Passage::kUnprotected) << phase;
  }
  const PodStanding ending{.phase = "Running", .terminating = true, .ready = true};
  EXPECT_EQ(decide_passage(ending, std::array{&nothing_left}).passage, Passage::kUnprotected);
  EXPECT_EQ(decide_passage(kReady, std::array{&nothing_left}).passage, Passage::kExhausted);
}

TEST(DecidePassage, NoBudgetOneBudgetSeveral) {
  EXPECT_EQ(decide_passage(kReady, {}).passage, Passage::kNoBudget);
  const api::PodDisruptionBudget one = budget("{}", R"({"observedGeneration":2,"disruptionsAllowed":9})");
  EXPECT_EQ(decide_passage(kReady, std::array{&one}).passage, Passage::kSpends);
  const Ruling two = decide_passage(kReady, std::array{&one, &one});
  EXPECT_EQ(two.passage, Passage::kSeveralBudgets);
  EXPECT_FALSE(two.goes());
}

TEST(DecidePassage, SpendsWhatIsLeft) {
  const Ruling last =
      ruling(kReady, R"({"observedGeneration":2,"disruptionsAllowed":1,"desiredHealthy":2,"currentHealthy":3})");
  EXPECT_EQ(last, (Ruling{Passage::kSpends, "pdb", 2, 3, 1}));
  EXPECT_TRUE(last.goes());
  const Ruling none =
      ruling(kReady, R"({"observedGeneration":2,"disruptionsAllowed":0,"desiredHealthy":2,"currentHealthy":2})");
  EXPECT_EQ(none.passage, Passage::kExhausted);
  EXPECT_FALSE(none.goes());
  EXPECT_EQ(ruling(kReady, R"({"observedGeneration":2,"disruptionsAllowed":-1})").passage, Passage::kExhausted);
}

TEST(DecidePassage, AStatusOfAnEarlierSpecIsNotUsed) {
  EXPECT_EQ(ruling(kReady, R"({"observedGeneration":1,"disruptionsAllowed":5})").passage, Passage::kNotCountedYet);
  EXPECT_EQ(ruling(kReady, R"({"disruptionsAllowed":5})").passage, Passage::kNotCountedYet);
  EXPECT_EQ(ruling(kReady, R"({"observedGeneration":3,"disruptionsAllowed":5})").passage, Passage::kSpends);
}

TEST(DecidePassage, AnUnreadyPodGoesFreeIfEnoughOthersAreHealthy) {
  const std::string enough = R"({"observedGeneration":2,"desiredHealthy":2,"currentHealthy":2})";
  const std::string too_few = R"({"observedGeneration":2,"desiredHealthy":2,"currentHealthy":1})";
  const std::string none_wanted = R"({"observedGeneration":2,"desiredHealthy":0,"currentHealthy":0})";
  EXPECT_EQ(ruling(kUnready, enough).passage, Passage::kUnready);
  EXPECT_EQ(ruling(kUnready, too_few).passage, Passage::kExhausted);
  EXPECT_EQ(ruling(kUnready, none_wanted).passage, Passage::kExhausted);
  EXPECT_EQ(ruling(kReady, enough).passage, Passage::kExhausted);
  const std::string always = R"({"unhealthyPodEvictionPolicy":"AlwaysAllow"})";
  EXPECT_EQ(ruling(kUnready, too_few, always).passage, Passage::kUnready);
  EXPECT_EQ(ruling(kReady, too_few, always).passage, Passage::kExhausted);
}

TEST(DecidePassage, SoManyEvictionsMayBeUnsettled) {
  std::string disrupted;
  for (std::size_t i = 0; i < kUnsettledMax - 1; ++i) {
    disrupted += (disrupted.empty() ? "\"p" : ",\"p") + std::to_string(i) + "\":\"2026-01-01T00:00:00Z\"";
  }
  const auto with = [](const std::string& pods) {
    return ruling(kReady, R"({"observedGeneration":2,"disruptionsAllowed":5,"disruptedPods":{)" + pods + "}}").passage;
  };
  EXPECT_EQ(with(disrupted), Passage::kSpends);
  EXPECT_EQ(with(disrupted + R"(,"last":"2026-01-01T00:00:00Z")"), Passage::kTooManyUnsettled);
}

TEST(ReasonOf, NamesTheBudgetAndItsNumbers) {
  EXPECT_EQ(
      policy::render(reason_of({Passage::kExhausted, "pdb", 3, 2, 0})),
      "budget-refuses why=exhausted budget=pdb desired_healthy_pods=3 current_healthy_pods=2 disruptions_allowed=0");
  EXPECT_EQ(policy::render(reason_of({Passage::kSeveralBudgets})), "budget-refuses why=several-budgets");
}

}  // namespace
}  // namespace spillway::disruption
