// Schemas that are refused, in the words of Kubernetes 1.32, and those that are not.
#include "policy/structural/schemas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

namespace {

using Lines = std::vector<std::string>;

struct SchemaRow {
  std::string_view schema;
  Lines problems;
};

void expect_problems(const std::vector<SchemaRow>& rows) {
  for (const SchemaRow& row : rows) EXPECT_EQ(schema_problems(row.schema), row.problems) << row.schema;
}

/// Rows whose schema is that of the property x.
void expect_problems_of_x(const std::vector<SchemaRow>& rows) {
  for (const SchemaRow& row : rows) {
    const std::string schema = fmt::format(R"({{"type":"object","properties":{{"x":{}}}}})", row.schema);
    EXPECT_EQ(schema_problems(schema), row.problems) << row.schema;
  }
}

TEST(StructuralSchemas, Roots) {
  expect_problems({
      {R"({"type":"object"})", {}},
      {R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})", {}},
      {R"({})", {"s.type: Required value: must not be empty at the root"}},
      {R"({"type":"string"})", {"s.type: Invalid value: \"string\": must be object at the root"}},
      {R"({"type":"object","additionalProperties":{"type":"string"}})",
       {"s.additionalProperties: Forbidden: must not be used at the root"}},
      {R"({"type":"object","properties":{"kind":{"type":"integer"}}})",
       {"s.properties[kind].type: Invalid value: \"integer\": must be string"}},
      {R"({"type":"object","properties":{"metadata":{"type":"object"}}})", {}},
      {R"({"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":5}}}}})",
       {}},
      {R"({"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}})",
       {"s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata "
        "is "
        "implicitly specified"}},
      {R"({"type":"object","properties":{"metadata":{"type":"object","default":{}}}})",
       {"s.properties[metadata].default: Forbidden: must not be set in top-level metadata"}},
  });
}

TEST(StructuralSchemas, Types) {
  expect_problems_of_x({
      {R"({})", {"s.properties[x].type: Required value: must not be empty for specified object fields"}},
      {R"({"type":"array"})", {"s.properties[x].items: Required value: must be specified"}},
      {R"({"type":"array","items":{}})",
       {"s.properties[x].items.type: Required value: must not be empty for specified array items"}},
      {R"({"type":"array","items":[{"type":"string"}]})",
       {"s.properties[x].items: Forbidden: items must be a schema object and not an array"}},
      {R"({"type":"text"})",
       {"s.properties[x].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", "
        "\"number\", \"object\", \"string\""}},
      {R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}})",
       {"s.properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"}},
      {R"({"type":"string","uniqueItems":true})",
       {"s.properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity "
        "becomes "
        "quadratic"}},
      {R"({"type":"string","$ref":"#/a"})", {"s.properties[x].$ref: Forbidden: $ref is not supported"}},
      {R"({"type":"object","patternProperties":{"a":{"type":"string"}}})",
       {"s.properties[x].patternProperties: Forbidden: patternProperties is not supported"}},
      {R"({"type":5})",
       {"s.properties[x].type: Required value: must not be empty for specified object fields",
        "s.properties[x].type: Invalid value: 5: must be a string"}},
      {R"([])",
       {"s.properties[x].type: Required value: must not be empty for specified object fields",
        "s.properties[x]: Invalid value: []: must be an object, not a list"}},
  });
}

TEST(StructuralSchemas, Combinations) {
  expect_problems_of_x({
      {R"({"type":"integer","anyOf":[{"minimum":1}]})", {}},
      {R"({"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]})", {}},
      {R"({"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"a"}]})",
       {}},
      {R"({"type":"integer","anyOf":[{"type":"integer","description":"d","default":1,"nullable":true}]})",
       {"s.properties[x].anyOf[0].default: Forbidden: must be undefined to be structural",
        "s.properties[x].anyOf[0].description: Forbidden: must be empty to be structural",
        "s.properties[x].anyOf[0].nullable: Forbidden: must be false to be structural",
        "s.properties[x].anyOf[0].type: Forbidden: must be empty to be structural"}},
      {R"({"type":"object","not":{"properties":{"a":{"minimum":1}}}})",
       {"s.properties[x].properties[a]: Required value: because it is defined in s.properties[x].not.properties[a]"}},
      {R"({"type":"object","allOf":[{"properties":{"metadata":{"required":["name"]}}}],"properties":{"metadata":{"type":"object"}}})",
       {"s.properties[x].allOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"}},
      {R"({"type":"string","oneOf":[{"x-kubernetes-validations":[{"rule":"true"}]}]})",
       {"s.properties[x].oneOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"}},
  });
  const Lines pattern = schema_problems(R"({"type":"object","properties":{"x":{"type":"string","pattern":"("}}})");
  ASSERT_EQ(pattern.size(), 1U);
  EXPECT_TRUE(pattern[0].starts_with(
      "s.properties[x].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: "));
}

