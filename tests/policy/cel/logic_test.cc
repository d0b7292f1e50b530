// The way in which &&,
// , !, ?:, all() and exists() treat values and errors: every combination of true, false, an error and a value that is
// no bool, against the definition: an operand that decides does so in any position.
#include "policy/cel/evaluating.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace spillway::cel {

namespace {

struct Operand {
  std::string text;
  std::string outcome;  // the outcome of the operand alone
};

const std::array<Operand, 4> kOperands{{{"true", "true"},
                                        {"false", "false"},
                                        {"1 / 0 == 0", "division by zero"},
                                        {"object.spec.replicas", "no such overload"}}};

/// The definition, written out: a decider anywhere, else the first error, else the other value.
std::string expected(const std::vector<const Operand*>& operands, bool deciding) {
  const std::string decider = deciding ? "true" : "false";
  for (const Operand* one : operands) {
    if (one->outcome == decider) return decider;
  }
  for (const Operand* one : operands) {
    if (one->outcome != "true" && one->outcome != "false") return one->outcome;
  }
  return deciding ? "false" : "true";
}

TEST(CelLogic, AndOrOverAllPairsAndTriples) {
  std::size_t tried = 0;
  for (const bool deciding : {false, true}) {
    const std::string sign = deciding ? "||" : "&&";
    for (const Operand& a : kOperands) {
      for (const Operand& b : kOperands) {
        EXPECT_EQ(outcome(fmt::format("({}) {} ({})", a.text, sign, b.text)), expected({&a, &b}, deciding))
            << a.text << sign << b.text;
        for (const Operand& c : kOperands) {
          const std::string text = fmt::format("({}) {} ({}) {} ({})", a.text, sign, b.text, sign, c.text);
          EXPECT_EQ(outcome(text), expected({&a, &b, &c}, deciding)) << text;
          const std::string nested = fmt::format("({}) {} (({}) {} ({}))", a.text, sign, b.text, sign, c.text);
          EXPECT_EQ(outcome(nested), expected({&a, &b, &c}, deciding)) << nested;
          ++tried;
        }
      }
    }
  }
  EXPECT_EQ(tried, 2U * 4 * 4 * 4);
}

TEST(CelLogic, QuantifiersAreChains) {
  for (const bool deciding : {false, true}) {
    const std::string macro = deciding ? "exists" : "all";
    for (std::size_t a = 0; a < kOperands.size(); ++a) {
      for (std::size_t b = 0; b < kOperands.size(); ++b) {
        const std::string text = fmt::format(
            "[{}, {}].{}(x, x == 0 ? true : x == 1 ? false : x == 2 ? 1 / 0 == 0 : "
            "object.spec.replicas)",
            a, b, macro);
        EXPECT_EQ(outcome(text), expected({&kOperands[a], &kOperands[b]}, deciding)) << text;
      }
    }
  }
}

TEST(CelLogic, ConditionalsEvaluateOneBranch) {
  EXPECT_EQ(outcome("true ? true : 1 / 0 == 0"), "true");
  EXPECT_EQ(outcome("false ? 1 / 0 == 0 : false"), "false");
  EXPECT_EQ(outcome("1 / 0 == 0 ? true : true"), "division by zero");
  EXPECT_EQ(outcome("false ? false : false ? false : true"), "true");
  EXPECT_EQ(outcome("true || false && false"), "true");
  EXPECT_EQ(outcome("!true || true"), "true");
  EXPECT_EQ(outcome("!!true && !!!false"), "true");
}

}  // namespace

}  // namespace spillway::cel
