// Goal: YAML's traps do not change the author's meaning, and unreadable text is reported with its line.
#include "yaml/yaml_document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace spillway::yaml {
namespace {

std::string json_of(const std::string& text) {
  const auto document = parse("f", text);
  return document ? api::to_text(document->value) : "error " + document.error().text();
}

TEST(Yaml, ReadsMappingsListsAndScalars) {
  EXPECT_EQ(json_of("a: 1\nb: [x, 'y']\nc:\n  d: true\n"), R"({"a":1,"b":["x","y"],"c":{"d":true}})");
  EXPECT_EQ(json_of(""), "null");
  EXPECT_EQ(json_of("a: ~\nb:\n"), R"({"a":null,"b":null})");
}

TEST(Yaml, KnowsTheBooleansOfYaml11ButNotInQuotes) {
  EXPECT_EQ(json_of("a: on\nb: no\nc: 'yes'\n"), R"({"a":true,"b":false,"c":"yes"})");
}

TEST(Yaml, KeepsTheSpellingOfPlainScalars) {
  const auto document = parse("f", "m:\n  memory.available: 1e3\n  x: '1e3'\n");
  ASSERT_TRUE(document.has_value());
  EXPECT_EQ(document->origins.at("m[memory.available]").text, "1e3");
  EXPECT_EQ(document->origins.at("m[memory.available]").line, 2);
  EXPECT_EQ(document->origins.at("m[x]").text, "");
}

TEST(Yaml, RefusesWhatReadersDisagreeOn) {
  EXPECT_EQ(json_of("a: 010\n"),
            "error f:1: 010 is octal for some readers of YAML and decimal for others; write it as a decimal number");
  EXPECT_EQ(json_of("a: 1\nb: 2\na: 3\n"), "error f:3: key \"a\" is there twice; first in line 1");
  EXPECT_EQ(json_of("a: 1\n---\nb: 2\n"), "error f:2: expected one document, got more");
  EXPECT_EQ(json_of("x: &x {a: 1}\ny:\n  <<: *x\n"), "error f:3: merge keys are not read");
}

TEST(Yaml, BoundsWhatAliasesExpandTo) {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 8; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    text += "]\n";
  }
  EXPECT_EQ(json_of(text), "error f:6: more than 250000 values; do aliases multiply?");
}

TEST(Yaml, AnAliasIsReplacedByItsAnchorWithItsPlaces) {
  const auto document = parse("f", "a: &a\n  b: [x, 1e3]\nc: *a\nd: [*a, &n, *n]\ne: {*a : 1}\n");
  EXPECT_EQ(document.error().text(), "f:5: a key must be a string");
  const auto good = parse("f", "a: &a\n  b: [x, 1e3]\nc: *a\nd: [*a, &n , *n]\n");
  ASSERT_TRUE(good) << good.error().text();
  EXPECT_EQ(api::to_text(good->value),
            R"({"a":{"b":["x",1000]},"c":{"b":["x",1000]},"d":[{"b":["x",1000]},null,null]})");
  EXPECT_EQ(good->origins.at("c").line, 3);
  EXPECT_EQ(good->origins.at("c[b][1]").line, 2);
  EXPECT_EQ(good->origins.at("c[b][1]").text, "1e3");
  EXPECT_EQ(good->origins.at("d[0][b][0]").text, "x");
  EXPECT_EQ(json_of("a: &a [*a]\n"), "error f:1: an alias is inside of the node that it names");
  EXPECT_EQ(json_of("a: &a {b: *a}\n"), "error f:1: an alias is inside of the node that it names");
}

TEST(Yaml, FindsPlacesByPath) {
  const auto document = parse("f", "a:\n  b[0]: 1\n  'c]': {d: 2}\n  e: [[3], 4]\nx[y]: 5\n");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->origins.at("").line, 1);
  EXPECT_EQ(document->origins.at("a[b[0]]").text, "1");
  EXPECT_EQ(document->origins.at("a[c]][d]").text, "2");
  EXPECT_EQ(document->origins.at("a[e][0][0]").text, "3");
  EXPECT_EQ(document->origins.at("a[e][1]").text, "4");
  EXPECT_EQ(document->origins.at("x[y]").text, "5");
  for (const std::string path : {"b", "a[", "a[b]", "a[e][2]", "a[e]0", "[a]x", "a]"})
    EXPECT_EQ(document->origins.find(path), nullptr) << path;
  EXPECT_EQ(parse("f", "- 1\n- 2\n")->origins.at("[1]").line, 2);
}

/// `levels` mappings, each in the one before, under keys of so many bytes.
std::string deep(std::size_t levels, std::size_t key_bytes) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i)
    text += std::string(i, ' ') + "? " + std::string(key_bytes, 'k') + "\n" + std::string(i, ' ') + ":\n";
  return text + std::string(levels, ' ') + "1\n";
}

