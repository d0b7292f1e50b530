#include "policy/structural/structural_schema.h"

#include "policy/structural/default_rules.h"
#include "policy/structural/node.h"
#include "policy/structural/rule_reader.h"
#include "policy/structural/rule_values.h"
#include "policy/structural/schema_members.h"
#include "policy/structural/schema_patterns.h"
#include "policy/structural/schema_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;

std::optional<double> number_member(const Json& schema, std::string_view name) {
  const Json* value = schema.find(name);
  return value == nullptr ? std::nullopt : value->if_double();
}

std::optional<std::int64_t> count_member(const Json& schema, std::string_view name) {
  const Json* value = schema.find(name);
  return value == nullptr ? std::nullopt : value->if_int64();
}

ListType list_type_of(const Json& schema) {
  const std::string_view text = schema.string_at({"x-kubernetes-list-type"});
  if (text == "map") return ListType::kMap;
  if (text == "set") return ListType::kSet;
  return text.empty() ? ListType::kUnset : ListType::kAtomic;
}

/// The format, if it applies to strings or to any type.
Format format_of(const Json& schema, ValueType type) {
  const bool texts =
      type == ValueType::kString || (type == ValueType::kAny && !flag(schema, "x-kubernetes-int-or-string"));
  return texts ? parse_format(schema.string_at({"format"})) : Format::kNone;
}

/// Makes nodes of a document within the bounds.
class NodeReader {
 public:
  explicit NodeReader(SchemaPatterns& patterns) : patterns_(patterns) {}

  /// False: beyond the bounds.
  bool read(const Json& schema, std::size_t depth, Node& node) {
    if (depth > kSchemaDepthMax || ++schemas_ > kSchemasMax) return false;
    node.type = parse_value_type(schema.string_at({"type"})).value_or(ValueType::kAny);
    node.format = format_of(schema, node.type);
    node.list_type = list_type_of(schema);
    node.nullable = flag(schema, "nullable");
    node.int_or_string = flag(schema, "x-kubernetes-int-or-string");
    node.keeps_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
    node.embedded = flag(schema, "x-kubernetes-embedded-resource");
    node.atomic_map = schema.string_at({"x-kubernetes-map-type"}) == "atomic";
    node.list_keys = texts(schema, "x-kubernetes-list-map-keys");
    if (const Json* value = schema.find("default"); value != nullptr && !value->is_null()) {
      node.default_value = *value;
      node.default_bytes = api::to_text(*value).size();
    }
    if (!read_items(schema, depth, node) || !read_members(schema, depth, node) || !read_checks(schema, depth, node)) {
      return false;
    }
    mark_contents(schema, node);
    return true;
  }

 private:
  bool read_child(const Json& schema, std::size_t depth, std::unique_ptr<Node>& child) {
    auto made = std::make_unique<Node>();
    if (!read(schema, depth + 1, *made)) return false;
    child = std::move(made);
    return true;
  }

  bool read_items(const Json& schema, std::size_t depth, Node& node) {
    const Json* items = schema.find("items");
    return items == nullptr || !items->is_object() || read_child(*items, depth, node.items);
  }

  bool read_members(const Json& schema, std::size_t depth, Node& node) {
    if (const Json* entries = schema.find("additionalProperties")) {
      if (entries->is_object()) {
        node.additional = Additional::kSchema;
        if (!read_child(*entries, depth, node.entries)) return false;
      } else if (const std::optional<bool> allowed = entries->if_bool()) {
        node.additional = *allowed ? Additional::kAllowed : Additional::kRefused;
      }
    }
    const Json* properties = schema.find("properties");
    if (properties == nullptr || !properties->is_object()) return true;
    node.properties.reserve(properties->if_object()->size());
    for (const auto& [name, property] : *properties->if_object()) {
      node.properties.push_back({.name = name, .node = {}});
      if (!read(property, depth + 1, node.properties.back().node)) return false;
    }
    return true;
  }

  bool read_alternatives(const Json& schema, std::string_view name, std::size_t depth, std::vector<Node>& nodes) {
    const Json* list = schema.find(name);
    if (list == nullptr || !list->is_array()) return true;
    for (const Json& one : *list->if_array()) {
      if (!read(one, depth + 1, nodes.emplace_back())) return false;
    }
    return true;
  }

