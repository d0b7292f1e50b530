// Validation of objects by schemas, with the errors of Kubernetes 1.32.
#include "policy/structural/schemas.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

namespace {

struct ValueRow {
  std::string_view schema;  // the schema of spec.x
  std::string_view value;
  std::vector<std::string> problems;
};

Schema schema_of(std::string_view x) {
  return good_spec(std::string(R"({"type":"object","properties":{"x":)") + std::string(x) + "}}");
}

std::vector<std::string> problems_of(const ValueRow& row) {
  return problems(schema_of(row.schema), R"({"spec":{"x":)" + std::string(row.value) + "}}");
}

void expect_rows(const std::vector<ValueRow>& rows) {
  for (const ValueRow& row : rows) EXPECT_EQ(problems_of(row), row.problems) << row.schema << " " << row.value;
}

TEST(StructuralValues, Types) {
  const auto wrong = [](std::string_view wanted, std::string_view given) {
    return std::vector{"spec.x: Invalid value: \"" + std::string(given) + "\": spec.x in body must be of type " +
                       std::string(wanted) + ": \"" + std::string(given) + "\""};
  };
  expect_rows({
      {R"({"type":"integer"})", "1", {}},
      {R"({"type":"integer"})", "1.0", {}},
      {R"({"type":"integer"})", "1.5", wrong("integer", "number")},
      {R"({"type":"integer"})", R"("1")", wrong("integer", "string")},
      {R"({"type":"integer"})", "null", wrong("integer", "null")},
      {R"({"type":"integer","nullable":true})", "null", {}},
      {R"({"type":"number"})", "1", {}},
      {R"({"type":"number"})", "true", wrong("number", "boolean")},
      {R"({"type":"string"})", "{}", wrong("string", "object")},
      {R"({"type":"boolean"})", "[]", wrong("boolean", "array")},
      {R"({"type":"array","items":{"type":"string"}})", "{}", wrong("array", "object")},
      {R"({"type":"object"})", R"("a")", wrong("object", "string")},
      {R"({"x-kubernetes-int-or-string":true})", "1", {}},
      {R"({"x-kubernetes-int-or-string":true})", R"("10%")", {}},
      {R"({"x-kubernetes-int-or-string":true})", "true", wrong("integer,string", "boolean")},
      {R"({"x-kubernetes-int-or-string":true})", "1.2", wrong("integer,string", "number")},
      {R"({"x-kubernetes-preserve-unknown-fields":true})", "[1,{}]", {}},
  });
}

TEST(StructuralValues, Numbers) {
  expect_rows({
      {R"({"type":"integer","maximum":10})", "10", {}},
      {R"({"type":"integer","maximum":10})",
       "11",
       {"spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10"}},
      {R"({"type":"integer","maximum":10,"exclusiveMaximum":true})",
       "10",
       {"spec.x: Invalid value: 10: spec.x in body should be less than 10"}},
      {R"({"type":"integer","minimum":1})",
       "0",
       {"spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"}},
      {R"({"type":"integer","minimum":1,"exclusiveMinimum":true})",
       "1",
       {"spec.x: Invalid value: 1: spec.x in body should be greater than 1"}},
      {R"({"type":"number","maximum":0.5})",
       "0.75",
       {"spec.x: Invalid value: 0.75: spec.x in body should be less than or equal to 0.5"}},
      {R"({"type":"number","maximum":1e21})",
       "1e22",
       {"spec.x: Invalid value: 1e+22: spec.x in body should be less than or equal to 1e+21"}},
      {R"({"type":"integer","maximum":9007199254740993})", "9007199254740992", {}},
      {R"({"type":"integer","multipleOf":5})", "10", {}},
      {R"({"type":"integer","multipleOf":5})",
       "11",
       {"spec.x: Invalid value: 11: spec.x in body should be a multiple of 5"}},
      {R"({"type":"number","multipleOf":0.01})", "0.07", {}},
      {R"({"type":"number","multipleOf":0.5})",
       "0.75",
       {"spec.x: Invalid value: 0.75: spec.x in body should be a multiple of 0.5"}},
      {R"({"type":"integer","maximum":10,"minimum":20})",
       "15",
       {"spec.x: Invalid value: 15: spec.x in body should be less than or equal to 10",
        "spec.x: Invalid value: 15: spec.x in body should be greater than or equal to 20"}},
  });
}

TEST(StructuralValues, Texts) {
  expect_rows({
      {R"({"type":"string","maxLength":3})", R"("äöü")", {}},
      {R"({"type":"string","maxLength":3})", R"("abcd")", {"spec.x: Too long: may not be more than 3 bytes"}},
      {R"({"type":"string","minLength":2})",
       R"("ä")",
       {"spec.x: Invalid value: \"ä\": spec.x in body should be at least 2 chars long"}},
      {R"({"type":"string","pattern":"^a+$"})", R"("aaa")", {}},
      {R"({"type":"string","pattern":"^a+$"})",
       R"("ab")",
       {"spec.x: Invalid value: \"ab\": spec.x in body should match '^a+$'"}},
      {R"({"type":"string","enum":["a","b"]})", R"("a")", {}},
      {R"({"type":"string","enum":["a","b"]})",
       R"("x")",
       {R"(spec.x: Unsupported value: "x": supported values: "a", "b")"}},
      {R"({"type":"integer","enum":[1,2]})", "3", {R"(spec.x: Unsupported value: 3: supported values: "1", "2")"}},
      {R"({"type":"number","enum":[1,2]})", "1.0", {}},
      {R"({"type":"string","enum":["a"],"nullable":true})",
       "null",
       {R"(spec.x: Unsupported value: "null": supported values: "a")"}},
  });
}

TEST(StructuralValues, Containers) {
  expect_rows({
      {R"({"type":"array","items":{"type":"integer"},"maxItems":2})",
       "[1,2,3]",
       {"spec.x: Too many: 3: must have at most 2 items"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":2})",
       "[1]",
       {"spec.x: Invalid value: 1: spec.x in body should have at least 2 items"}},
      {R"({"type":"array","items":{"type":"integer"}})",
       R"([1,"a"])",
       {R"(spec.x[1]: Invalid value: "string": spec.x[1] in body must be of type integer: "string")"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})",
       R"({"a":"b"})",
       {R"(spec.x.a: Invalid value: "string": spec.x.a in body must be of type integer: "string")"}},
      {R"({"type":"object","maxProperties":1,"additionalProperties":{"type":"integer"}})",
       R"({"a":1,"b":2})",
       {"spec.x: Too many: 2: must have at most 1 item"}},
      {R"({"type":"object","minProperties":1,"additionalProperties":{"type":"integer"}})",
       "{}",
       {"spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"}},
      {R"({"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}})",
       R"({"b":""})",
       {"spec.x.a: Required value"}},
      {R"({"type":"object","additionalProperties":false})",
       R"({"a":1})",
       {R"(spec.x: Invalid value: "a": spec.x.a in body is a forbidden property)"}},
  });
}