TEST(StructuralSchemas, Extensions) {
  expect_problems_of_x({
      {R"({"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true})",
       {"s.properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
        "x-kubernetes-int-or-string is true"}},
      {R"({"type":"object","x-kubernetes-preserve-unknown-fields":false})",
       {"s.properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"}},
      {R"({"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true})",
       {"s.properties[x].type: Required value: must be object if x-kubernetes-embedded-resource is true"}},
      {R"({"type":"object","x-kubernetes-embedded-resource":true})",
       {"s.properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true "
        "without "
        "x-kubernetes-preserve-unknown-fields"}},
      {R"({"type":"string","x-kubernetes-map-type":"atomic"})",
       {"s.properties[x].type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified"}},
      {R"({"type":"object","x-kubernetes-map-type":"set"})",
       {"s.properties[x].x-kubernetes-map-type: Unsupported value: \"set\": supported values: \"atomic\", "
        "\"granular\""}},
  });
}

TEST(StructuralSchemas, Lists) {
  expect_problems_of_x({
      {R"({"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"bag"})",
       {"s.properties[x].x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", "
        "\"map\""}},
      {R"({"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}})",
       {"s.properties[x].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
        "x-kubernetes-list-type=set"}},
      {R"({"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true}})",
       {"s.properties[x].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"}},
      {R"({"type":"array","x-kubernetes-list-type":"map","items":{"type":"object"}})",
       {"s.properties[x].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is "
        "map"}},
      {R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"string"}})",
       {"s.properties[x].items.type: Invalid value: \"string\": must be object if parent array's "
        "x-kubernetes-list-type "
        "is map"}},
      {R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"],"items":{"type":"object","properties":{"a":{"type":"string"}}}})",
       {"s.properties[x].x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\"]: entries must all be names of item "
        "properties",
        "s.properties[x].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, "
        "so "
        "it must have a default or be a required property"}},
      {R"({"type":"array","items":{"type":"object"},"x-kubernetes-list-map-keys":["a"]})",
       {"s.properties[x].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is "
        "non-empty"}},
  });
}

TEST(StructuralSchemas, Defaults) {
  expect_problems_of_x({
      {R"({"type":"integer","default":1})", {}},
      {R"({"type":"integer","default":"a"})",
       {"s.properties[x].default: Invalid value: \"string\":  in body must be of type integer: \"string\""}},
      {R"({"type":"object","default":{"a":1},"properties":{"b":{"type":"integer"}}})",
       {"s.properties[x].default: Invalid value: {\"a\":1}: must not have unknown fields"}},
      {R"({"type":"object","default":{"b":"c"},"properties":{"b":{"type":"integer"}}})",
       {"s.properties[x].default.b: Invalid value: \"string\": b in body must be of type integer: \"string\""}},
      {R"({"type":"integer","default":1,"maximum":0})",
       {"s.properties[x].default: Invalid value: 1:  in body should be less than or equal to 0"}},
      {R"({"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self > 1"}]})",
       {"s.properties[x].default: Invalid value: \"integer\": failed rule: self > 1"}},
  });
}

