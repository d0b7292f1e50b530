// What is kept of objects and what is filled in.
#include "policy/structural/object_shape.h"
#include "policy/structural/schemas.h"

#include <gtest/gtest.h>

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
       R"({"e":{"kind":"A","metadata":{"n":1},"spec":{"a":1},"x":1}})",
       R"({"e":{"kind":"A","metadata":{"n":1},"spec":{}}})",
       {"e.spec.a", "e.x"}},
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

}  // namespace

}  // namespace spillway::structural
