// Resources within resources (x-kubernetes-embedded-resource): checks that they have apiVersion and kind, and valid
// metadata. Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions",
// RawExtension.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <string_view>

namespace spillway::structural {

struct Node;

/// Adds the errors of embedded resources in the value, or of the value itself. `prefix` precedes the reported fields.
void check_embedded(const Node& node, const api::Json& value, std::string_view prefix, api::FieldErrors& errors);

}  // namespace spillway::structural