  bool read_checks(const Json& schema, std::size_t depth, Node& node) {
    if (!schema.is_object()) return true;
    auto checks = std::make_unique<Checks>();
    bool any = false;
    const auto mark = [&any](const auto& value) { any = any || value.has_value(); };
    mark(checks->maximum = number_member(schema, "maximum"));
    mark(checks->minimum = number_member(schema, "minimum"));
    mark(checks->multiple_of = number_member(schema, "multipleOf"));
    mark(checks->max_length = count_member(schema, "maxLength"));
    mark(checks->min_length = count_member(schema, "minLength"));
    mark(checks->max_items = count_member(schema, "maxItems"));
    mark(checks->min_items = count_member(schema, "minItems"));
    mark(checks->max_properties = count_member(schema, "maxProperties"));
    mark(checks->min_properties = count_member(schema, "minProperties"));
    checks->below_maximum = flag(schema, "exclusiveMaximum");
    checks->above_minimum = flag(schema, "exclusiveMinimum");
    if (const Json* values = schema.find("enum"); values != nullptr && values->is_array())
      checks->values = *values->if_array();
    checks->pattern_text = schema.string_at({"pattern"});
    if (!checks->pattern_text.empty()) {
      if (const auto& pattern = patterns_.compile(checks->pattern_text)) checks->pattern = *pattern;
    }
    checks->required = texts(schema, "required");
    if (!read_alternatives(schema, "allOf", depth, checks->all_of) ||
        !read_alternatives(schema, "anyOf", depth, checks->any_of) ||
        !read_alternatives(schema, "oneOf", depth, checks->one_of)) {
      return false;
    }
    if (const Json* negated = schema.find("not"); negated != nullptr && negated->is_object()) {
      if (!read_child(*negated, depth, checks->negated)) return false;
    }
    any = any || !checks->values.empty() || !checks->pattern_text.empty() || !checks->required.empty() ||
          !checks->all_of.empty() || !checks->any_of.empty() || !checks->one_of.empty() || checks->negated != nullptr;
    if (any) node.checks = std::move(checks);
    return true;
  }

  static void mark_contents(const Json& schema, Node& node) {
    const Json* rules = schema.find("x-kubernetes-validations");
    node.has_rules = rules != nullptr && rules->is_array() && !rules->if_array()->empty();
    node.has_lists = node.list_type == ListType::kSet || node.list_type == ListType::kMap;
    node.has_embedded = node.embedded;
    node.has_defaults = !node.default_value.is_null();
    node.has_converted = is_converted(node);
    const auto mark = [&node](const Node& child) {
      node.has_rules = node.has_rules || child.has_rules;
      node.has_defaults = node.has_defaults || child.has_defaults;
      node.has_lists = node.has_lists || child.has_lists;
      node.has_embedded = node.has_embedded || child.has_embedded;
      node.has_converted = node.has_converted || child.has_converted;
    };
    if (node.items != nullptr) mark(*node.items);
    if (node.entries != nullptr) mark(*node.entries);
    for (std::size_t i = 0; i < node.properties.size(); ++i) {
      const Property& property = node.properties[i];
      mark(property.node);
      if (!property.node.default_value.is_null()) node.filled.push_back(i);
      node.has_converted = node.has_converted || property.node.nullable || escaped_name(property.name) != property.name;
    }
  }

  SchemaPatterns& patterns_;
  std::size_t schemas_ = 0;
};

const std::shared_ptr<const Node>& open_node() {
  static const auto kOpen = [] {
    auto node = std::make_shared<Node>();
    node->type = ValueType::kObject;
    node->keeps_unknown = true;
    return std::shared_ptr<const Node>(std::move(node));
  }();
  return kOpen;
}

}  // namespace

Schema::Schema() : root_(open_node()) {}

Schema Schema::read(const Json& document, std::string_view path, api::FieldErrors& errors) {
  auto root = std::make_shared<Node>();
  SchemaPatterns patterns;
  if (!NodeReader(patterns).read(document, 1, *root)) {
    errors.invalid(
        path, Json(""),
        fmt::format("must hold at most {} schemas, at most {} within one another", kSchemasMax, kSchemaDepthMax));
    return {};
  }
  api::FieldErrors found;
  check_schema(document, path, patterns, found);
  if (found.empty()) read_rules(document, path, cel::Age::kNew, *root, found);
  if (found.empty()) check_defaults(*root, path, found);
  errors.add(std::move(found));
  return {document, std::move(root)};
}

std::optional<Schema> Schema::reread(const Json& document) {
  auto root = std::make_shared<Node>();
  SchemaPatterns patterns;
  if (!document.is_object() || !NodeReader(patterns).read(document, 1, *root)) return std::nullopt;
  api::FieldErrors ignored_errors;  // rules that do not compile report it when evaluated
  read_rules(document, "", cel::Age::kStored, *root, ignored_errors);
  return Schema{document, std::move(root)};
}

}  // namespace spillway::structural
