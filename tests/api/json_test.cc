#include "api/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

TEST(Json, ObjectsCompareWithoutOrder) {
  EXPECT_EQ(parsed(R"({"a":1,"b":2})"), parsed(R"({"b":2,"a":1})"));
  EXPECT_NE(parsed(R"([1,2])"), parsed(R"([2,1])"));
}

}  // namespace
}  // namespace spillway::api
