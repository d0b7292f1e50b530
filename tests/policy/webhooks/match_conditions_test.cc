// The joint outcome of a webhook's conditions: all combinations of true, false and an error, and the budget that they
// share.
#include "policy/webhooks/match_conditions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace spillway::webhooks {

namespace {

using api::Json;

MatchOutcome outcome_of(const std::vector<std::string>& expressions) {
  Json::Array list;
  for (const std::string& text : expressions) {
    list.push_back(Json::object({{"name", fmt::format("c{}", list.size())}, {"expression", text}}));
  }
  const MatchConditions conditions = match_conditions_of(Json::object({{"matchConditions", std::move(list)}}));
  const Json none;
  return evaluate(*conditions, {.object = none, .old_object = none, .request = none});
}

TEST(MatchConditions, FalseDecidesThenErrors) {
  const std::array<std::string, 3> kTexts{"true", "false", "1 / 0 == 1"};
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      for (std::size_t c = 0; c < 3; ++c) {
        const MatchOutcome outcome = outcome_of({kTexts[a], kTexts[b], kTexts[c]});
        const bool excluded = a == 1 || b == 1 || c == 1;
        const std::size_t errors = (a == 2) + (b == 2) + (c == 2);
        EXPECT_EQ(outcome.matches, !excluded && errors == 0) << a << b << c;
        EXPECT_EQ(outcome.errors, errors) << a << b << c;
        EXPECT_EQ(outcome.why.has_value(), !excluded && errors > 0) << a << b << c;
      }
    }
  }
}

TEST(MatchConditions, ErrorsAreReportedOnce) {
  EXPECT_EQ(outcome_of({"1 / 0 == 1", "true"}).why->text(),
            "expression '1 / 0 == 1' resulted in error: division by zero");
  EXPECT_EQ(outcome_of({"1 / 0 == 1", "1 / 0 == 1"}).why->text(),
            "expression '1 / 0 == 1' resulted in error: division by zero");
  EXPECT_EQ(outcome_of({"1 / 0 == 1", "1 % 0 == 1"}).why->text(),
            "[expression '1 / 0 == 1' resulted in error: division by zero, expression '1 % 0 == 1' resulted in error: "
            "modulus by zero]");
  EXPECT_TRUE(outcome_of({"foo"}).why->text().starts_with("compilation error: compilation failed: "));
}

TEST(MatchConditions, ShareABudget) {
  std::string list = "[0";
  for (int i = 1; i < 60; ++i) list += fmt::format(",{}", i);
  list += "]";
  const std::string dear =
      fmt::format("{0}.all(a, {0}.all(b, {0}.all(c, {0}.all(d, true))))", list);  // costs more than one condition may
  EXPECT_TRUE(outcome_of({dear, dear}).why->text().contains("actual cost limit exceeded"));
  EXPECT_FALSE(outcome_of({dear, "false"}).why);
  const MatchOutcome spent = outcome_of({dear, dear, dear, "false"});
  EXPECT_EQ(spent.why->text(),
            "validation failed due to running out of cost budget, no further validation rules will be run");
  EXPECT_FALSE(spent.matches);
}

TEST(MatchConditions, NoneAtAll) {
  EXPECT_EQ(match_conditions_of(Json::object()), nullptr);
  EXPECT_EQ(match_conditions_of(Json::object({{"matchConditions", Json::Array()}})), nullptr);
}

}  // namespace

}  // namespace spillway::webhooks
