// Defaults of a schema: each is what the schema would keep, and fulfils it. Thread: any (pure). Source: Kubernetes
// docs, "Extend the Kubernetes API with CustomResourceDefinitions", defaulting.
#pragma once

#include "api/exchange/status.h"

#include <string_view>

namespace spillway::structural {

struct Node;

/// `path`: the path of the schema document. All defaults together may cost as much as the rules of one object.
void check_defaults(const Node& root, std::string_view path, api::FieldErrors& errors);

}  // namespace spillway::structural
