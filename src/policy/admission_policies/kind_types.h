// The types that expressions of admission policies have for the objects of a kind, where the kind is known before a
// request is: for type checking. Thread: any (pure). Source: Kubernetes docs, "Validating Admission Policy", type
// checking; Kubernetes API reference (OpenAPI).
#pragma once

#include "api/schema/schema.h"
#include "policy/cel/type.h"
#include "policy/structural/structural_schema.h"

#include <optional>
#include <string>

namespace spillway::admission_policies {

/// The type of the objects of a built-in kind; `name` is what texts of errors call it. A member that OpenAPI gives no
/// type, a quantity or a map of quantities, is missing: upstream warns of it as of an undefined field. Values that may
/// be anything, and messages inside themselves, are dyn.
cel::Type object_type(const api::Type& kind, const std::string& name);

/// The type of a custom kind's objects, by its schema. nullopt: the schema has no type.
std::optional<cel::Type> object_type(const structural::Schema& schema, const std::string& name);

}  // namespace spillway::admission_policies
