// A path to a field of a schema, as rules name where they are broken: ".spec.replicas", "['a.b'].c".
// Thread: any (pure). Source: API reference, ValidationRule, fieldPath.
#pragma once

#include "policy/structural/node.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::structural {

/// The path as errors name it: "spec.replicas", "a.b[c]". nullopt: malformed, or no field of the schema.
std::optional<std::string> field_place(const Node& node, std::string_view path);

/// The schema that `path` (".spec.replicas", members alone) leads to; nullptr: there is none.
const Node* node_at(const Node& node, std::string_view path);

}  // namespace spillway::structural
