// What of an object is kept and what is filled in. Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes
// API with CustomResourceDefinitions", field pruning, defaulting, defaulting and nullable.
#pragma once

#include "api/json/json.h"
#include "policy/structural/structural_schema.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

struct Node;

/// Removes what the schema does not know; kind, apiVersion and metadata of the object and of resources embedded in it
/// stay. What went, as "spec.a" or "spec.list[0].b": sorted, at most api::kComplaintsMax of them.
std::vector<std::string> prune(const Schema& schema, api::Json& object);
/// The same of a value that one schema of it describes.
std::vector<std::string> prune_value(const Node& node, api::Json& value);

/// Removes nulls that may not be there and have no default, then puts defaults where there is nothing, or such a null.
/// Idempotent.
void apply_defaults(const Schema& schema, api::Json& object);

}  // namespace spillway::structural
