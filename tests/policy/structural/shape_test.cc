// Pruning and defaults of objects.
#include "policy/structural/object_shape.h"
#include "policy/structural/schemas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;
using Lines = std::vector<std::string>;

struct PruneRow {
  std::string_view schema;
  std::string_view object;
  std::string_view kept;
  Lines dropped;
};

TEST(StructuralShape, Pruning) {
  const std::vector<PruneRow> rows{
      {R"({"type":"object"})",
       R"({"kind":"A","apiVersion":"b/v1","metadata":{"x":1},"spec":{}})",
       R"({"kind":"A","apiVersion":"b/v1","metadata":{"x":1}})",
       {"spec"}},
      {R"({"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer"}}}}})",
       R"({"spec":{"a":1,"b":2,"c":{}},"status":{}})",
       R"({"spec":{"a":1}})",
       {"spec.b", "spec.c", "status"}},
      {R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}}}}}})",
       R"({"l":[{"a":1},{"b":1}]})",
       R"({"l":[{"a":1},{}]})",
       {"l[1].b"}},
      {R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"integer"}}}}}})",
       R"({"m":{"x":{"a":1,"b":1}}})",
       R"({"m":{"x":{"a":1}}})",
       {"m.x.b"}},
      {R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":true}}})",
       R"({"m":{"x":{"a":1},"y":2}})",
       R"({"m":{"x":{},"y":2}})",
       {"m.x.a"}},
      {R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object"}}})",
       R"({"a":{"b":1},"c":{"d":1}})",
       R"({"a":{},"c":{"d":1}})",
       {"a.b"}},
      {R"({"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}})",
       R"({"e":{"kind":"A","metadata":{"n":1,"name":"m","labels":{"a":"b"},"ownerReferences":[{"uid":"u","x":1}]},"spec":{"a":1},"x":1}})",
       R"({"e":{"kind":"A","metadata":{"name":"m","labels":{"a":"b"},"ownerReferences":[{"uid":"u"}]},"spec":{}}})",
       {"e.metadata.n", "e.metadata.ownerReferences[0].x", "e.spec.a", "e.x"}},
      {R"({"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}})",
       R"({"e":{"kind":"A","metadata":{"name":"m","unknownMeta":"x"},"more":{"unknownMeta":"x"}}})",
       R"({"e":{"kind":"A","metadata":{"name":"m"},"more":{"unknownMeta":"x"}}})",
       {"e.metadata.unknownMeta"}},
      {R"({"type":"object","properties":{"p":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object"}}}})",
       R"({"p":[{"a":1}]})",
       R"({"p":[{"a":1}]})",
       {}},
  };
  for (const PruneRow& row : rows) {
    Json object = json(row.object);
    const Schema schema = *Schema::reread(json(row.schema));
    EXPECT_EQ(prune(schema, object), row.dropped) << row.object;
    EXPECT_EQ(api::to_text(object), api::to_text(json(row.kept)));
    EXPECT_EQ(prune(schema, object), Lines()) << "again";
  }
}

TEST(StructuralShape, WhatIsAsItShouldBeStaysShared) {
  const Schema schema = good_spec(R"({"type":"object","properties":{"a":{"type":"object","default":{}}}})");
  const Json object = json(R"({"spec":{"a":{}}})");
  Json copy = object;
  EXPECT_EQ(prune(schema, copy), Lines());
  apply_defaults(schema, copy);
  EXPECT_TRUE(copy.shares(object));
}

struct DefaultRow {
  std::string_view spec;
  std::string_view object;
  std::string_view filled;
};

TEST(StructuralShape, Defaults) {
  const std::vector<DefaultRow> rows{
      {R"({"type":"object","properties":{"a":{"type":"integer","default":1}}})", R"({})", R"({})"},
      {R"({"type":"object","default":{},"properties":{"a":{"type":"integer","default":1}}})", R"({})",
       R"({"spec":{"a":1}})"},
      {R"({"type":"object","properties":{"a":{"type":"integer","default":1}}})", R"({"spec":{"a":2}})",
       R"({"spec":{"a":2}})"},
      {R"({"type":"object","properties":{"a":{"type":"integer","default":1}}})", R"({"spec":{"a":null}})",
       R"({"spec":{"a":1}})"},
      {R"({"type":"object","properties":{"a":{"type":"integer","default":1,"nullable":true}}})",
       R"({"spec":{"a":null}})", R"({"spec":{"a":null}})"},
      {R"({"type":"object","properties":{"a":{"type":"integer"}}})", R"({"spec":{"a":null}})", R"({"spec":{}})"},
      {R"({"type":"object","properties":{"a":{"type":"integer","nullable":true}}})", R"({"spec":{"a":null}})",
       R"({"spec":{"a":null}})"},
      {R"({"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","default":1}}}})",
       R"({"spec":[{},{"a":2}]})", R"({"spec":[{"a":1},{"a":2}]})"},
      {R"({"type":"array","items":{"type":"integer","default":7}})", R"({"spec":[1,null]})", R"({"spec":[1,7]})"},
      {R"({"type":"object","additionalProperties":{"type":"object","default":{"a":2},"properties":{"a":{"type":"integer"}}}})",
       R"({"spec":{"x":null,"y":{}}})", R"({"spec":{"x":{"a":2},"y":{}}})"},
  };
  for (const DefaultRow& row : rows) {
    const Schema schema = good_spec(row.spec);
    Json object = json(row.object);
    apply_defaults(schema, object);
    EXPECT_EQ(api::to_text(object), api::to_text(json(row.filled))) << row.spec << row.object;
    const Json once = object;
    apply_defaults(schema, object);
    EXPECT_EQ(object, once);
  }
}

