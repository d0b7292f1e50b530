// One schema of a structural schema as the checks use it: read once, then walked beside each object. Immutable after it
// was made. Thread: any. Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions",
// structural schemas; OpenAPI 3.0, schema object.
#pragma once

#include "api/json/json.h"
#include "policy/cel/pattern.h"
#include "policy/structural/formats.h"
#include "policy/structural/rule.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

enum class ValueType : std::uint8_t { kAny, kArray, kBoolean, kInteger, kNumber, kObject, kString };

/// kUnset is kAtomic, but that elements of an old list are found by their index.
enum class ListType : std::uint8_t { kUnset, kAtomic, kSet, kMap };

/// The form of additionalProperties.
enum class Additional : std::uint8_t { kUnset, kRefused, kAllowed, kSchema };

struct Node;

/// Checks of a value beyond its type. Absent ones do not apply.
struct Checks {
  std::vector<api::Json> values;  // enum
  std::optional<double> maximum;
  std::optional<double> minimum;
  bool above_minimum = false;  // exclusiveMinimum
  bool below_maximum = false;  // exclusiveMaximum
  std::optional<double> multiple_of;
  std::optional<std::int64_t> max_length;  // characters
  std::optional<std::int64_t> min_length;
  std::optional<std::int64_t> max_items;
  std::optional<std::int64_t> min_items;
  std::optional<std::int64_t> max_properties;
  std::optional<std::int64_t> min_properties;
  std::string pattern_text;
  std::optional<cel::Pattern> pattern;  // nullopt although there is a text: it does not compile
  std::vector<std::string> required;
  std::vector<Node> all_of;
  std::vector<Node> any_of;
  std::vector<Node> one_of;
  std::unique_ptr<Node> negated;  // not
};

struct Property;

struct Node {
  ValueType type = ValueType::kAny;
  Format format = Format::kNone;
  ListType list_type = ListType::kUnset;
  Additional additional = Additional::kUnset;
  bool nullable = false;
  bool int_or_string = false;
  bool keeps_unknown = false;  // x-kubernetes-preserve-unknown-fields
  bool embedded = false;       // x-kubernetes-embedded-resource
  bool atomic_map = false;     // x-kubernetes-map-type
  // True if this node or one below it has the property.
  bool has_lists = false;      // type set or map
  bool has_embedded = false;   // embedded resources
  bool has_rules = false;      // x-kubernetes-validations
  bool has_defaults = false;   // default
  bool has_converted = false;  // values that rules see in another form: numbers, times, sets, escaped names
  std::vector<std::string> list_keys;
  api::Json default_value;        // null: none
  std::size_t default_bytes = 0;  // length of the default's text
  std::unique_ptr<Node> items;
  std::unique_ptr<Node> entries;     // for kSchema
  std::vector<Property> properties;  // sorted by name
  std::vector<std::size_t> filled;   // the places of those that have a default
  std::unique_ptr<const Checks> checks;
  std::vector<Rule> rules;

  const Node* property(std::string_view name) const;
  /// The schema of a member: its own, or additionalProperties; nullptr: there is none.
  const Node* member(std::string_view name) const;
};

struct Property {
  std::string name;
  Node node;
};

/// "object"; empty for kAny.
std::string_view to_string(ValueType type);
std::optional<ValueType> parse_value_type(std::string_view text);

}  // namespace spillway::structural