TEST(StructuralValues, Combinations) {
  expect_rows({
      {R"({"type":"integer","anyOf":[{"minimum":10},{"maximum":5}]})", "3", {}},
      {R"({"type":"integer","anyOf":[{"minimum":10},{"maximum":5}]})",
       "7",
       {R"(<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf))",
        "spec.x: Invalid value: 7: spec.x in body should be greater than or equal to 10"}},
      {R"({"type":"integer","oneOf":[{"minimum":1},{"minimum":5}]})", "3", {}},
      {R"({"type":"integer","oneOf":[{"minimum":1},{"minimum":5}]})",
       "7",
       {R"(<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives)"}},
      {R"({"type":"integer","oneOf":[{"minimum":1},{"minimum":5}]})",
       "0",
       {R"(<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid)",
        "spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"}},
      {R"({"type":"integer","allOf":[{"minimum":1},{"maximum":5}]})",
       "7",
       {"spec.x: Invalid value: 7: spec.x in body should be less than or equal to 5",
        R"(<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf))"}},
      {R"({"type":"integer","allOf":[{"minimum":9}]})",
       "7",
       {"spec.x: Invalid value: 7: spec.x in body should be greater than or equal to 9",
        R"(<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf). None validated)"}},
      {R"({"type":"integer","not":{"minimum":5}})",
       "7",
       {R"(<nil>: Invalid value: "": "spec.x" must not validate the schema (not))"}},
      {R"({"type":"integer","not":{"minimum":5}})", "4", {}},
      {R"({"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]})",
       "true",
       {R"(spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean")",
        R"(<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf))",
        R"(spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean")"}},
      {R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]})",
       R"({})",
       {R"(<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid)",
        "spec.x.a: Required value"}},
  });
}

