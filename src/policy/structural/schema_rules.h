// Validation of schemas: they have to be structural (every value has its type in place; anyOf, oneOf, allOf and not
// contain nothing but checks of values) and must not contradict themselves. Thread: any (pure). Source: Kubernetes
// docs, "Extend the Kubernetes API with CustomResourceDefinitions", specifying a structural schema; API reference,
// JSONSchemaProps.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <string_view>

namespace spillway::structural {

class SchemaPatterns;

/// Adds what is wrong with the document at `path`: what makes it not structural first, sorted. `patterns`: those that
/// were compiled of it already.
void check_schema(const api::Json& document, std::string_view path, SchemaPatterns& patterns, api::FieldErrors& errors);

}  // namespace spillway::structural
