#include "policy/structural/schema_rules.h"

#include "policy/structural/schema_members.h"
#include "policy/structural/schema_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 6> kTypes{"array", "boolean", "integer", "number", "object", "string"};
constexpr std::array<std::string_view, 3> kListTypes{"atomic", "set", "map"};
constexpr std::array<std::string_view, 2> kMapTypes{"atomic", "granular"};
constexpr std::array<std::string_view, 3> kAlternatives{"allOf", "anyOf", "oneOf"};
constexpr std::string_view kEmbedded = "x-kubernetes-embedded-resource";
constexpr std::string_view kIntOrString = "x-kubernetes-int-or-string";
constexpr std::string_view kKeepsUnknown = "x-kubernetes-preserve-unknown-fields";
constexpr std::string_view kListType = "x-kubernetes-list-type";
constexpr std::string_view kListMapKeys = "x-kubernetes-list-map-keys";
constexpr std::string_view kMapType = "x-kubernetes-map-type";
constexpr std::string_view kValidations = "x-kubernetes-validations";

enum class Place : std::uint8_t { kRoot, kItem, kField };

std::string child(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string property_path(const std::string& path, std::string_view name) {
  return api::key_path(child(path, "properties"), name);
}

const Json::Array& list_member(const Json& schema, std::string_view name) {
  static const Json::Array kNone;
  const Json* list = schema.find(name);
  return list != nullptr && list->is_array() ? *list->if_array() : kNone;
}

const Json::Object& object_member(const Json& schema, std::string_view name) {
  static const Json::Object kNone;
  const Json* object = schema.find(name);
  return object != nullptr && object->is_object() ? *object->if_object() : kNone;
}

/// The schema under that name; nullptr: there is none.
const Json* schema_member(const Json& schema, std::string_view name) {
  const Json* value = schema.find(name);
  return value != nullptr && value->is_object() ? value : nullptr;
}

std::string_view type_of(const Json& schema) {
  return schema.string_at({"type"});
}

/// [{type: integer}, {type: string}] and nothing else.
bool is_int_or_string(const Json::Array& alternatives) {
  static const Json::Array kBoth{Json::object({{"type", "integer"}}), Json::object({{"type", "string"}})};
  return alternatives == kBoth;
}

/// Finds violations of the rules for structural schemas.
class StructuralRules {
 public:
  StructuralRules(SchemaPatterns& patterns, FieldErrors& errors) : patterns_(patterns), errors_(errors) {}

  void check(const Json& schema, Place place, const std::string& path) {
    if (errors_.full()) return;
    const std::string_view type = type_of(schema);
    if (type == "array" && !has_member(schema, "items")) errors_.required(child(path, "items"), "must be specified");
    if (const Json* items = schema_member(schema, "items")) check(*items, Place::kItem, child(path, "items"));
    for (const auto& [name, property] : object_member(schema, "properties")) {
      check(property, Place::kField, property_path(path, name));
    }
    check_entries(schema, place, path);
    check_extensions(schema, path);
    const bool skip_any = is_int_or_string(list_member(schema, "anyOf"));
    const Json::Array& all = list_member(schema, "allOf");
    const bool skip_first = !all.empty() && is_int_or_string(list_member(all[0], "anyOf"));
    check_values(schema, skip_any, skip_first, path);
    check_type(schema, place, path);
    check_type_meta(schema, place, path);
    check_complete(schema, schema, path, path, /*nested=*/false);
  }

 private:
  void check_entries(const Json& schema, Place place, const std::string& path) {
    if (!has_member(schema, "additionalProperties")) return;
    const std::string entries = child(path, "additionalProperties");
    if (place == Place::kRoot) errors_.forbidden(entries, "must not be used at the root");
    if (flag(schema, kEmbedded)) {
      errors_.forbidden(entries, "must not be used if x-kubernetes-embedded-resource is set");
    }
    if (const Json* entry = schema_member(schema, "additionalProperties")) check(*entry, Place::kField, entries);
  }

  void check_extensions(const Json& schema, const std::string& path) {
    if (!flag(schema, kIntOrString)) return;
    constexpr std::string_view kWhy = "must be false if x-kubernetes-int-or-string is true";
    if (flag(schema, kKeepsUnknown)) errors_.invalid(child(path, kKeepsUnknown), Json(true), kWhy);
    if (flag(schema, kEmbedded)) errors_.invalid(child(path, kEmbedded), Json(true), kWhy);
  }

  void check_type(const Json& schema, Place place, const std::string& path) {
    const std::string_view type = type_of(schema);
    const std::string at = child(path, "type");
    if (flag(schema, kEmbedded) && type != "object") {
      constexpr std::string_view kWhy = "must be object if x-kubernetes-embedded-resource is true";
      if (type.empty()) {
        errors_.required(at, kWhy);
      } else {
        errors_.invalid(at, Json(type), kWhy);
      }
    } else if (type.empty() && !flag(schema, kIntOrString) && !flag(schema, kKeepsUnknown)) {
      constexpr std::array<std::string_view, 3> kWhy{"must not be empty at the root",
                                                     "must not be empty for specified array items",
                                                     "must not be empty for specified object fields"};
      errors_.required(at, kWhy[static_cast<std::size_t>(place)]);
    }
    if (place == Place::kRoot && !type.empty() && type != "object") {
      errors_.invalid(at, Json(type), "must be object at the root");
    }
    if (flag(schema, kEmbedded) && !flag(schema, kKeepsUnknown) && object_member(schema, "properties").empty()) {
      errors_.required(child(path, "properties"),
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
    }
  }

  void check_type_meta(const Json& schema, Place place, const std::string& path) {
    const bool resource = place == Place::kRoot || flag(schema, kEmbedded);
    const Json::Object& properties = object_member(schema, "properties");
    for (const std::string_view name : {"kind", "apiVersion"}) {
      const Json* property = properties.find(name);
      if (!resource || property == nullptr || type_of(*property) == "string") continue;
      errors_.invalid(child(property_path(path, name), "type"), Json(type_of(*property)), "must be string");
    }
    const Json* metadata = properties.find("metadata");
    if (metadata == nullptr) return;
    const std::string at = property_path(path, "metadata");
    if (resource && type_of(*metadata) != "object") {
      errors_.invalid(child(at, "type"), Json(type_of(*metadata)), "must be object");
    }
    if (place == Place::kRoot && !is_plain_metadata(*metadata)) {
      errors_.forbidden(at,
                        "must not specify anything other than name and generateName, but metadata is implicitly "
                        "specified");
    }
  }

  /// True if metadata only restricts name and generateName.
  static bool is_plain_metadata(const Json& metadata) {
    if (!metadata.is_object()) return true;
    const Json::Object& properties = object_member(metadata, "properties");
    for (const auto& [name, unused] : properties) {
      if (name != "name" && name != "generateName") return false;
    }
    return std::ranges::all_of(*metadata.if_object(), [](const auto& member) {
      return member.key == "type" || member.key == "properties" || member.key == "default" || member.value.is_null();
    });
  }

  void check_values(const Json& schema, bool skip_any, bool skip_first, const std::string& path) {
    for (const std::string_view name : kAlternatives) {
      if (name == "anyOf" && skip_any) continue;
      const Json::Array& list = list_member(schema, name);
      for (std::size_t i = 0; i < list.size() && !errors_.full(); ++i) {
        check_nested(list[i], name == "allOf" && skip_first && i == 0, api::index_path(child(path, name), i));
      }
    }
    if (const Json* negated = schema_member(schema, "not")) check_nested(*negated, false, child(path, "not"));
    const std::string_view pattern = schema.string_at({"pattern"});
    if (pattern.empty()) return;
    if (const auto& compiled = patterns_.compile(pattern); !compiled) {
      errors_.invalid(child(path, "pattern"), Json(pattern),
                      "must be a valid regular expression, but isn't: " + compiled.error().text());
    }
  }

  /// Within a combination: nothing but checks of values.
  void check_nested(const Json& schema, bool skip_any, const std::string& path) {
    if (errors_.full()) return;
    check_values(schema, skip_any, false, path);
    if (const Json* items = schema_member(schema, "items")) check_nested(*items, false, child(path, "items"));
    for (const auto& [name, property] : object_member(schema, "properties")) {
      check_nested(property, false, property_path(path, name));
    }
    const auto forbid = [&](bool there, std::string_view name, std::string_view why) {
      if (there) errors_.forbidden(child(path, name), why);
    };
    forbid(!type_of(schema).empty(), "type", "must be empty to be structural");
    forbid(has_member(schema, "additionalProperties"), "additionalProperties", "must be undefined to be structural");
    forbid(has_member(schema, "default"), "default", "must be undefined to be structural");
    forbid(!schema.string_at({"title"}).empty(), "title", "must be empty to be structural");
    forbid(!schema.string_at({"description"}).empty(), "description", "must be empty to be structural");
    forbid(flag(schema, "nullable"), "nullable", "must be false to be structural");
    forbid(has_member(schema, "externalDocs"), "externalDocs", "must be undefined to be structural");
    forbid(flag(schema, kKeepsUnknown), kKeepsUnknown, "must be false to be structural");
    forbid(flag(schema, kEmbedded), kEmbedded, "must be false to be structural");
    forbid(flag(schema, kIntOrString), kIntOrString, "must be false to be structural");
    forbid(!list_member(schema, kListMapKeys).empty(), kListMapKeys, "must be empty to be structural");
    forbid(has_member(schema, kListType), kListType, "must be undefined to be structural");
    forbid(has_member(schema, kMapType), kMapType, "must be undefined to be structural");
    forbid(!list_member(schema, kValidations).empty(), kValidations, "must be empty to be structural");
    if (object_member(schema, "properties").contains("metadata")) {
      errors_.forbidden(property_path(path, "metadata"), "must not be specified in a nested context");
    }
  }

  /// Every property in a combination (anyOf, …) must also be declared outside of it. `at`: the path of `schema`,
  /// `path`: that of the combination.
  void check_complete(const Json& schema, const Json& checks, const std::string& at, const std::string& path,
                      bool nested) {
    if (errors_.full()) return;
    for (const std::string_view name : kAlternatives) {
      const Json::Array& list = list_member(checks, name);
      for (std::size_t i = 0; i < list.size(); ++i) {
        check_complete(schema, list[i], at, api::index_path(child(path, name), i), true);
      }
    }
    if (const Json* negated = schema_member(checks, "not")) {
      check_complete(schema, *negated, at, child(path, "not"), true);
    }
    if (!nested) return;
    if (const Json* items = schema_member(checks, "items")) {
      require_complete(schema_member(schema, "items"), *items, child(at, "items"), child(path, "items"));
    }
    for (const auto& [name, property] : object_member(checks, "properties")) {
      require_complete(object_member(schema, "properties").find(name), property, property_path(at, name),
                       property_path(path, name));
    }
  }

  void require_complete(const Json* schema, const Json& checks, const std::string& at, const std::string& path) {
    if (schema == nullptr) return errors_.required(at, fmt::format("because it is defined in {}", path));
    check_complete(*schema, checks, at, path, true);
  }

  SchemaPatterns& patterns_;
  FieldErrors& errors_;
};

/// Rules for every schema in a document.
class DocumentRules {
 public:
  explicit DocumentRules(FieldErrors& errors) : errors_(errors) {}

  struct Around {
    bool root = false;
    bool within_meta = false;           // inside a resource: kind, apiVersion, metadata
    std::string_view no_defaults = {};  // why defaults are not allowed
  };

  void check(const Json& schema, const std::string& path, const Around& around) {
    if (errors_.full()) return;
    if (!schema.is_object()) {
      return errors_.type_invalid(path, schema, fmt::format("must be an object, not {}", api::type_phrase(schema)));
    }
    check_kinds(schema, path);
    check_unsupported(schema, path, around);
    if (flag(schema, "uniqueItems")) {
      errors_.forbidden(child(path, "uniqueItems"),
                        "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    }
    check_entries(schema, path, around);
    check_properties(schema, path, around);
    if (const Json* negated = schema_member(schema, "not")) check(*negated, child(path, "not"), inner(around));
    for (const std::string_view name : kAlternatives) {
      const Json::Array& list = list_member(schema, name);
      for (std::size_t i = 0; i < list.size(); ++i) {
        check(list[i], api::index_path(child(path, name), i), inner(around));
      }
    }
    if (const Json* items = schema_member(schema, "items")) check(*items, child(path, "items"), inner(around));
    check_extensions(schema, path);
  }

 private:
  static Around inner(const Around& around) {
    return {.within_meta = around.within_meta, .no_defaults = around.no_defaults};
  }

  /// Members of the wrong type, which upstream does not decode.
  void check_kinds(const Json& schema, const std::string& path) {
    using Kind = bool (Json::*)() const;

    struct Row {
      Kind is;
      std::string_view what;
      std::initializer_list<std::string_view> names;
    };

    static const std::array<Row, 6> kRows{{
        {&Json::is_string,
         "a string",
         {"type", "format", "title", "description", "pattern", "id", "$schema", "$ref", kListType, kMapType}},
        {&Json::is_bool,
         "a boolean",
         {"nullable", "uniqueItems", "exclusiveMaximum", "exclusiveMinimum", kEmbedded, kIntOrString, kKeepsUnknown}},
        {&Json::is_integer,
         "an integer",
         {"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"}},
        {&Json::is_number, "a number", {"maximum", "minimum", "multipleOf"}},
        {&Json::is_array, "a list", {"enum", "required", "allOf", "anyOf", "oneOf", kListMapKeys, kValidations}},
        {&Json::is_object, "an object", {"properties", "not", "externalDocs"}},
    }};
    for (const Row& row : kRows) {
      for (const std::string_view name : row.names) {
        const Json* value = schema.find(name);
        if (value == nullptr || value->is_null() || (value->*row.is)()) continue;
        errors_.type_invalid(child(path, name), *value, fmt::format("must be {}", row.what));
      }
    }
  }

  void check_unsupported(const Json& schema, const std::string& path, const Around& around) {
    const std::string_view type = type_of(schema);
    if (!type.empty() && std::ranges::find(kTypes, type) == kTypes.end()) {
      errors_.not_supported(child(path, "type"), Json(type), kTypes);
    }
    if (has_member(schema, "default") && !around.no_defaults.empty()) {
      errors_.forbidden(child(path, "default"), fmt::format("must not be set {}", around.no_defaults));
    }
    const auto refuse = [&](bool there, std::string_view name, std::string_view why) {
      if (there) errors_.forbidden(child(path, name), why);
    };
    refuse(!schema.string_at({"id"}).empty(), "id", "id is not supported");
    refuse(has_member(schema, "additionalItems"), "additionalItems", "additionalItems is not supported");
    refuse(!object_member(schema, "patternProperties").empty(), "patternProperties",
           "patternProperties is not supported");
    refuse(!object_member(schema, "definitions").empty(), "definitions", "definitions is not supported");
    refuse(has_member(schema, "dependencies"), "dependencies", "dependencies is not supported");
    refuse(has_member(schema, "$ref"), "$ref", "$ref is not supported");
    refuse(type == "null", "type", "type cannot be set to null, use nullable as an alternative");
    refuse(!list_member(schema, "items").empty(), "items", "items must be a schema object and not an array");
    refuse(around.within_meta && flag(schema, kEmbedded), kEmbedded, "must not be used inside of resource meta");
  }

  void check_entries(const Json& schema, const std::string& path, const Around& around) {
    const Json* entries = schema.find("additionalProperties");
    if (entries == nullptr || entries->is_null()) return;
    const std::string at = child(path, "additionalProperties");
    if (!object_member(schema, "properties").empty() && entries->if_bool() != true) {
      errors_.forbidden(at, "additionalProperties and properties are mutual exclusive");
    }
    if (entries->is_bool()) return;
    Around within = inner(around);
    if (around.within_meta) within.no_defaults = "inside additionalProperties applying to object metadata";
    check(*entries, at, within);
  }

  void check_properties(const Json& schema, const std::string& path, const Around& around) {
    for (const auto& [name, property] : object_member(schema, "properties")) {
      Around within = inner(around);
      const bool meta = name == "metadata" || name == "kind" || name == "apiVersion";
      if (meta && (around.root || flag(schema, kEmbedded))) {
        within.within_meta = true;
        if (around.root) {
          within.no_defaults = name == "metadata" ? "in top-level metadata"
                               : name == "kind"   ? "in top-level kind"
                                                  : "in top-level apiVersion";
        }
      }
      check(property, property_path(path, name), within);
    }
  }

  /// Required or invalid, as the type is absent or another.
  void require_type(const Json& schema, const std::string& path, std::string_view wanted, std::string_view why) {
    const std::string_view type = type_of(schema);
    if (type.empty()) {
      errors_.required(child(path, "type"), why);
    } else if (type != wanted) {
      errors_.invalid(child(path, "type"), Json(type), why);
    }
  }

  void check_extensions(const Json& schema, const std::string& path) {
    if (const Json* keeps = schema.find(kKeepsUnknown); keeps != nullptr && keeps->if_bool() == false) {
      errors_.invalid(child(path, kKeepsUnknown), Json(false), "must be true or undefined");
    }
    if (has_member(schema, kMapType)) {
      require_type(schema, path, "object", "must be object if x-kubernetes-map-type is specified");
      const std::string_view type = schema.string_at({kMapType});
      if (std::ranges::find(kMapTypes, type) == kMapTypes.end()) {
        errors_.not_supported(child(path, kMapType), Json(type), kMapTypes);
      }
    }
    const bool listed = has_member(schema, kListType);
    const std::string_view list_type = schema.string_at({kListType});
    if (listed) {
      require_type(schema, path, "array", "must be array if x-kubernetes-list-type is specified");
      if (type_of(schema) == "array" && list_type == "set") check_set_items(schema, path);
      if (std::ranges::find(kListTypes, list_type) == kListTypes.end()) {
        errors_.not_supported(child(path, kListType), Json(list_type), kListTypes);
      }
    }
    if (!list_member(schema, kListMapKeys).empty()) {
      constexpr std::string_view kWhy = "must be map if x-kubernetes-list-map-keys is non-empty";
      if (!listed) {
        errors_.required(child(path, kListType), kWhy);
      } else if (list_type != "map") {
        errors_.invalid(child(path, kListType), Json(list_type), kWhy);
      }
    }
    if (list_type == "map") check_map_items(schema, path);
    check_nullable_items(schema, path, list_type);
  }

  void check_set_items(const Json& schema, const std::string& path) {
    constexpr std::string_view kWhy = "must be atomic as item of a list with x-kubernetes-list-type=set";
    const Json* items = schema_member(schema, "items");
    if (items == nullptr) return;
    const auto of_items = [&](std::string_view name) {
      const Json* value = items->find(name);
      return value == nullptr ? Json() : *value;
    };
    const std::string_view list_type = items->string_at({kListType});
    if (type_of(*items) == "array" && !list_type.empty() && list_type != "atomic") {
      errors_.invalid(child(child(path, "items"), kListType), of_items(kListType), kWhy);
    }
    if (type_of(*items) == "object" && items->string_at({kMapType}) != "atomic") {
      errors_.invalid(child(child(path, "items"), kMapType), of_items(kMapType), kWhy);
    }
  }

  void check_map_items(const Json& schema, const std::string& path) {
    const Json::Array& keys = list_member(schema, kListMapKeys);
    if (keys.empty()) {
      errors_.required(child(path, kListMapKeys), "must not be empty if x-kubernetes-list-type is map");
    }
    const Json* items = schema_member(schema, "items");
    if (items == nullptr) {
      return errors_.required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map");
    }
    if (type_of(*items) != "object") {
      return errors_.invalid(child(child(path, "items"), "type"), Json(type_of(*items)),
                             "must be object if parent array's x-kubernetes-list-type is map");
    }
    std::set<std::string_view> seen;
    for (const Json& key : keys) {
      const std::string_view name = key.is_string() ? std::string_view(*key.if_string()) : std::string_view();
      const Json* property = object_member(*items, "properties").find(name);
      if (property == nullptr) {
        errors_.invalid(child(path, kListMapKeys), Json(keys), "entries must all be names of item properties");
      } else if (type_of(*property) == "array" || type_of(*property) == "object") {
        errors_.invalid(child(property_path(child(path, "items"), name), "type"), Json(type_of(*items)),
                        "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      if (!seen.insert(name).second) {
        errors_.invalid(child(path, kListMapKeys), Json(keys), "must not contain duplicate entries");
      }
    }
  }

  void check_nullable_items(const Json& schema, const std::string& path, std::string_view list_type) {
    const Json* items = schema_member(schema, "items");
    if (items == nullptr || (list_type != "set" && list_type != "map")) return;
    const std::string at = child(path, "items");
    if (flag(*items, "nullable")) {
      errors_.forbidden(child(at, "nullable"), fmt::format("cannot be nullable when {} is {}", kListType, list_type));
    }
    if (list_type != "map") return;
    const std::vector<std::string> required = texts(*items, "required");
    for (const std::string& key : texts(schema, kListMapKeys)) {
      const Json* property = object_member(*items, "properties").find(key);
      if (property == nullptr) continue;
      if (std::ranges::find(required, key) == required.end() && !has_member(*property, "default")) {
        errors_.required(child(property_path(at, key), "default"),
                         "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
                         "property");
      }
      if (flag(*property, "nullable")) {
        errors_.forbidden(child(property_path(at, key), "nullable"),
                          "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
      }
    }
  }

  FieldErrors& errors_;
};

/// True for a construct that a structural schema cannot contain at all: the other rules report it.
bool is_beyond_structure(const Json& schema) {
  for (const std::string_view name : {"additionalItems", "dependencies", "$ref"}) {
    if (has_member(schema, name)) return true;
  }
  if (!object_member(schema, "patternProperties").empty() || !object_member(schema, "definitions").empty() ||
      !schema.string_at({"id"}).empty() || !list_member(schema, "items").empty()) {
    return true;
  }
  for (const std::string_view name : {"items", "additionalProperties", "not"}) {
    const Json* inner = schema_member(schema, name);
    if (inner != nullptr && is_beyond_structure(*inner)) return true;
  }
  for (const std::string_view name : kAlternatives) {
    if (std::ranges::any_of(list_member(schema, name), is_beyond_structure)) return true;
  }
  return std::ranges::any_of(object_member(schema, "properties"),
                             [](const auto& member) { return is_beyond_structure(member.value); });
}

}  // namespace

void check_schema(const Json& document, std::string_view path, SchemaPatterns& patterns, FieldErrors& errors) {
  FieldErrors found;
  if (!is_beyond_structure(document)) StructuralRules(patterns, found).check(document, Place::kRoot, std::string(path));
  std::vector<api::FieldError> sorted = found.errors();
  std::ranges::sort(sorted, {}, &api::FieldError::text);
  for (api::FieldError& error : sorted) errors.add(std::move(error));
  DocumentRules(errors).check(document, std::string(path), {.root = true});
}

}  // namespace spillway::structural