TEST(StructuralValues, ListTypes) {
  expect_rows({
      {R"({"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}})",
       R"(["a","b","a","a"])",
       {R"(spec.x[2]: Duplicate value: "a")"}},
      {R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}})",
       R"([{"k":"a","v":1},{"k":"b"},{"k":"a","v":2}])",
       {R"(spec.x[2]: Duplicate value: {"k":"a"})"}},
  });
}

TEST(StructuralValues, EmbeddedResources) {
  expect_rows({
      {R"({"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true})",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"b":"c"}}})",
       {}},
      {R"({"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true})",
       R"({"kind":"","metadata":{"name":"a/b"}})",
       {"spec.x.apiVersion: Required value: must not be empty", "spec.x.kind: Required value: must not be empty",
        "spec.x.metadata.name: Invalid value: \"a/b\": may not contain '/'"}},
  });
}

TEST(StructuralValues, WhatAnUpdateKeepsIsNotReportedAgain) {
  const Schema schema = good_spec(
      R"({"type":"object","properties":{"a":{"type":"integer","maximum":1},"b":{"type":"integer","maximum":1},
          "l":{"type":"array","items":{"type":"integer","maximum":1}},
          "m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
               "items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer","maximum":1}}}},
          "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","maxLength":1}}}})");
  using Lines = std::vector<std::string>;
  EXPECT_EQ(update_problems(schema, R"({"spec":{"a":5,"b":1}})", R"({"spec":{"a":5}})"), Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"a":6}})", R"({"spec":{"a":5}})"),
            Lines{"spec.a: Invalid value: 6: spec.a in body should be less than or equal to 1"});
  EXPECT_EQ(update_problems(schema, R"({"spec":{"l":[5,1]}})", R"({"spec":{"l":[5]}})"), Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"l":[1,5]}})", R"({"spec":{"l":[5]}})"),
            Lines{"spec.l[1]: Invalid value: 5: spec.l[1] in body should be less than or equal to 1"});
  EXPECT_EQ(
      update_problems(schema, R"({"spec":{"m":[{"k":"b"},{"k":"a","v":5}]}})", R"({"spec":{"m":[{"k":"a","v":5}]}})"),
      Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"s":["aa","aa"],"a":1}})", R"({"spec":{"s":["aa","aa"]}})"), Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"s":["a","a"],"a":1}})", R"({"spec":{"s":["a"]}})"),
            Lines{R"(spec.s[1]: Duplicate value: "a")"});
}

TEST(StructuralValues, WorkIsBounded) {
  std::string alternatives = R"({"maximum":1})";
  for (int i = 0; i < 14; ++i) alternatives = R"({"anyOf":[)" + alternatives + "," + alternatives + "]}";
  const auto schema = Schema::reread(json(R"({"type":"object","properties":{"x":)" + alternatives + "}}"));
  EXPECT_FALSE(schema.has_value());  // too many schemas
  std::string list = "[";
  for (int i = 0; i < 3'000; ++i) list += "2,";
  std::string many = R"({"type":"array","items":{"type":"integer","anyOf":[{"maximum":1})";
  for (int i = 0; i < 1'000; ++i) many += R"(,{"maximum":1})";
  const auto lines = problems(schema_of(many + "]}}"), R"({"spec":{"x":)" + list + "2]}}");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front(),
            "<nil>: Invalid value: \"\": the object is too large to be held against its schema: the checks stopped");
}

}  // namespace

}  // namespace spillway::structural