TEST(Yaml, BoundsDepthKeysAliasesAndBytes) {
  EXPECT_FALSE(json_of(deep(64, 1)).starts_with("error"));
  EXPECT_EQ(json_of(deep(65, 1)), "error f:131: is nested deeper than 64 levels");
  std::string lists;
  for (int i = 0; i < 100'000; ++i) lists += "- ";
  EXPECT_EQ(json_of(lists), "error f:1: is nested deeper than 64 levels");
  EXPECT_FALSE(json_of(deep(2, 4'096)).starts_with("error"));
  EXPECT_EQ(json_of(deep(2, 4'097)), "error f:1: a key is longer than 4096 bytes");
  std::string aliases = "a: &a 1\nb:\n";
  for (int i = 0; i < 1'000; ++i) aliases += "- *a\n";
  EXPECT_FALSE(json_of(aliases).starts_with("error"));
  EXPECT_EQ(json_of(aliases + "- *a\n"), "error f:1003: more than 1000 aliases");
  std::string bytes = "a: &a " + std::string(1'000'000, 'x') + "\nb:\n";
  for (int i = 0; i < 20; ++i) bytes += "- *a\n";
  EXPECT_EQ(json_of(bytes), "error f:18: more than 16777216 bytes of values; do aliases multiply?");
  EXPECT_EQ(json_of(std::string(4 * 1024 * 1024 + 1, 'x')), "error f: larger than 4194304 bytes");
  const std::string twice = std::string(3'000, 'k') + "'";
  EXPECT_EQ(json_of("? '" + twice + "\n: 1\n? '" + twice + "\n: 2\n"),
            "error f:3: key \"" + std::string(100, 'k') + "...\" is there twice; first in line 1");
}

TEST(Yaml, TakesLargeDocuments) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += fmt::format("- {{a{}: [1, x], b: 'y'}}\n", i);
  const auto document = parse("f", text);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->value.if_array()->size(), 40'000u);
  EXPECT_EQ(document->origins.size(), 1u + 40'000 * 5);
  EXPECT_EQ(document->origins.at("[39999][a39999][1]").text, "x");
  EXPECT_EQ(document->origins.at("[39999][b]").line, 40'000);
}

/// Its paths together would have 60 times as many bytes as the text: each value has 60 long names around it.
TEST(Yaml, KeepsNoPathOfEachValue) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += std::string(static_cast<std::size_t>(i), ' ') + "? " + std::string(4'000, 'k') + "\n" +
            std::string(static_cast<std::size_t>(i), ' ') + ":\n";
  for (int i = 0; i < 10'000; ++i) text += std::string(60, ' ') + "- 1\n";
  const auto document = parse("f", text);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->origins.size(), 1u + 60 + 10'000);
}

/// Each is close to a megabyte of what a parser may do twice: all are read, or refused with one line.
TEST(Yaml, IsReadInWorkLinearInItsLength) {
  const auto repeated = [](std::string_view piece, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += piece;
    return text;
  };
  for (const std::string_view piece :
       {"[",     "{",         "- ",   "? ",    "a: ",  "- - ", "[],",     "{a,",   "[1,\n", "- x\n",
        "? a\n", "&a ",       "*a ",  "!t ",   "'a' ", "\"\n", "|\n a\n", "# c\n", "\n",    " ",
        "a\n",   "a:\n a:\n", "%T\n", "---\n", ": ",   ", ",   "]",       "}"}) {
    const auto work = [&](std::size_t bytes) {
      const std::string text = repeated(piece, bytes);
      timespec before = {};
      timespec after = {};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      const auto document = parse("f", text);
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      if (!document) {
        EXPECT_FALSE(document.error().text().contains('\n')) << piece;
        EXPECT_LT(document.error().text().size(), 500u) << piece;
      }
      return static_cast<double>(after.tv_sec - before.tv_sec) +
             static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9;
    };
    constexpr double kGrowthMax = 16 * 4;
    double growth = kGrowthMax;
    for (int i = 0; i < 5 && growth >= kGrowthMax; ++i) {  // other programs disturb a measurement
      const double small = std::min(work(10'000), work(10'000)) + 0.001;
      growth = work(160'000) / small;
    }
    EXPECT_LT(growth, kGrowthMax) << piece;
  }
}

TEST(Yaml, NamesTheLineOfASyntaxError) {
  EXPECT_TRUE(json_of("a: 1\nb: [1, 2\n").starts_with("error f:"));
}

// Found by fuzzing: yaml-cpp 0.7 never returned from this.
TEST(Yaml, IsUtf8Text) {
  EXPECT_EQ(json_of("a: 1\n,apiVrsieno: k\xe5pheme\xf5"
                    "belet\n"),
            "error f:2: expected UTF-8 text, found byte 0xe5");
  EXPECT_EQ(json_of(std::string("a: \x04\n")), "error f:1: expected UTF-8 text, found byte 0x04");
  EXPECT_EQ(json_of("a: \xc3\xa4\n"), "{\"a\":\"\xc3\xa4\"}");
}

TEST(Yaml, IsWrittenSoThatItReadsBack) {
  const api::Json value =
      api::parse_json(R"({"a":"yes","b":"10","c":["pods",""],"d":{"memory.available":"10%"},"e":5,"f":false,"g":[]})")
          .value();
  const auto again = parse("f", yaml::to_text(value));
  ASSERT_TRUE(again.has_value()) << yaml::to_text(value);
  EXPECT_EQ(api::to_text(again->value), api::to_text(value));
}

TEST(Yaml, IsWrittenWithoutCharactersThatMoveATerminal) {
  const std::string evil = "a\x1b[2J\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6 \xc3\xa4";
  const api::Json value = api::Json::object({{"k" + evil, evil}, {"plain", "\xc3\xa4"}});
  const std::string text = yaml::to_text(value);
  EXPECT_EQ(text.find_first_of("\x1b\x7f"), std::string::npos) << text;
  for (const std::string_view each : {"\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6"})
    EXPECT_EQ(text.find(each), std::string::npos) << text;
  EXPECT_TRUE(text.contains("plain: \xc3\xa4\n")) << text;
  const auto again = parse("f", text);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->value, value);
}

}  // namespace
}  // namespace spillway::yaml
