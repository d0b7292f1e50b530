#include "api/json/json.h"

#include "api/json/json_values.h"
#include "base/heap_size.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace spillway::api {
namespace {

Json parsed(std::string_view text) {
  auto document = parse_json(text);
  EXPECT_TRUE(document) << text << ": " << document.error().text();
  return document ? *std::move(document) : Json();
}

TEST(JsonParse, KeepsIntegersExact) {
  EXPECT_EQ(parsed("9223372036854775807").if_int64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parsed("-9223372036854775808").if_int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parsed("18446744073709551615").if_uint64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parsed("18446744073709551615").if_int64(), std::nullopt);
  EXPECT_EQ(parsed("-1").if_uint64(), std::nullopt);
  EXPECT_EQ(parsed("7"), Json(std::uint64_t{7})) << "equal numbers are equal values";
}

TEST(JsonParse, TakesTheNearestDouble) {
  for (const double value :
       {0.1, 1.5e3, 1.2222222222222222e+60, 5e-324, 1.7976931348623157e308, -2.2250738585072011e-308}) {
    const std::string text = fmt::format("{:.17e}", value);
    EXPECT_EQ(parsed(text).if_double(), value) << text;
    EXPECT_EQ(parsed(to_text(Json(value))).if_double(), value) << text;
  }
  EXPECT_EQ(parsed("122222222222222222222222222222222222222222222222222222222222226").if_double(),
            122222222222222222222222222222222222222222222222222222222222226.0);
}

TEST(JsonParse, RefusesWhatIsNoJson) {
  for (const std::string_view text : {"", " ", "{", "[1,]", "{\"a\"}", "{a:1}", "01", "1.", "+1", "nul", "\"\\x\"",
                                      "[1] 2", "\"\n\"", "1e400", "-1e999999999", "NaN", "'a'", "\xff"}) {
    const auto document = parse_json(text);
    ASSERT_FALSE(document) << text;
    EXPECT_EQ(document.error().code, ErrorCode::kBadRequest);
    EXPECT_TRUE(document.error().message.starts_with("invalid JSON at byte ")) << document.error().message;
  }
  EXPECT_FALSE(parse_json(std::string(1001, '[') + std::string(1001, ']')));
  EXPECT_TRUE(parse_json(std::string(1000, '[') + std::string(1000, ']')));
  EXPECT_TRUE(parse_json(" \t\r\n{} \n"));
}

TEST(JsonParse, TheLastOfRepeatedMembersWinsAndAllAreNamed) {
  std::vector<std::string> duplicates;
  const auto document =
      parse_json(R"({"b":1,"a":{"x":1,"x":2,"x":3},"list":[{},{"k":{"y":1,"y":2}}],"b":2})", &duplicates);
  ASSERT_TRUE(document);
  EXPECT_EQ(to_text(*document), R"({"a":{"x":3},"b":2,"list":[{},{"k":{"y":2}}]})");
  EXPECT_EQ(duplicates, (std::vector<std::string>{"a.x", "list[1].k.y", "b"}));
}

TEST(JsonText, EscapesAndOrder) {
  EXPECT_EQ(to_text(parsed(R"({"b":"\u0001\"\\\n\u00fc","a":[true,null,-1.5]})")),
            "{\"a\":[true,null,-1.5],\"b\":\"\\u0001\\\"\\\\\\n\xc3\xbc\"}");
  EXPECT_EQ(to_pretty_text(parsed(R"({"a":[1,{}],"b":[]})")),
            "{\n    \"a\": [\n        1,\n        {}\n    ],\n    \"b\": []\n}");
  EXPECT_EQ(to_text(Json(std::nan(""))), "null");
}

TEST(Json, CountsTheBytesOfItsTree) {
  EXPECT_EQ(tree_bytes(Json(7)), 0U);
  EXPECT_EQ(tree_bytes(Json("short")), 0U);
  EXPECT_EQ(tree_bytes(Json::object()), 0U);
  const std::string text(100, 'x');
  const std::size_t object = block_bytes(8 + sizeof(Json::Object)) + block_bytes(sizeof(JsonObject::Member));
  EXPECT_EQ(tree_bytes(Json::object({{"a", text}})), object + block_bytes(101));
  EXPECT_GT(tree_bytes(Json::object({{"a", Json::array({Json::object({{"b", text}})})}})), 2 * object);
}

TEST(Json, WalksAndMakesPaths) {
  Json document = parsed(R"({"a":{"b":"c"},"n":1})");
  EXPECT_EQ(document.string_at({"a", "b"}), "c");
  EXPECT_EQ(document.string_at({"a", "x"}), "");
  EXPECT_EQ(document.at({"n", "x"}), nullptr);
  document.make({"n", "x"}) = 2;
  EXPECT_EQ(to_text(document), R"({"a":{"b":"c"},"n":{"x":2}})");
  EXPECT_TRUE(document.erase({"a", "b"}));
  EXPECT_FALSE(document.erase({"a", "b"}));
  EXPECT_FALSE(document.erase({"z", "b"}));
  document["a"]["q"] = Json::array({1, "x"});
  EXPECT_EQ(to_text(document), R"({"a":{"q":[1,"x"]},"n":{"x":2}})");
}

TEST(Json, CopiesAreValues) {
  const Json original = parsed(R"({"list":[{"a":1},{"b":2}],"object":{"x":{"y":1}}})");
  Json copy = original;
  EXPECT_TRUE(copy.shares(original));
  copy.make({"object", "x", "y"}) = 2;
  (*copy.find("list")->if_array())[1]["c"] = 3;
  EXPECT_EQ(to_text(original), R"({"list":[{"a":1},{"b":2}],"object":{"x":{"y":1}}})");
  EXPECT_EQ(to_text(copy), R"({"list":[{"a":1},{"b":2,"c":3}],"object":{"x":{"y":2}}})");
  EXPECT_FALSE(copy.shares(original));
  const Json& changed = copy;
  EXPECT_TRUE(changed.find("list")->if_array()->front().shares(original.find("list")->if_array()->front()))
      << "what was not changed stays shared";
}

TEST(Json, EveryWayToChangeACopyLeavesTheOriginal) {
  const std::string text = R"({"a":{"b":{"c":1}},"l":[1,2]})";
  const std::vector<std::function<void(Json&)>> changes{
      [](Json& j) { j["a"]["b"]["d"] = 2; },
      [](Json& j) { j.make({"a", "b"}) = 2; },
      [](Json& j) { j.erase({"a", "b", "c"}); },
      [](Json& j) { *j.at({"a", "b", "c"}) = 2; },
      [](Json& j) { *j.find("a") = 2; },
      [](Json& j) { j.find("l")->if_array()->push_back(3); },
      [](Json& j) { j.if_object()->erase("a"); },
      [](Json& j) { (*j.if_object())["a"] = 2; },
      [](Json& j) { *j.if_object()->find("a") = 2; },
      [](Json& j) { j.if_object()->begin()->value["b"] = 2; },
      [](Json& j) { j.if_object()->assign_unsorted({}); },
      [](Json& j) { const Json::Object taken = std::move(*j.if_object()); },
      [](Json& j) { const Json::Array taken = std::move(*j.find("l")->if_array()); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Json original = parsed(text);
    Json copy = original;
    changes[i](copy);
    EXPECT_EQ(to_text(original), text) << i;
    EXPECT_NE(copy, original) << i;
  }
}

TEST(Json, MayBecomeAPartOfItself) {
  Json document = parsed(R"({"a":[{"b":"c"}]})");
  document = *std::as_const(document).find("a");
  EXPECT_EQ(to_text(document), R"([{"b":"c"}])");
  document = std::as_const(document).if_array()->front();
  EXPECT_EQ(to_text(document), R"({"b":"c"})");
  document["self"] = Json(document);
  EXPECT_EQ(to_text(document), R"({"b":"c","self":{"b":"c"}})");
  document = *std::as_const(document).find("b");
  EXPECT_EQ(to_text(document), R"("c")");
}

TEST(Json, ReadingAMissingMemberChangesNothing) {
  const Json original = parsed(R"({"a":{"b":1}})");
  Json copy = original;
  EXPECT_EQ(copy.find("x"), nullptr);
  EXPECT_EQ(copy.at({"a", "x"}), nullptr);
  EXPECT_FALSE(copy.erase({"a", "x"}));
  EXPECT_FALSE(copy.erase({"x", "b"}));
  EXPECT_TRUE(copy.shares(original));
}

TEST(Json, ObjectsCompareWithoutOrder) {
  EXPECT_EQ(parsed(R"({"a":1,"b":2})"), parsed(R"({"b":2,"a":1})"));
  EXPECT_NE(parsed(R"([1,2])"), parsed(R"([2,1])"));
}

}  // namespace
}  // namespace spillway::api
