// Resources within resources (x-kubernetes-embedded-resource): they say what they are, and their metadata is metadata.
// Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions",
// RawExtension.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <string_view>

namespace spillway::structural {

struct Node;

/// Adds what is wrong with the resources that are embedded in the value, or which it is itself. `prefix` stands before
/// the fields that are told.
void check_embedded(const Node& node, const api::Json& value, std::string_view prefix, api::FieldErrors& errors);

}  // namespace spillway::structural
