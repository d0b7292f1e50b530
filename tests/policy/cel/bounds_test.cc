// The costs of expressions, and that none costs more than its budget: long and deep ones, patterns that explode
// elsewhere, loops in loops.
#include "policy/cel/evaluating.h"
#include "policy/cel/parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace spillway::cel {

namespace {

constexpr std::string_view kSpent = "operation cancelled: actual cost limit exceeded";

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(CelBounds, Length) {
  const std::string most = "true" + repeated(" ", kExpressionCharactersMax - 4);
  EXPECT_EQ(outcome(most), "true");
  EXPECT_TRUE(outcome(most + " ").contains("expression code point size exceeds limit: size: 100001, limit 100000"));
}

TEST(CelBounds, Depth) {
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("[", "]"), std::pair("{1:", "}"), std::pair("[1][", "]")}) {
    EXPECT_TRUE(outcome(repeated(open, 300) + "1" + repeated(close, 300)).contains("recursion limit exceeded: 250"))
        << open;
    EXPECT_TRUE(outcome(repeated(open, 20'000)).contains("compilation failed")) << open;
  }
  EXPECT_EQ(outcome(repeated("(", 240) + "true" + repeated(")", 240)), "true");
  EXPECT_TRUE(outcome("object" + repeated(".a", 30'000) + " == 1").contains("max recursion depth exceeded"));
  EXPECT_TRUE(outcome("1" + repeated("+1", 30'000) + " == 1").contains("max recursion depth exceeded"));
  EXPECT_TRUE(outcome(repeated("true ? true : ", 5'000) + "true").contains("recursion limit exceeded"));
  EXPECT_EQ(outcome(repeated("!", 20'000) + "true"), "true");  // a run of them counts as one
  EXPECT_EQ(outcome("1" + repeated("+1", 200) + " == 201"), "true");
}

TEST(CelBounds, ChainsAreFlat) {
  EXPECT_EQ(outcome("true" + repeated(" && true", 5'000)), "true");
  EXPECT_EQ(outcome("false" + repeated(" || false", 5'000)), "false");
}

TEST(CelBounds, LoopsInLoops) {
  std::string list = "[0";
  for (int i = 1; i < 100; ++i) list += fmt::format(",{}", i);
  list += "]";
  const auto loops = [&](int depth) {
    std::string text = "true";
    for (int i = 0; i < depth; ++i) text = fmt::format("{}.all(x{}, {})", list, i, text);
    return text;
  };
  EXPECT_EQ(outcome(loops(2)), "true");
  EXPECT_EQ(outcome(loops(4)), kSpent);
  EXPECT_EQ(outcome(loops(20)), kSpent);
  EXPECT_EQ(outcome("true || " + loops(4)), "true");  // the loops are not evaluated
  EXPECT_EQ(outcome(loops(4) + " || true"), kSpent);  // not an error that || ignores
  EXPECT_EQ(outcome(loops(4) + " ? true : true"), kSpent);
}

TEST(CelBounds, WhatGrows) {
  std::string text = "'0123456789'";
  for (int i = 0; i < 30; ++i) text = fmt::format("[{}].map(s, s + s)[0]", text);
  EXPECT_EQ(outcome(text + " == ''"), kSpent);
  text = "[0, 1, 2, 3]";
  for (int i = 0; i < 30; ++i) text = fmt::format("[{}].map(s, s + s)[0]", text);
  EXPECT_EQ(outcome(text + " == []"), kSpent);
  text = "'a'";
  for (int i = 0; i < 30; ++i) text += ".replace('a', 'aaaaaaaaaaaaaaaa')";
  EXPECT_EQ(outcome(text + " == ''"), kSpent);
  text = "'a'";
  for (int i = 0; i < 30; ++i) text += ".replace('', 'aaaaaaaaaaaaaaaa')";
  EXPECT_EQ(outcome(text + " == ''"), kSpent);
  text = "'a'";
  for (int i = 0; i < 30; ++i) text += ".split('').map(c, 'aaaaaaaaaaaaaaaaa').join('bbbbbb')";
  EXPECT_EQ(outcome(text + " == ''"), kSpent);
}

TEST(CelBounds, Patterns) {
  const std::string many = "'" + repeated("a", 30'000) + "'";
  EXPECT_EQ(outcome(many + ".matches('^(a+)+$')"), "true");
  EXPECT_EQ(outcome(many + ".matches('^(a|a|aa)*b$')"), "false");
  EXPECT_EQ(outcome(many + ".matches('(a*)*(a*)*(a*)*b')"), "false");
  EXPECT_TRUE(outcome("'a'.matches('((((a{100}){100}){100}){100})')").contains("invalid matches argument"));
  EXPECT_TRUE(outcome("'a'.matches('" + repeated("a", 5'000) + "')").contains("longer than 4096 bytes"));
  EXPECT_TRUE(outcome(R"('a'.matches(r'(a)\1'))").contains("invalid matches argument"));
  EXPECT_TRUE(outcome("'a'.matches('a(?=b)')").contains("invalid matches argument"));
  EXPECT_EQ(outcome(many + ".matches('(a{0,500}){0,2}b')"), kSpent);
  const std::string large =
      "[1,1,1,1,1,1,1,1,1,1].all(x, " + many + ".matches('((a?){0,30}(b?){0,30}){0,30}c') || true)";
  EXPECT_EQ(outcome(large), kSpent);
  EXPECT_EQ(
      outcome("[1,1,1,1,1,1,1,1,1,1,1,1].all(x, 'a'.matches(object.metadata.name + '((a{30}){30}){30}') || true)"),
      kSpent);
}

TEST(CelBounds, TheBudgetIsExact) {
  std::uint64_t least = 0;
  constexpr std::string_view kText = "object.spec.containers.all(c, c.image.contains('g') || c.name == 'web')";
  while (outcome(kText, least) == kSpent) ++least;
  EXPECT_GT(least, 10U);
  EXPECT_LT(least, 60U);
  EXPECT_EQ(outcome(kText, least), outcome(kText));
}

}  // namespace

}  // namespace spillway::cel
