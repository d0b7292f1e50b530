// Pruning and defaulting of objects. Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API with
// CustomResourceDefinitions", field pruning, defaulting, defaulting and nullable.
#pragma once

#include "api/json/json.h"
#include "policy/structural/structural_schema.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

struct Node;

/// Removes fields unknown to the schema; kind, apiVersion and metadata of the object and of embedded resources stay.
/// Returns the removed fields, as "spec.a" or "spec.list[0].b": sorted, at most api::kComplaintsMax of them.
std::vector<std::string> prune(const Schema& schema, api::Json& object);
/// Prunes a value that one schema in it describes.
std::vector<std::string> prune_value(const Node& node, api::Json& value);

/// Bytes that defaults may add to one object: of their names and texts, and kFillBytes for each. Defaults apply within
/// defaults, and in every element of a list: their total is not bounded by their size in the schema.
inline constexpr std::size_t kDefaultBytesMax = 4U << 20U;
inline constexpr std::size_t kFillBytes = 64;

/// True if the missing defaults are within the limit.
bool defaults_fit(const Schema& schema, const api::Json& object);

/// Removes nulls that may not be there and have no default, then puts defaults where there is nothing, or such a null:
/// all of them, or none if they do not fit. Idempotent.
void apply_defaults(const Schema& schema, api::Json& object);

}  // namespace spillway::structural
