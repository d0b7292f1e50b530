// What a schema itself has to fulfil: that it is structural (every value has its type where it stands, and nothing but
// checks of values within anyOf, oneOf, allOf and not), and that it asks nothing that cannot be done.
// Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions", specifying a
// structural schema; API reference, JSONSchemaProps.
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
