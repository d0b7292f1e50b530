// Goal: YAML's traps do not change what somebody meant, and what cannot be read is named with its line.
#include "yaml/yaml_document.h"

#include <gtest/gtest.h>

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
  EXPECT_TRUE(json_of(text).ends_with("more than 20000 values; do aliases multiply?"));
}

TEST(Yaml, NamesTheLineOfASyntaxError) {
  EXPECT_TRUE(json_of("a: 1\nb: [1, 2\n").starts_with("error f:"));
}

// Found by fuzzing: yaml-cpp 0.7 never came back from this.
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

}  // namespace
}  // namespace spillway::yaml
