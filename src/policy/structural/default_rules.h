// Defaults of a schema: each is what the schema would keep, and fulfils it. Thread: any (pure). Source: Kubernetes
// docs, "Extend the Kubernetes API with CustomResourceDefinitions", defaulting.
#pragma once

#include "api/exchange/status.h"

#include <string_view>

namespace spillway::structural {

struct Node;

/// `path`: where the document of the schema stands. All defaults together may take what the rules of one object may.
void check_defaults(const Node& root, std::string_view path, api::FieldErrors& errors);

}  // namespace spillway::structural