TEST(StructuralSchemas, Rules) {
  expect_problems_of_x({
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"},{"rule":"self >= oldSelf"}]})", {}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":""}]})",
       {"s.properties[x].x-kubernetes-validations[0].rule: Required value: rule is not specified"}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self > 1","reason":"No"}]})",
       {"s.properties[x].x-kubernetes-validations[0].reason: Unsupported value: \"No\": supported values: "
        "\"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self\n> 1"}]})",
       {"s.properties[x].x-kubernetes-validations[0].message: Required value: message must be specified if rule "
        "contains "
        "line breaks"}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self + 1"}]})",
       {"s.properties[x].x-kubernetes-validations[0].rule: Invalid value: {\"rule\":\"self + 1\"}: cel expression must "
        "evaluate to a bool"}},
      {R"({"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.b == 'c'"}]})",
       {"s.properties[x].x-kubernetes-validations[0].rule: Invalid value: {\"rule\":\"self.b == 'c'\"}: compilation "
        "failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == 'c'\n | ....^"}},
      {R"({"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":".b"}]})",
       {"s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: \".b\": fieldPath must be a valid "
        "path"}},
      {R"({"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}})",
       {"s.properties[x].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be "
        "used on the uncorrelatable portion of the schema within s.properties[x]"}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"true","messageExpression":"self"}]})",
       {"s.properties[x].x-kubernetes-validations[0].messageExpression: Invalid value: "
        "{\"messageExpression\":\"self\",\"rule\":\"true\"}: messageExpression must evaluate to a string"}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"object == 1"}]})",
       {"s.properties[x].x-kubernetes-validations[0].rule: Invalid value: {\"rule\":\"object == 1\"}: compilation "
        "failed: "
        "ERROR: <input>:1:1: undeclared reference to 'object' (in container '')\n | object == 1\n | ^"}},
  });
}

TEST(StructuralSchemas, SizeIsBounded) {
  std::string deep = R"({"type":"string"})";
  for (int i = 0; i < 120; ++i) deep = R"({"type":"object","properties":{"a":)" + deep + "}}";
  EXPECT_EQ(schema_problems(deep),
            Lines{"s: Invalid value: \"\": must hold at most 20000 schemas, at most 100 within one another"});
}

/// An object with this number of texts, the first with the first pattern.
std::string texts_with_patterns(int count, const std::function<std::string(int)>& pattern) {
  std::string properties;
  for (int i = 0; i < count; ++i) {
    properties += fmt::format(R"({}"p{:05}":{{"type":"string","pattern":"{}"}})", i == 0 ? "" : ",", i, pattern(i));
  }
  return fmt::format(R"({{"type":"object","properties":{{{}}}}})", properties);
}

/// Expects the error at a later pattern, not at the first one.
void expect_too_many_patterns(std::string_view schema) {
  const Lines lines = schema_problems(schema);
  ASSERT_FALSE(lines.empty());
  EXPECT_FALSE(lines.front().starts_with("s.properties[p00000]")) << lines.front();
  EXPECT_EQ(lines.front().substr(lines.front().find(": must be")),
            ": must be a valid regular expression, but isn't: the patterns of the schema have more than 500000 steps "
            "together");
}

TEST(StructuralSchemas, PatternsAreBoundedTogether) {
  const auto different = [](int i) { return fmt::format("{}.{{300}}", i); };
  EXPECT_EQ(schema_problems(texts_with_patterns(50, different)), Lines());
  expect_too_many_patterns(texts_with_patterns(400, different));
  expect_too_many_patterns(texts_with_patterns(6'000, [](int i) { return fmt::format("{}", i); }));
  EXPECT_EQ(schema_problems(texts_with_patterns(6'000, [](int) { return ".{300}"; })), Lines()) << "one is made once";
}

/// Each costs as much as it took to find that out.
TEST(StructuralSchemas, PatternsThatAreTooLargeCountAsWell) {
  const Lines lines =
      schema_problems(texts_with_patterns(400, [](int i) { return fmt::format(R"({}(\\pL{{30}}){{30}})", i); }));
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.front().find("pattern too large"), std::string::npos) << lines.front();
  EXPECT_NE(lines.back().find("more than 500000 steps"), std::string::npos) << lines.back();
}

TEST(StructuralSchemas, ChecksOfDefaultsAreBoundedTogether) {
  const std::string list = fmt::format("[{}]", fmt::join(std::vector<int>(200, 1), ","));
  const auto schema = [&](int count) {
    std::string properties;
    for (int i = 0; i < count; ++i) {
      properties += fmt::format(
          R"x({}"p{:05}":{{"type":"array","maxItems":365,"items":{{"type":"integer"}},"default":{},"x-kubernetes-validations":[{{"rule":"self.all(x, self.all(y, x <= y + 5))"}}]}})x",
          i == 0 ? "" : ",", i, list);
    }
    return fmt::format(R"({{"type":"object","properties":{{{}}}}})", properties);
  };
  EXPECT_EQ(schema_problems(schema(5)), Lines());
  const Lines lines = schema_problems(schema(150));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].contains("estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of"))
      << lines[0];
}

}  // namespace

}  // namespace spillway::structural
