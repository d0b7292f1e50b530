// Random schemas and objects: what holds of all of them. Each schema is made of random members, so that many are
// refused; nothing is ever too odd to be read. Objects of those that are accepted stay as they are once they have been
// pruned and filled in.
#include "base/rng.h"
#include "policy/structural/object_rules.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/open_api.h"
#include "policy/structural/schemas.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace spillway::structural {

namespace {

using api::Json;

constexpr std::array<std::string_view, 4> kNames{"a", "b", "kind", "metadata"};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : rng_(seed) {}

  bool chance(std::uint64_t one_in) { return rng_.below(one_in) == 0; }

  std::string_view name() { return kNames[rng_.below(kNames.size())]; }

  Json value(int depth) {
    switch (rng_.below(depth > 0 ? 7 : 5)) {
      case 0:
        return Json();
      case 1:
        return Json(chance(2));
      case 2:
        return Json(static_cast<std::int64_t>(rng_.below(5)));
      case 3:
        return Json(0.5);
      case 4:
        return Json(std::string(name()));
      case 5: {
        Json list = Json::array();
        for (std::uint64_t i = rng_.below(4); i > 0; --i) list.if_array()->push_back(value(depth - 1));
        return list;
      }
      default:
        return object(depth);
    }
  }

  Json object(int depth) {
    Json made = Json::object();
    for (std::uint64_t i = rng_.below(4); i > 0; --i) made[name()] = value(depth - 1);
    return made;
  }

  /// Draws a schema; most have a type and members that fit it.
  Json schema(int depth) {
    Json made = Json::object();
    constexpr std::array<std::string_view, 6> kTypes{"object", "array", "string", "integer", "number", "boolean"};
    const std::string_view type = kTypes[rng_.below(depth > 0 ? 6 : 4) + (depth > 0 ? 0 : 2)];
    if (!chance(20)) made["type"] = Json(std::string(type));
    if (type == "array") made["items"] = schema(depth - 1);
    if (type == "object" && chance(4)) {
      made["additionalProperties"] = schema(depth - 1);
    } else if (type == "object") {
      for (std::uint64_t i = rng_.below(4); i > 0; --i) made.make({"properties", name()}) = schema(depth - 1);
      if (chance(5)) made["x-kubernetes-preserve-unknown-fields"] = Json(true);
      if (chance(8)) made["x-kubernetes-embedded-resource"] = Json(true);
      if (chance(3)) made["required"] = Json::array({Json(std::string(name()))});
    }
    if (chance(4)) made["nullable"] = Json(true);
    if (chance(3)) made["default"] = default_of(type, depth);
    if (chance(10)) made["maximum"] = Json(2);
    if (chance(10)) made["enum"] = Json::array({value(1), value(1)});
    if (chance(10)) made["x-kubernetes-list-type"] = Json(chance(2) ? "set" : "map");
    if (chance(10)) made["anyOf"] = Json::array({Json::object({{"minimum", 1}}), Json::object({{"maxLength", 2}})});
    if (chance(10)) made["x-kubernetes-validations"] = Json::array({Json::object({{"rule", "self == self"}})});
    if (chance(15)) made[chance(2) ? "x-kubernetes-int-or-string" : "pattern"] = value(1);
    return made;
  }

 private:
  Json default_of(std::string_view type, int depth) {
    if (chance(6)) return value(depth);
    if (type == "object") return Json::object();
    if (type == "array") return Json::array();
    if (type == "string") return Json("a");
    if (type == "boolean") return Json(true);
    return Json(1);
  }

  Rng rng_;
};

Json root_schema(Generator& generator) {
  Json schema = generator.schema(4);
  schema["type"] = Json("object");
  for (const std::string_view name : {"additionalProperties", "nullable", "default", "maximum", "enum", "anyOf"}) {
    schema.if_object()->erase(name);
  }
  if (Json* properties = schema.find("properties")) {
    properties->if_object()->erase("kind");
    properties->if_object()->erase("metadata");
  }
  return schema;
}

TEST(StructuralRandom, WhatHoldsOfAll) {
  int accepted = 0;
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 6'000; ++seed) {
    Generator generator(seed);
    const Json document = root_schema(generator);
    api::FieldErrors errors;
    const Schema schema = Schema::read(document, "s", errors);
    const Schema again = Schema::reread(document).value();
    if (errors.empty()) ++accepted;
    for (int i = 0; i < 3; ++i) {
      SCOPED_TRACE(seed);
      const Json sent = generator.object(4);
      Json object = sent;
      prune(again, object);
      const Json pruned = object;
      EXPECT_TRUE(prune(again, object).empty());
      EXPECT_EQ(object, pruned);
      apply_defaults(again, object);
      const Json filled = object;
      if (!(filled == sent)) ++changed;
      apply_defaults(again, object);
      EXPECT_EQ(object, filled) << api::to_text(document) << api::to_text(sent);
      api::FieldErrors found;
      validate_object(again, object, nullptr, found);
      api::FieldErrors same;
      validate_object(again, object, &filled, same);
      for (const api::FieldError& error : same.errors()) EXPECT_NE(error.reason, api::FieldReason::kTypeInvalid);
      if (!errors.empty()) continue;
      EXPECT_TRUE(prune(schema, object).empty()) << "defaults are pruned: " << api::to_text(document);
      open_api_v3(schema);
      open_api_v2(schema);
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(changed, 3'000);
}

/// Members of any type where others are expected.
TEST(StructuralRandom, NothingIsTooOddToBeRead) {
  constexpr std::array<std::string_view, 24> kMembers{"type",
                                                      "properties",
                                                      "items",
                                                      "additionalProperties",
                                                      "required",
                                                      "enum",
                                                      "anyOf",
                                                      "allOf",
                                                      "not",
                                                      "default",
                                                      "pattern",
                                                      "format",
                                                      "maximum",
                                                      "maxLength",
                                                      "nullable",
                                                      "multipleOf",
                                                      "x-kubernetes-validations",
                                                      "x-kubernetes-list-type",
                                                      "x-kubernetes-list-map-keys",
                                                      "x-kubernetes-int-or-string",
                                                      "x-kubernetes-embedded-resource",
                                                      "x-kubernetes-preserve-unknown-fields",
                                                      "$ref",
                                                      "id"};
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    Generator generator(seed);
    Rng rng(seed);
    Json schema = generator.schema(3);
    for (int i = 0; i < 4; ++i) schema[kMembers[rng.below(kMembers.size())]] = generator.value(3);
    api::FieldErrors errors;
    Schema::read(schema, "s", errors);
    const Schema read = Schema::reread(schema).value();
    Json object = generator.object(4);
    prune(read, object);
    apply_defaults(read, object);
    validate_object(read, object, &object, errors);
    open_api_v3(read);
    open_api_v2(read);
  }
}

}  // namespace

}  // namespace spillway::structural
