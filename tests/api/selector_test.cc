#include "api/object/selector.h"

#include "api/json/json.h"
#include "api/object/node_affinity.h"

#include <gtest/gtest.h>

namespace spillway::api {
namespace {

LabelSelector selector(std::string_view text) {
  const auto parsed = parse_label_selector(text);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().text();
  return parsed.value_or(LabelSelector{.requirements = {}, .nothing = true});
}

Result<LabelSelector> structured(std::string_view text) {
  const auto document = parse_json(text);
  return label_selector_from_json(&*document);
}

TEST(LabelSelector, BadSyntaxIsABadRequest) {
  for (const std::string_view text :
       {",", "a=b,", "a in", "a in (b", "a>x", "=b", "a b", "a=b c", "!", "a in (b))", "a in (,,)", "a in (b,,)"}) {
    const auto parsed = parse_label_selector(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kBadRequest);
  }
}

TEST(LabelSelector, AnEmptyPlaceInAListIsTheEmptyValue) {
  for (const std::string_view text : {"a in ()", "a in (,)", "a in (b,)", "a in (,,b)", "a in (b,,c)", "a in (,,,)"}) {
    EXPECT_TRUE(selector(text).matches({{"a", ""}})) << text;
  }
}

TEST(LabelSelector, EverythingAndNothing) {
  EXPECT_TRUE(selector("").is_everything());
  EXPECT_TRUE(selector("").matches({{"a", "b"}}));
  const auto nothing = label_selector_from_json(nullptr);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->matches({}));
  EXPECT_TRUE(label_selector_to_json(*nothing).is_null());
  EXPECT_EQ(to_text(label_selector_to_json(selector(""))), "{}");
}

TEST(LabelSelector, PrintedSelectorsReadBack) {
  for (const std::string_view text :
       {"a=b", "a!=b", "a in (b,c)", "a notin (,b)", "!a", "a", "a>4", "a<4", "a==b", "a=,b=c,!d,e in (f)"}) {
    EXPECT_EQ(selector(to_string(selector(text))), selector(text)) << text;
  }
}

TEST(LabelSelector, TwoValuesOfOneKeyDoNotBothBecomeMatchLabels) {
  const LabelSelector both = selector("a=b,a=c");
  const Json document = label_selector_to_json(both);
  const auto again = label_selector_from_json(&document);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->matches({{"a", "b"}}));
  EXPECT_FALSE(again->matches({{"a", "c"}}));
}

TEST(LabelSelector, StructuredFormNamesTheMemberOfTheWrongType) {
  EXPECT_EQ(structured("[]").error().text(), "expected an object");
  EXPECT_EQ(structured(R"({"matchLabels":[]})").error().text(), "matchLabels: expected an object");
  EXPECT_EQ(structured(R"({"matchExpressions":[{"key":"a","operator":"Exists"},7]})").error().text(),
            "matchExpressions[1]: expected an object");
  EXPECT_EQ(structured(R"({"matchExpressions":[{"key":1}]})").error().text(),
            "matchExpressions[0].key: expected a string");
  EXPECT_EQ(structured(R"({"matchExpressions":[{"key":"a","operator":"In","values":["b",1]}]})").error().text(),
            "matchExpressions[0].values[1]: expected a string");
}

TEST(FieldSelector, AnAbsentFieldIsEmpty) {
  const auto parsed = parse_field_selector("spec.nodeName=,status.phase!=Failed");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->matches({}));
  EXPECT_FALSE(parsed->matches({{"status.phase", "Failed"}}));
  EXPECT_FALSE(parsed->matches({{"spec.nodeName", "n1"}}));
  EXPECT_EQ(parse_field_selector("a").error().code, ErrorCode::kBadRequest);
}

TEST(NodeAffinity, DocumentsOfTheWrongShapeMatchNothing) {
  const ObjectMeta node{.name = "n1"};
  for (const std::string_view text : {"{}", "[]", R"({"nodeSelectorTerms":{}})", R"({"nodeSelectorTerms":[7,{}]})",
                                      R"({"nodeSelectorTerms":[{"matchExpressions":"x"}]})"}) {
    const NodeSelector parsed = parse_node_selector(*parse_json(text));
    EXPECT_EQ(parsed.matches(node).value_or(false), false) << text;
  }
  const auto broken = parse_node_selector(*parse_json(R"({"nodeSelectorTerms":[{"matchExpressions":[7]}]})"));
  EXPECT_FALSE(broken.matches(node));
}

}  // namespace
}  // namespace spillway::api