/// Nested lists of ten empty objects each, every one of them a default.
std::string lists_within_lists(int levels) {
  std::string item = R"({"type":"object"})";
  for (int i = 0; i < levels; ++i) {
    item = fmt::format(R"({{"type":"object","properties":{{"a":{{"type":"array","default":[{}],"items":{}}}}}}})",
                       fmt::join(std::vector<std::string_view>(10, "{}"), ","), item);
  }
  return item;
}

std::string list_of(std::size_t count, std::string_view element) {
  return fmt::format("[{}]", fmt::join(std::vector<std::string_view>(count, element), ","));
}

std::string map_of_nulls(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format(R"({}"{}":null)", i == 0 ? "" : ",", i);
  return "{" + text + "}";
}

struct BoundRow {
  std::string spec;
  std::string value;
  bool fits;
};

std::vector<BoundRow> rows_around_the_bound() {
  const std::string text(1'000, 'x');
  const std::string many_texts = fmt::format(
      R"({{"type":"array","items":{{"type":"object","properties":{{"a":{{"type":"string","default":"{}"}}}}}}}})",
      text);
  const std::string long_name = fmt::format(
      R"({{"type":"array","items":{{"type":"object","properties":{{"{}":{{"type":"integer","default":1}}}}}}}})", text);
  const std::string small =
      R"({"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","default":1}}}})";
  const std::string elements = fmt::format(R"({{"type":"array","items":{{"type":"string","default":"{}"}}}})", text);
  const std::string entries =
      fmt::format(R"({{"type":"object","additionalProperties":{{"type":"string","default":"{}"}}}})", text);
  return {{lists_within_lists(4), "{}", true},          {lists_within_lists(6), "{}", false},
          {many_texts, list_of(3'000, "{}"), true},     {many_texts, list_of(5'000, "{}"), false},
          {long_name, list_of(3'000, "{}"), true},      {long_name, list_of(5'000, "{}"), false},
          {small, list_of(60'000, "{}"), true},         {small, list_of(70'000, "{}"), false},
          {elements, list_of(3'000, "null"), true},     {elements, list_of(5'000, "null"), false},
          {entries, map_of_nulls(3'000), true},         {entries, map_of_nulls(5'000), false},
          {small, list_of(70'000, R"({"a":1})"), true}, {small, list_of(70'000, R"({"a":null})"), false}};
}

const Lines kTooMuch{"<nil>: Too long: defaults may not add more than 4194304 bytes to the object"};

TEST(StructuralShape, WhatDefaultsAddIsBounded) {
  for (const BoundRow& row : rows_around_the_bound()) {
    const std::string text = fmt::format(R"({{"spec":{}}})", row.value);
    SCOPED_TRACE(row.spec.substr(0, 100) + text.substr(0, 40));
    const Schema schema = good_spec(row.spec);
    const Json sent = json(text);
    Json object = sent;
    apply_defaults(schema, object);
    // All defaults or none: in a half-filled object the missing ones could not be recognised.
    EXPECT_EQ(object.shares(sent), !row.fits || object == sent);
    const Json filled = object;
    apply_defaults(schema, object);
    EXPECT_EQ(object, filled);
    if (row.fits) EXPECT_LT(api::to_text(object).size(), text.size() + (4U << 20U));
    const Lines lines = problems(schema, api::to_text(object));
    EXPECT_EQ(std::ranges::find(lines, kTooMuch.front()) != lines.end(), !row.fits);
  }
}

TEST(StructuralShape, WhatDidNotFitBeforeMayStay) {
  const Schema schema = good_spec(lists_within_lists(6));
  const std::string_view before = R"({"metadata":{"finalizers":["a/b"]},"spec":{}})";
  EXPECT_EQ(problems(schema, before), kTooMuch);
  EXPECT_EQ(update_problems(schema, R"({"metadata":{},"spec":{}})", before), Lines());
  EXPECT_EQ(update_problems(schema, before, R"({"spec":{"a":[]}})"), kTooMuch);
}

}  // namespace

}  // namespace spillway::structural
