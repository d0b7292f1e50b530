// An object as expressions see it: types from its schema, and values of those types. Members whose names are not
// expressible, and members without a type, are invisible. Thread: any (pure). Source: Kubernetes docs, "Extend the
// Kubernetes API with CustomResourceDefinitions", validation rules, escaping, type system.
#pragma once

#include "api/json/json.h"
#include "policy/cel/type.h"
#include "policy/cel/value.h"
#include "policy/structural/node.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::structural {

/// "a__dash__b", "__namespace__"; empty: the name cannot be escaped.
std::string escaped_name(std::string_view name);

/// True for a schema whose values differ between expressions and documents: numbers, times, durations, bytes, lists
/// that are sets or maps.
bool is_converted(const Node& node);

/// The value as expressions see it: properties that are null are absent. A view of `value` where nothing below is
/// converted.
cel::Value rule_value(const Node& node, const api::Json& value);

}  // namespace spillway::structural
